"""ICML14 figure 5 on made-up scores."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from mc2papers.report import agreement, palette
from mc2papers.report.captions import DOCUMENT_LEVEL


def solution(value, **more):
    return {"clusters": 5, "purity": value, "nmi": value / 2, "rand_index": 0.9, "f_score": value / 3} | more


def fit(method, contexts, *solutions, **more):
    about = {"run": "a", "seed": 0, "method": method, "contexts": contexts, "source": "simulated"} | more
    return about | ({"solutions": list(solutions)} if len(solutions) > 1 else solutions[0])


SOLUTIONS = [
    solution(0.3, solution="k2", clusters=2),
    solution(0.5, solution="k4", clusters=4),
    solution(0.7, solution="k9", clusters=9, rand_index=0.95),
]
SCORES = [
    fit("MC2", ["tag"], solution(0.8)),
    fit("MC2", ["tag"], solution(0.6), seed=1),
    fit("K-means", [], *SOLUTIONS, converged={"k2": True, "k4": False, "k9": True}),
]


def test_spread_is_over_seeds_and_numbers_of_clusters():
    points = agreement.summarise(SCORES).set_index(["method", "contexts", "measure"])
    row = points.loc[("K-means", "", "purity")]
    assert (row["min"], row["max"], row["clusterings"], row["clusters"]) == (0.3, 0.7, 3, 5)
    assert row["mean"] == pytest.approx(0.5)
    assert row["sd"] == pytest.approx(np.std([0.3, 0.5, 0.7], ddof=1))
    assert row["not_converged"] == 1
    assert points.loc[("MC2", "tag", "nmi"), "mean"] == pytest.approx(0.35)
    alone = agreement.summarise(SCORES[:1])
    assert (alone["sd"] == 0).all()


def kmeans(value, seed, **more):
    """Two numbers of clusters, of which a seed has the mean."""
    one, other = (solution(value + by, solution=f"k{by}", **more) for by in (-0.1, 0.1))
    return fit("K-means", [], one, other, seed=seed)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((0.8, 0.8), "reproduced"),
        ((0.3, 0.3), "not reproduced"),
        *((one, "inconclusive") for one in ((0.6, 0.5), (0.8,))),
    ],
)
def test_claims_are_judged_by_seed_over_all_measures(ours, verdict):
    scores = [fit("MC2", ["tag"], solution(value), seed=seed) for seed, value in enumerate(ours)]
    rivals = [kmeans(0.5, 0), kmeans(0.51, 1), fit("AP", [], solution(0.1)), fit("AP", [], solution(0.1), seed=1)]
    best, _ = agreement.claims([*scores, *rivals], "X")
    assert best.text == "MC2 with contexts has the highest agreement with the classes in all four measures"
    assert best.favours == "any simulator"
    # the Rand index is a tie with all
    assert best.verdict == ("inconclusive" if verdict == "reproduced" else verdict)
    if verdict == "reproduced":
        assert best.reason.startswith("lead in Rand index over ")
        assert best.numbers.startswith("purity 0.800 ± 0.000 against 0.505 ± 0.007 of K-means, NMI ")
        ahead = [fit("MC2", ["tag"], solution(value, rand_index=0.97), seed=seed) for seed, value in enumerate(ours)]
        best, _ = agreement.claims([*ahead, *rivals], "X")
        assert best.verdict == "reproduced"


@pytest.mark.parametrize(("ours", "verdict"), [(0.8, "reproduced"), (0.54, "smaller than claimed")])
def test_a_wide_margin_is_more_than_a_lead(ours, verdict):
    scores = [fit("MC2", ["tag"], solution(ours, rand_index=0.97), seed=seed) for seed in (0, 1)]
    best, wide = agreement.claims([*scores, kmeans(0.5, 0), kmeans(0.501, 1)], "X")
    assert best.verdict == "reproduced"
    margin = "a wide margin (at least 0.05 in purity and 0.05 in NMI, our thresholds)"
    assert (wide.text, wide.verdict) == (f"MC2 with contexts leads all other methods by {margin}", verdict)


@pytest.mark.parametrize(("documents", "verdict"), [(45, "reproduced"), (44, "not testable on these data")])
def test_a_rival_with_few_documents_per_cluster_is_none(documents, verdict):
    rivals = [fit("K-means", [], *SCORES[2]["solutions"], seed=seed, documents=documents) for seed in (0, 1)]
    scores = [fit("MC2", ["tag"], solution(0.8, rand_index=0.97), seed=seed, documents=documents) for seed in (0, 1)]
    best, _ = agreement.claims([*scores, *rivals], "X")
    assert best.verdict == verdict
    why = "K-means has 9 clusters for 44 documents, so it does not count as a rival; "
    assert best.reason.startswith(why) == (documents == 44)
    alone = [one | {"clusters": documents} for one in scores]
    assert agreement.claims([*alone, *rivals], "X")[0].verdict in ("precondition not met", "not testable on these data")


def test_claims_without_a_rival_or_without_ours_are_not_computed():
    for few, text in ((SCORES[:2], "no other method"), (SCORES[2:], "no fit of MC2 with tags")):
        for one in agreement.claims(few, "X"):
            assert (one.verdict, one.said) == ("precondition not met", text)


def test_a_document_level_is_drawn_and_no_rival():
    """They are best in all four, and the verdicts are those without them."""
    own = fit(DOCUMENT_LEVEL, ["tag"], solution(0.99, rand_index=0.99))
    points = agreement.summarise([*SCORES, own])
    assert agreement.claims([*SCORES, own], "X") == agreement.claims(SCORES, "X")
    figure = agreement.draw(points)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names[-1] == "MC2, document level\n(ours), tags (K 5)"
    means = [(line.get_color(), line.get_marker()) for line in figure.axes[0].lines[2::3]]
    assert means == [palette.look(method) for method in ("MC2", "K-means", DOCUMENT_LEVEL)]
    assert len(set(means)) == 3
    plt.close(figure)


def test_a_corpus_without_labels_is_refused():
    with pytest.raises(ValueError, match="run 'a' has no agreement: each document of its corpus needs one label"):
        agreement.summarise([fit("MC2", [], {"clusters": 3})])


def test_every_method_has_its_line_in_every_panel():
    figure = agreement.draw(agreement.summarise(SCORES))
    panels = figure.axes
    assert [ax.get_title() for ax in panels] == ["Purity", "NMI", "Rand index", "F-score"]
    assert [text.get_text() for text in panels[0].get_yticklabels()] == ["MC2, tags (K 5)", "K-means (K 5)"]
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["0", "0.5", "1"]
    (legend,) = figure.legends
    entries = ["mean, with tags", "mean, contents alone", "one sd to each side", "smallest to largest"]
    assert [text.get_text() for text in legend.get_texts()] == entries
    # filled where tags were seen, hollow where they were not, here and in the legend
    tags, alone, *_ = legend.get_lines()
    assert panels[0].lines[2].get_markerfacecolor() == panels[0].lines[2].get_color()
    assert tags.get_markerfacecolor() == tags.get_color()
    assert {panels[0].lines[5].get_markerfacecolor(), alone.get_markerfacecolor()} == {"white"}
    span = panels[0].lines[3].get_xdata()  # of K-means: from the smallest to the largest
    assert sorted(span) == [0.3, 0.7]
    plt.close(figure)
    (legend,) = agreement.draw(agreement.summarise(SCORES[:2])).legends
    assert "mean, contents alone" not in [text.get_text() for text in legend.get_texts()]  # there is none
