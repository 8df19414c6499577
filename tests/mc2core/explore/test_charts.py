"""The stored charts of the HTML report are what ``tools/charts.py`` makes of its specifications."""

import itertools
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tools.charts import ASSETS, MAKER, made

CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"


def version_of_the_assets():
    return re.match(rf"// bundled by {MAKER} (\S+);", (ASSETS / "vega.js").read_text("utf-8"))[1]


def installed_version():
    try:
        return metadata.version(MAKER)
    except metadata.PackageNotFoundError:
        return None


def test_the_assets_are_of_the_version_that_is_pinned():
    assert f"\n{MAKER}=={version_of_the_assets()}\n" in CONSTRAINTS.read_text("utf-8")


def test_made_again_the_assets_are_the_same():
    if installed_version() != (version := version_of_the_assets()):
        pytest.skip(f"{MAKER} {version} is not installed: pip install -c constraints.txt '.[workflow]'")
    for name, text in made().items():
        assert (ASSETS / name).read_text("utf-8") == text, name


#: what is seen of linear red, green and blue: by all, without green cones, without red cones (Machado et al., 2009)
SEEN = (
    np.eye(3),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def cielab(channels):
    of_x, of_y = [0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]
    to_xyz = np.array([of_x, of_y, [0.0193339, 0.1191920, 0.9503041]])
    f = np.cbrt(to_xyz @ np.clip(channels, 0.0, 1.0) / [0.95047, 1.0, 1.08883])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_colour_blind_people_can_tell_all_colours_apart():
    text = (ASSETS / "data.js").read_text("utf-8")
    for name, paper in (("LIGHT", "#ffffff"), ("DARK", "#14171b")):
        colours = re.findall(r"#[0-9a-f]{6}", re.search(rf"const {name} = \[(.*?)\];", text, re.DOTALL)[1])
        assert len(set(colours)) == 20
        for seen in SEEN:
            places = [cielab(seen @ linear(one)) for one in colours]
            assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > 10
            assert min(np.linalg.norm(one - cielab(linear(paper))) for one in places) > 15


def test_colours_keep_their_hue_on_dark_paper():
    text = (ASSETS / "data.js").read_text("utf-8")
    hues = [
        [np.angle(complex(*cielab(linear(one))[1:])) for one in re.findall(r"#[0-9a-f]{6}", part)]
        for part in re.findall(r"const (?:LIGHT|DARK) = \[(.*?)\];", text, re.DOTALL)
    ]
    apart = np.abs(np.angle(np.exp(1j * (np.array(hues[0]) - hues[1]))))
    assert np.degrees(apart).max() < 20
