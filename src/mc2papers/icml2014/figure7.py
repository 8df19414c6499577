"""ICML 2014 figure 7: agreement with the truth by size of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mc2papers.report.captions import counted
from mc2papers.report.extent import said_sweeps
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
    length, limits = said_sweeps({figure["iterations"]}, None)  # the paper prints no length of these chains
    least, most = (end(figure["n_documents"] + [figure["fixed_n_documents"]]) for end in (min, max))
    return {
        "letters": {
            "documents": f"{least:,} to {most:,}",
            "length": length,
            "repeats": counted(figure["repeats"], "repeat"),
            "limits": limits,
        }
    }


def _caption(options: Options) -> str:
    figure = options["figure"]
    return (
        "Agreement (NMI, 1 is perfect) of clusters with the truth on letters data, drawn as in the paper, with and "
        f"without the context. Left: over words per document, at {figure['fixed_n_documents']} documents. Right: over "
        f"documents, at {figure['fixed_n_tokens']} words each. Points are means and bars sds over {figure['repeats']} "
        "corpora.\n\nClusters are those of the last Gibbs sample, and the distinct letters of a word are equally "
        f"likely; {counted(figure['iterations'], 'sweep')}, noise {figure['noise']}. Paper: ICML 2014, figure 7, 20 "
        "repeats, and its appendix A.3: context makes recovery more robust, and longer documents soon add very little, "
        "which is judged by the middle length of the panel."
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
