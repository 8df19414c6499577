"""ICML 2014 figure 3: one cluster of papers."""

from __future__ import annotations

from mc2papers.targets import Built, Files, Options, Target, options_of


def _build(files: Files, options: Options) -> Built:
    from mc2core.posterior import Posterior
    from mc2papers.datasets.catalogue import describe
    from mc2papers.icml2014 import cluster
    from mc2papers.inputs import read_corpus

    corpus, about = read_corpus(files)
    table = cluster.describe(corpus, Posterior.load(files["models"][0]), **options["sizes"])
    return Built(table, figure=cluster.draw(table, describe(about)))


def _caption(options: Options) -> str:
    return (
        f"The largest cluster of NIPS ({options['corpus']['source']}) with authors as context. Left: its likeliest "
        "authors. Right: the papers whose words fit this cluster much better than the second-best cluster, with "
        "their years, and the main topics of the cluster with their likeliest words.\n\nSample: from the first seed, "
        "the sample whose clusters are most similar to the clusters of the other samples."
    )


TARGET = Target(
    title="ICML 2014, figure 3: authors, papers and topics of one NIPS cluster",
    shows="one cluster",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "first models"},
    datasets=("nips",),
    options=options_of(sizes="figure3", corpus="corpora.nips"),
    has_claims=False,
    memory_mb=1000,
)
