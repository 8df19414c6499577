"""The stored charts of the HTML report are what ``tools/charts.py`` makes of its specifications."""

import re
from importlib import metadata
from pathlib import Path

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
