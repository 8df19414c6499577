"""ICML 2014 figure 5: agreement of clusters with classes, for MC2 and the methods that the paper compares it with."""

from __future__ import annotations

from mc2papers.datasets.origins import MC2
from mc2papers.report.captions import ABOUT_DOCUMENT_LEVEL, counted, say_chains, say_data, say_sources
from mc2papers.targets import Built, Files, Options, Target, options_of


def _build(files: Files, options: Options) -> Built:
    from mc2core.base import storage
    from mc2papers.report import agreement

    scores = [storage.read_json(path) for path in files["scores"]]
    points = agreement.summarise(scores)
    return Built(points, figure=agreement.draw(points), claims=agreement.claims(scores, scores[0]["title"]))


def _caption(options: Options) -> str:
    return (
        f"Agreement of clusters with the classes of images (1 is perfect), {say_data(options['corpora'])}: purity, "
        f"NMI, Rand index and F-score. Points: means over {counted(options['n_seeds'], 'seed')} (and numbers of "
        "clusters for K-means and NMF); hollow: without tags. Thick bars: one sd; thin bars: range.\n\nK: mean number "
        "of clusters. HDP + AP: affinity propagation on topic proportions. K-means, NMF and AP use tf-idf. Purity "
        f"rises with K. {say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="ICML 2014, figure 5: agreement of clusters with classes",
    shows="agreement with classes",
    build=_build,
    caption=_caption,
    inputs={"scores": "scores"},
    datasets=("nuswide",),
    options=options_of("corpora", "lengths", n_seeds="seeds"),
    by_classes=True,
)
