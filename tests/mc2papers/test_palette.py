"""One colour for each method, in every figure, and no two alike."""

import itertools

import numpy as np
import pytest
from helpers.paths import ROOT

from mc2papers.report import palette
from mc2papers.report.captions import DOCUMENT_LEVEL
from mc2papers.uai2016.methods import DIRECT, SVI

FIGURE5 = ("MC2", DOCUMENT_LEVEL, "HDP + AP", "AP", "K-means", "NMF")
FIGURE3 = (SVI, DIRECT, "Gibbs, collapsed", "Gibbs, blocked", "Gibbs, interleaved")


def lab(colour):
    """CIELAB (D65) of ``#rrggbb``, after IEC 61966-2-1 and CIE 15."""
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(to_xyz) @ linear / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours):
    """The least distance of two of them; 2.3 can just be told apart."""
    return min(np.linalg.norm(lab(one) - lab(other)) for one, other in itertools.combinations(colours, 2))


def test_no_two_methods_of_a_figure_have_similar_colours():
    colours = {look[0] for look in palette.METHODS.values()}
    assert len(colours) == len(palette.METHODS) - 1  # MC2, and its sampler under its own name
    assert nearest(colours) > 15
    fastex = [method for method in palette.METHODS if method.startswith(("FastEx", "exact", "baseline"))]
    for figure in (FIGURE5, FIGURE3, fastex):
        looks = [palette.look(method) for method in figure]
        assert nearest([colour for colour, _ in looks]) > 25
        assert len({marker for _, marker in looks}) == len(looks)


@pytest.mark.parametrize("target", ["icml2014_figure5", "nips2012_figure1"])
def test_every_method_drawn_from_the_default_table_has_a_look(target):
    rows = (ROOT / "config/experiments.tsv").read_text().splitlines()
    head = rows[0].split("\t")
    drawn = [dict(zip(head, row.split("\t"), strict=False)) for row in rows[1:]]
    methods = {row["method"] for row in drawn if target in row["targets"].split()}
    assert methods
    assert methods <= palette.METHODS.keys()
    assert palette.look("a method of one's own") == palette.OTHER


def test_clusters_and_classes_share_no_colour():
    assert nearest([*palette.CLUSTERS, *palette.CLASSES]) > 10


#: Machado et al. (2009), deuteranopia and protanopia, of linear RGB
DEFICIENCIES = (
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
)


def test_the_thirteen_classes_are_told_apart_by_all_eyes():
    def seen(colour, matrix):
        rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        shown = np.clip(np.array(matrix) @ linear, 0, 1)
        shown = np.where(shown <= 0.0031308, shown * 12.92, 1.055 * shown ** (1 / 2.4) - 0.055)
        return "#" + "".join(f"{round(255 * one):02X}" for one in shown)

    assert len(set(palette.CLASSES)) == 13
    assert nearest(palette.CLASSES) > 20
    for matrix in DEFICIENCIES:
        assert nearest([seen(one, matrix) for one in palette.CLASSES]) > 10
