"""UAI 2016 figure 3: perplexity over seconds, SVI against Gibbs."""

from __future__ import annotations

from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.targets import Built, Files, Options, Target, options_of
from mc2papers.uai2016.methods import about_svi


def _build(files: Files, options: Options) -> Built:
    import pandas as pd

    from mc2papers.uai2016 import curves_figure

    rows = pd.concat([pd.read_csv(path) for path in files["curves"]]).fillna({"source": ""})
    points = curves_figure.summarise(rows)
    claims = [one for dataset in dict.fromkeys(points["dataset"]) for one in curves_figure.claims(rows, dataset)]
    return Built(points, figure=curves_figure.draw(points), claims=claims)


def _caption(options: Options) -> str:
    return (
        f"Held-out perplexity (lower is better) over the seconds of a fit on {say_data(options['corpora'])}, with one "
        "context (authors, tags): SVI as printed and without tables (ours) for two epochs (dots: their ends), against "
        f"the Gibbs sampler. Lines are means over {counted(options['n_seeds'], 'seed')} and bands their range.\n\nThe "
        f"estimator is {options['estimators'][0]}, at {counted(options['threads'], 'thread')} a fit. A point is the "
        "posterior mean (SVI) or one sample (Gibbs) at that time; claims compare with the average over Gibbs' samples, "
        "which is lower. SVI starts at clusters of documents, Gibbs at random topics: whether SVI reaches Gibbs is not "
        "judged where SVI starts at that level, or where Gibbs hardly leaves its start. A state early on may lie above "
        f"the panel. Seconds hold the start and the steps, not reading, compilation or scoring. {about_svi(50)} "
        f"{say_sources(options['corpora'])} Paper: UAI 2016, figure 3, where SVI is as good as Gibbs within one epoch, "
        "in a quarter of its time."
    )


TARGET = Target(
    title="UAI 2016, figure 3: perplexity over seconds, SVI against Gibbs",
    shows="perplexity over time",
    build=_build,
    caption=_caption,
    inputs={"curves": "curves"},
    datasets=("nips", "nuswide"),
    options=options_of("corpora", estimators="estimators", n_seeds="seeds", threads="threads"),
)
