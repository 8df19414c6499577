"""ICML 2014 figure 5: agreement of clusters with classes, of MC2 and of the methods it is compared with."""

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
        f"NMI, Rand index and F-score. Points are means over {counted(options['n_seeds'], 'seed')} and, for K-means "
        "and NMF, over their numbers of clusters; hollow ones saw no tags. Thick bars are one sd, thin ones the "
        "range.\n\nK is the mean number of clusters. MC2: the consensus of the samples. HDP + AP: affinity propagation "
        "on the symmetric KL divergence between images' topic proportions. With tags: they stand beside the visual "
        "words as further columns; K-means, NMF and affinity propagation (AP) see tf-idf of them, which suits them "
        "better than counts. Purity rises with the number of clusters, whatever they are, and the Rand index mostly "
        f"counts pairs that are apart in both. {say_chains(options['lengths'])} {ABOUT_DOCUMENT_LEVEL} "
        f"{say_sources(options['corpora'], MC2)} Paper: ICML 2014, figure 5, where MC2 with tags is best in all four."
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
