"""ICML 2014 figure 7: agreement with the truth by size of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mc2papers.report.captions import counted
from mc2papers.report.extent import said_range, said_sweeps
from mc2papers.targets import Built, Files, Options, Target, options_of

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration


def _build(files: Files, options: Options) -> Built:
    import pandas as pd

    from mc2papers.icml2014 import sizes

    rows = pd.concat([pd.read_csv(path) for path in files["sizes"]])
    points = sizes.summarise(rows)
    return Built(points, figure=sizes.draw(points), claims=sizes.judge_sizes(rows))


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    figure = configuration.config["figure7"]
    # the paper does not print the number of sweeps of these chains
    length, limits = said_sweeps({figure["iterations"]}, None)
    documents, repeats = said_range([*figure["n_documents"], figure["fixed_n_documents"]]), figure["repeats"]
    about = {"documents": documents, "length": length, "repeats": counted(repeats, "repeat"), "limits": limits}
    return {"letters": about}


def _caption(options: Options) -> str:
    figure = options["figure"]
    return (
        "Agreement (NMI, 1 is perfect) of clusters with the truth on letters data, drawn as in the paper, with and "
        f"without the context. Left: by words per document, with {figure['fixed_n_documents']} documents. Right: by "
        f"number of documents, with {figure['fixed_n_tokens']} words each. Points: means; bars: one sd over "
        f"{figure['repeats']} corpora.\n\nClusters of the last of {counted(figure['iterations'], 'sweep')}; noise "
        f"{figure['noise']}. The paper has 20 repeats. Its claim on longer documents is judged at the middle length."
    )


TARGET = Target(
    title="ICML 2014, figure 7: NMI over words per document and number of documents",
    shows="NMI by size of the data",
    build=_build,
    caption=_caption,
    inputs={"sizes": "sizes"},
    datasets=("letters",),
    options=options_of(figure="figure7"),
    extent=_extent,
)
