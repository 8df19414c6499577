"""ICML 2014 figure 6: seven clusters of images on a plane."""

from __future__ import annotations

from mc2papers.datasets.origins import MC2
from mc2papers.report.captions import say_data, say_sources
from mc2papers.targets import Built, Files, Options, Target, options_of


def _build(files: Files, options: Options) -> Built:
    from mc2core.posterior import Posterior
    from mc2papers.datasets.catalogue import describe
    from mc2papers.icml2014 import cluster_map
    from mc2papers.inputs import read_corpus

    corpus, about = read_corpus(files)
    table = cluster_map.describe(corpus, [Posterior.load(path) for path in files["models"]], **options["figure6"])
    figure = cluster_map.draw(table, describe(about), corpus.n_documents)
    return Built(table, figure=figure, claims=[cluster_map.judge_separation(table, about["title"])])


def _caption(options: Options) -> str:
    return (
        f"Images of the {options['figure6']['n_clusters']} largest clusters that MC2 with tags finds (smaller clusters "
        f"are left out; the titles count the images), {say_data(options['corpora'])}, placed by t-SNE of tf-idf, not "
        "by the model. Left: coloured by cluster; right: by class. Large distances mean nothing.\n\nClusters: "
        "consensus of the fit with most clusters of at least five images. Clusters count as separated if on average "
        f"nine of an image's ten nearest neighbours are in its cluster. {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="ICML 2014, figure 6: clusters of images on a plane",
    shows="clusters on a plane",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("nuswide",),
    options=options_of("corpora", figure6="figure6"),
    by_classes=True,
    memory_mb=1000,
)
