"""Sensitivity of figure 2 (ICML 2014) to settings that the paper does not report: start, priors and chain length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2papers.datasets.origins import MC2
from mc2papers.icml2014.choices import open_choices
from mc2papers.report.captions import counted
from mc2papers.report.claims import under
from mc2papers.report.extent import extent_of_runs
from mc2papers.report.tables import mean_and_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mc2core.posterior import Posterior
    from mc2papers.configuration import Configuration
    from mc2papers.datasets.simulated.truth import Truth


#: the first row; every other row differs from it only in the choice in its name
FIRST = "as in figure 2: 20 clusters, 20 topics, v ~ Gamma(1, 1)"
#: names of rows whose fits figure 2 also shows, by method
_TITLES = {"MC2": FIRST, "MC2, interleaved (ours)": "interleaved kernel (ours)"}


def sensitivity_table(truth: Truth, models: Mapping[str, Sequence[Posterior]]) -> pd.DataFrame:
    """Measure the fits of each choice.

    Parameters
    ----------
    models : fits by choice

    Returns
    -------
    columns choice, fits, right_k (number of fits whose last sample has one cluster per word), share_right_k (their
    fraction), and mean and sd over fits of clusters, large_clusters (at least 3 % of the documents), topics, letters
    (found) and nmi; letters_most is the maximum of letters.
    """
    from mc2core.posterior import clustering
    from mc2papers.icml2014 import letters

    rows = []
    for choice, fits in models.items():
        sizes = pd.DataFrame([letters.sizes(one) for one in fits], columns=["clusters", "large_clusters"])
        found = pd.Series([letters.letters_found(truth, one) for one in fits])
        nmi = pd.Series([clustering.nmi(truth.cluster, one.cluster) for one in fits])
        row: dict[str, Any] = {"choice": choice, "fits": len(fits)}
        row["right_k"] = int((sizes["clusters"] == len(truth.cluster_weights)).sum())
        row["share_right_k"] = row["right_k"] / len(fits)
        row |= mean_and_sd(sizes["clusters"], "clusters") | mean_and_sd(sizes["large_clusters"], "large_clusters")
        row |= mean_and_sd(pd.Series([one.representative.n_topics for one in fits]), "topics")
        row |= mean_and_sd(found, "letters") | {"letters_most": int(found.max())} | mean_and_sd(nmi, "nmi")
        rows.append(row)
    return pd.DataFrame(rows)


def conclude(table: pd.DataFrame, n_clusters: int, n_letters: int) -> str:
    """State the conclusion: which choices find the clusters, and which choices find the letters."""
    fits, first = int(table["fits"].iloc[0]), table.iloc[0]
    often = table[2 * table["right_k"] > table["fits"]]
    which = f" ({'; '.join(often['choice'])})" if len(often) else ""
    clusters = (
        f"K = {n_clusters} is found in more than half of the fits with {len(often)} of {len(table)} choices{which}, "
        f'and in {first["right_k"]} of {fits} fits with "{first["choice"]}".'
    )
    most, whole = int(table["letters_most"].max()), table[table["letters_most"] == n_letters]
    if len(whole):
        return f"{clusters} All {n_letters} letters are found with {'; '.join(whole['choice'])}."
    return f"{clusters} No fit with any choice finds more than {most} of the {n_letters} letters."


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Format the table as text."""
    return pd.DataFrame(
        [
            {
                "choice": row["choice"],
                "K = 4 in": f"{row['right_k']} of {row['fits']} fits",
                "K": spread(row, "clusters", 1),
                "clusters of 3% and more": spread(row, "large_clusters", 1),
                "M": spread(row, "topics", 1),
                "letters found": spread(row, "letters", 1),
                "most in one fit": number(row["letters_most"]),
                "NMI": spread(row, "nmi", 2),
            }
            for _, row in table.iterrows()
        ]
    )


