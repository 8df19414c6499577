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
        f"Held-out perplexity (lower is better) by seconds of a fit on {say_data(options['corpora'])}, with one "
        "context (authors, tags): SVI as printed and without tables (ours) for two epochs (dots: their ends), and "
        f"Gibbs. Lines: means over {counted(options['n_seeds'], 'seed')}; bands: range.\n\nEstimator: "
        f"{options['estimators'][0]}; {counted(options['threads'], 'thread')} per fit. Seconds exclude reading, "
        "compilation and scoring. Claims compare with the average over Gibbs' samples; they are not judged if SVI "
        f"starts at that level or if Gibbs hardly improves. {about_svi(50)} {say_sources(options['corpora'])}"
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
