"""UAI 2016 table 3: agreement of clusters with MeSH per mini-batch, with few contexts and with no contexts."""

from __future__ import annotations

import pandas as pd

from mc2papers.datasets.origins import MC2, ORIGINS
from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import ANY_SIMULATOR, Claim, difference, judge, too_few, unmet
from mc2papers.report.extent import extent_of_one_epoch
from mc2papers.report.tables import PAPER, by_dataset, mean_and_sd, mean_sd, number, spread
from mc2papers.targets import Built, Files, Options, Target, options_of
from mc2papers.uai2016.methods import about_svi

KEY = "context_available_percent"
#: fractions of an epoch for which the formatted table has columns
_MOMENTS = (0.25, 0.5, 1.0)


def epoch_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean eNMI over the mini-batches of an epoch, by seed (rows) and percentage of contexts (columns).

    The mean is weighted by documents, because the last mini-batch has fewer documents and a higher eNMI by chance. If a
    mini-batch lacks the eNMI for one percentage, it is omitted for all percentages.

    rows : as in :func:`by_batch`
    """
    wide = rows.pivot(index=["seed", "batch"], columns=KEY, values="enmi").dropna()
    visited = rows.groupby(["seed", "batch"])["documents"].first()
    size = visited.groupby("seed").diff().fillna(visited).reindex(wide.index)
    return wide.mul(size, axis=0).groupby("seed").sum().div(size.groupby("seed").sum(), axis=0)


def by_batch(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and sd over seeds of the eNMI of each mini-batch.

    Parameters
    ----------
    rows : one row per mini-batch and fit, with columns context_available_percent, source, seed, batch, documents and
        enmi.

    Returns
    -------
    columns context_available_percent, source, batch, documents (visited so far), seeds (number of seeds with an eNMI),
    enmi and enmi_sd, and epoch and epoch_sd (mean and sd of :func:`epoch_means`).
    """
    table, epochs = [], epoch_means(rows)
    for key, fits in rows.groupby([KEY, "source"]):
        means = mean_and_sd(epochs[key[0]], "epoch")
        for batch, here in fits.groupby("batch"):
            about = {KEY: key[0], "source": key[1], "batch": batch, "documents": here["documents"].iloc[0]}
            table.append(about | {"seeds": here["enmi"].count()} | mean_and_sd(here["enmi"], "enmi") | means)
    return pd.DataFrame(table)


def judge_contexts(rows: pd.DataFrame, paper: pd.DataFrame, dataset: str) -> list[Claim]:
    """Judge whether the eNMI of an epoch is higher with few contexts than with none, at least by the printed ratio.

    If too few documents have contexts (:data:`mc2papers.report.claims.FEWEST`), there is no verdict, because chance
    would decide.

    rows : as in :func:`by_batch`
    paper : columns context_available_percent and extended_nmi, as printed
    """
    epochs, printed = epoch_means(rows), paper.set_index(KEY)["extended_nmi"]
    lacking = rows["enmi"].isna().groupby([rows["seed"], rows["batch"]]).any()
    claims = []
    for share in printed.index[printed.index > 0]:
        gain = printed[share] / printed[0]
        text = (
            f"the eNMI of mini-batches is {gain - 1:.0%} higher, as printed, with {share:.0f}% of the contexts than "
            "with none"
        )
        if not {0, share} <= set(epochs.columns) or epochs.empty:
            claims.append(unmet(dataset, text, "no mini-batches were fitted both with and without contexts"))
            continue
        few, none = epochs[share], epochs[0]
        numbers = f"{mean_sd(few, 3)} against {mean_sd(none, 3)}"
        if lacking.any():
            numbers += f", without the {lacking.sum()} of {len(lacking)} mini-batches that have no eNMI"
        lead = difference(few, none, above=0, digits=4, name="gain in eNMI", size=(gain - 1) * float(none.mean()))
        claim = judge(dataset, text, [lead], numbers, favours=ANY_SIMULATOR)
        n_few = round(rows["documents"].max() * share / 100)
        claims.append(too_few(claim, n_few, "documents with a context"))
    return claims


def format_table(table: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Format the table of :func:`by_batch` as text, with one row per percentage of contexts and some mini-batches.

    Only mini-batches of full size are shown.
    """
    shown = []
    for share, here in table.groupby(KEY):
        printed = paper.loc[paper[KEY] == share, "extended_nmi"]
        row = {
            "contexts": f"{share:.0f}%",
            "data": here["source"].iloc[0],
            "eNMI, mean of the mini-batches": spread(here.iloc[0], "epoch", 3),
        }
        sizes = here["documents"].diff().fillna(here["documents"])
        whole = here[sizes == sizes.max()]
        for moment in _MOMENTS:
            row[f"after {moment:.0%}"] = spread(whole.iloc[max(round(moment * len(whole)), 1) - 1], "enmi", 3)
        row |= {"mini-batches": number(len(here)), "seeds": number(here["seeds"].max())}
        row["without eNMI"] = number((here["seeds"].max() - here["seeds"]).sum())
        shown.append(row | {f"{PAPER}eNMI": number(printed.iloc[0], 3) if len(printed) else ""})
    return pd.DataFrame(shown)


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    rows = pd.concat([pd.read_csv(path) for path in files["batches"]])
    paper = pd.read_csv(files["paper"][0])
    tables, shown, claims = {}, {}, []
    for title, part in rows.groupby("dataset", sort=False):
        tables[str(title)] = by_batch(part)
        printed = paper if title == ORIGINS["pubmed"].title else paper[:0]
        shown[str(title)] = format_table(tables[str(title)], printed)
        claims += judge_contexts(part, paper, str(title))
    return Built(by_dataset(tables), shown=by_dataset(shown), claims=claims)


def _caption(options: Options) -> str:
    return (
        "Extended NMI (1 is perfect) of each mini-batch's clusters and the MeSH headings of its documents, on "
        f"{say_data(options['corpora'])}, with the headings of 1% of the documents as context and without context. "
        f"Mean and sd over {counted(options['n_seeds'], 'seed')}.\n\nClusters: posteriors q(z) during one pass over "
        f"the corpus; the CSV has every mini-batch. {say_sources(options['corpora'], MC2)}"
    )


TARGET = Target(
    title="UAI 2016, table 3: extended NMI of mini-batches over an epoch of PubMed (higher is better)",
    shows="agreement of mini-batches",
    build=_build,
    caption=_caption,
    inputs={"batches": "batches"},
    datasets=("pubmed", "synergy"),
    options=options_of("corpora", n_seeds="seeds"),
    extent=extent_of_one_epoch,
    notes=(
        "Means are weighted by documents. A mini-batch without headings has no eNMI; a column counts these. Values "
        "depend on the size of mini-batches, so compare the paper's only with each other.",
        about_svi(500),
    ),
    has_paper=True,
)
