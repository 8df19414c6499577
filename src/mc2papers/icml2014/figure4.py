"""ICML 2014 figure 4: a topic over time."""

from __future__ import annotations

from mc2papers.targets import Built, Files, Options, Target, options_of


def _build(files: Files, options: Options) -> Built:
    from mc2core.posterior import Posterior
    from mc2papers.datasets.catalogue import describe
    from mc2papers.icml2014 import topic_time
    from mc2papers.inputs import read_corpus
    from mc2papers.report.claims import not_run

    corpus, about = read_corpus(files)
    table = topic_time.describe(corpus, Posterior.load(files["models"][0]), **options["figure4"])
    match = not_run(
        about["title"],
        "the years of the topic match the years of Google Scholar's first 50 hits for its word",
        "the paper does not print the hits of 2014, and a search today gives other hits",
    )
    return Built(table, figure=topic_time.draw(table, describe(about)), claims=[match])


def _caption(options: Options) -> str:
    word = options["figure4"]["word"]
    topic = f'The topic in which "{word}" is likeliest' if word else "The topic with the narrowest peak in time"
    return (
        f"{topic}, PNAS ({options['corpus']['source']}) with years as context: density over time (dashed: all topics). "
        f"Below: documents per year with {'that word' if word else 'its likeliest word'}.\n\nThe density is the sum "
        "over clusters of weight, topic share and density of their years. Sample: from the first seed, the sample "
        "whose clusters are most similar to the clusters of the other samples."
    )


TARGET = Target(
    title="ICML 2014, figure 4: a topic over time",
    shows="a topic over time",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "first models"},
    datasets=("pnas",),
    options=options_of(figure4="figure4", corpus="corpora.pnas"),
    memory_mb=1000,
)