def draw(table: pd.DataFrame, n_clusters: int, n_letters: int) -> Figure:
    """Draw one row per choice: fraction of fits with the right K, large clusters, letters found, and NMI."""
    from mc2papers.icml2014.choices import Panel, draw_choices
    from mc2papers.report import palette, style

    figure = style.new_figure(7.4, 1.0 + 0.2 * len(table))
    panels = (
        Panel(f"share of fits\nwith K = {n_clusters}", "share_right_k", printed=1.0),
        Panel("clusters of\n3% and more", "large_clusters", printed=n_clusters, is_count=True),
        Panel("letters found", "letters", printed=n_letters, is_count=True),
        Panel("NMI", "nmi"),
    )
    axes = figure.subplots(1, len(panels), sharey=True)
    colour, _ = palette.look("MC2")
    draw_choices(axes, table, panels, [colour] * len(table))
    axes[0].set(xlim=(-0.08, 1.4), xticks=[0, 0.5, 1], xticklabels=["0%", "50%", "100%"])
    for y, (_, row) in zip(axes[0].get_yticks(), table.iterrows(), strict=True):
        said, at = f"{row['right_k']} of {row['fits']}", (row["share_right_k"], y)
        axes[0].annotate(said, at, (5, 0), textcoords="offset points", fontsize=6, va="center")
    axes[2].set_xlim(-0.5, n_letters + 0.5)
    style.mark_source(figure, "simulated letters data")
    return figure


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    from pathlib import Path

    from mc2core.corpus import Corpus
    from mc2core.posterior import Posterior
    from mc2papers.datasets.simulated.truth import Truth
    from mc2papers.icml2014 import letters

    (folder,) = files["corpora"]
    truth, loaded = Truth.load(Path(folder) / "truth.npz"), (Posterior.load(path) for path in files["models"])
    models = {choice: list(islice(loaded, n)) for choice, n in options["fits"].items()}
    table = sensitivity_table(truth, {FIRST: models.pop(FIRST)} | models)
    sizes = len(truth.cluster_weights), len(truth.word_given_topic)
    corpus = Corpus.load(Path(folder) / "train")
    claims = []
    for choice in options["choices"]:
        judged = letters.judge_recovery(corpus, truth, models[choice], options["sweeps"])
        claims += under(choice, judged, "icml2014_figure2")
    drawn, conclusion = draw(table, *sizes), conclude(table, *sizes)
    return Built(table, shown=shown(table), figure=drawn, conclusion=conclusion, claims=claims)


def _choices(configuration: Configuration, name: str) -> list[str]:
    return [*open_choices([run for run in configuration.runs.values() if name in run["targets"]], MC2)]


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    methods = {run: configuration.runs[run]["method"] for run in configuration.runs_of(name)}
    return {
        "choices": _choices(configuration, name),
        "sweeps": configuration.config["fit"]["letters"]["iterations"],
        "n_seeds": configuration.config["figure2_sensitivity"]["seeds"],
        "fits": {_TITLES.get(method, method): len(configuration.seeds_of(run)) for run, method in methods.items()},
        "corpus": configuration.config["corpora"]["letters"],
    }


def _caption(options: Options) -> str:
    corpus = options["corpus"]
    return (
        f"Letters data ({corpus['n_documents']} documents of {corpus['n_tokens']} pixels) fitted by MC2 with choices "
        f"that the paper does not report, {options['sweeps']} sweeps unless a row differs. Points: means over "
        f"{counted(options['n_seeds'], 'fit')} per choice (figure 2: its fits); bars: one sd. Each row differs from "
        "the first row by the choice in its name. Dashed: published (section 4.1); dotted: the first row."
    )


TARGET = Target(
    title="ICML 2014, figure 2: sensitivity to choices that the paper does not print",
    shows="choices and letters",
    build=_build,
    caption=_caption,
    inputs={"corpora": "corpora", "models": "models"},
    datasets=("letters",),
    options=_options,
    notes=(
        "K = 4 in: number of fits whose last sample has four clusters, including small ones. A letter is found if a "
        "topic lies within 0.25 of it in L1 distance. NMI: agreement of the consensus of samples with the words.",
    ),
    extent=lambda configuration, name: extent_of_runs(configuration, name, _choices(configuration, name)),
    is_study=True,
    memory_mb=1000,
)
