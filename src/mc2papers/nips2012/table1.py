"""NIPS 2012 table 1: microseconds per document, by number of clusters and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from mc2papers.datasets.origins import ORIGINS
from mc2papers.nips2012.convergence import BITS, FASTEX, PLAIN
from mc2papers.report.captions import counted, say_source
from mc2papers.report.claims import ORDER, Claim, judge, mean_of, ratio_of, timed_alone, unmet
from mc2papers.report.extent import said_sweeps
from mc2papers.report.tables import PAPER, number
from mc2papers.targets import Built, Files, Options, Target, options_of

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

PROPOSAL, TOTAL = "proposal", "total"
STANDARD = "standard collapsed Gibbs"
_ARTICLES = ORIGINS["articles"].title
_NOTHING_MOVES = "all documents end in one cluster, so no document moves"


NOTES = (
    "Plain estimates: the projection without the bound of the paper, with which all documents end in one cluster. "
    "Balanced: our projection. Neighbours: clusters of similar documents are proposed. exact: every cluster is scored. "
    "standard: scored word by word, timed on 200 documents. Word prior: 1 for FastEx as printed, 0.01 for others. "
    "Intervals are over the chains of one job.",
)


def speed_table(times: pd.DataFrame, paper: pd.DataFrame) -> tuple[pd.DataFrame, list[Claim]]:
    """Return NIPS12 table 1 with our and the printed times per document, and its claims.

    times : result of :func:`mc2papers.nips2012.times.time_documents`; the table has means over chains.

    The claims compare the smallest and the largest K. First, the total time grows by less than half an order of
    magnitude (:data:`mc2papers.report.claims.ORDER`) for each number of bits. Second, with the paper's number of bits,
    it grows mostly because of the proposal. Third, the time of the standard sampler is linear in K.

    There is no verdict if other programs ran during the measurement. If all chains of a cell end with one cluster, no
    document moves, so the total is not comparable with the paper. The claims are then judged for PLAIN instead of
    FASTEX.
    """
    keys = ["part", "method", "clusters", "bits"]
    printed = paper.rename(columns={"microseconds_per_document": "paper_microseconds_per_document"})
    means = times.groupby(keys, sort=False)["microseconds_per_document"].mean()
    table = means.reset_index().merge(printed.assign(method=FASTEX), on=keys, how="left")
    totals, method, why = times[times["part"] == TOTAL], FASTEX, ""
    hashed = totals[totals["method"] == method]
    if _idle(hashed) == set(hashed["bits"]) and (totals["method"] == PLAIN).any():
        method, why = PLAIN, f"with plain estimates, because with the published method {_NOTHING_MOVES}: "
        hashed = totals[totals["method"] == method]
    least, most = (int(end(hashed["clusters"])) for end in (min, max))
    claims = [
        _judge_totals(hashed, least, most, why),
        _judge_proposals(times, least, most, method, why),
        _judge_standard(totals),
    ]
    cores = float(times["other_cores"].max())
    return table, [timed_alone(one, cores) for one in claims]


def _judge_totals(hashed: pd.DataFrame, least: int, most: int, why: str) -> Claim:
    wide = hashed.pivot(index="seed", columns=["bits", "clusters"], values="microseconds_per_document")
    text = (
        f"the total time per document hardly grows from K = {least:,} to {most:,} (less than {ORDER:.1f} times, half "
        "an order of magnitude)"
    )
    if least == most:
        return unmet(_ARTICLES, text, f"only K = {least:,} was timed")
    growth = {bits: wide[bits][most] / wide[bits][least] for bits in sorted(map(int, hashed["bits"].unique()))}
    numbers = f"{why}times " + ", ".join(f"{ratio.mean():.2f} at {bits} bits" for bits, ratio in growth.items())
    idle = _idle(hashed)
    ratios = [
        ratio_of(f"ratio of the total times at {bits} bits,", ratio, below=ORDER, digits=2, over="chains")
        for bits, ratio in growth.items()
        if bits not in idle
    ]
    if not ratios:
        return unmet(_ARTICLES, text, _NOTHING_MOVES, numbers)
    return judge(_ARTICLES, text, ratios, numbers)


def _idle(hashed: pd.DataFrame) -> set[int]:
    """Return the numbers of bits for which all chains of some K end with one cluster."""
    in_use = hashed.groupby(["bits", "clusters"])["in_use"].max()
    return set(in_use[in_use == 1].index.get_level_values("bits"))


def _judge_proposals(times: pd.DataFrame, least: int, most: int, method: str, why: str) -> Claim:
    text = f"the total time per document grows with K, mostly by the time of the proposal ({BITS} bits)"
    here = times[(times["method"] == method) & (times["bits"] == BITS)]
    if least == most or here.empty:
        return unmet(_ARTICLES, text, f"K = {least:,} and {BITS} bits were not both timed with another K")
    wide = here.pivot(index="seed", columns=["part", "clusters"], values="microseconds_per_document")
    proposal, total = (wide[part][most] - wide[part][least] for part in (PROPOSAL, TOTAL))
    numbers = f"{why}{proposal.mean():+.2f} of {total.mean():+.2f} us per document"
    if BITS in _idle(here):
        return unmet(_ARTICLES, text, _NOTHING_MOVES, numbers)
    grows = mean_of("growth of the total time in us", total, above=0, digits=2, over="chains", is_difference=True)
    name = "growth of the time of the proposal minus half of the growth of the total time in us"
    half = mean_of(name, proposal - total / 2, above=0, digits=2, over="chains")
    return judge(_ARTICLES, text, [grows, half], numbers)


def _judge_standard(totals: pd.DataFrame) -> Claim:
    text = "the time per document of standard collapsed Gibbs is linear in K (within half an order of magnitude)"
    here = totals[totals["method"] == STANDARD]
    wide = here.pivot(index="seed", columns="clusters", values="microseconds_per_document")
    if wide.shape[1] < 2:
        return unmet(_ARTICLES, text, "standard collapsed Gibbs was timed for one K only")
    least, most = (int(end(wide.columns)) for end in (min, max))
    ratio, wanted = wide[most] / wide[least], most / least
    name = f"time at K = {most:,} divided by time at K = {least:,},"
    bounds = [ratio_of(name, ratio, above=wanted / ORDER, digits=2, over="chains")]
    bounds += [ratio_of(name, ratio, below=wanted * ORDER, digits=2, over="chains")]
    numbers = f"{ratio.mean():.1f} times as long for {wanted:g} times K, "
    numbers += ", ".join(f"{wide[k].mean():,.0f} us at K = {k:,}" for k in (least, most))
    return judge(_ARTICLES, text, bounds, numbers)


def format_speed_table(table: pd.DataFrame) -> pd.DataFrame:
    """Format the table of :func:`speed_table` as text, with one row per part, method and bits."""
    rows = []
    for (part, method, bits), here in table.groupby(["part", "method", "bits"], sort=False):
        row = {"part": part, "method": method, "bits": f"{bits}" if bits else ""}
        for _, cell in here.iterrows():
            row[f"K = {cell['clusters']:,}"] = number(cell["microseconds_per_document"], 2)
            if pd.notna(cell["paper_microseconds_per_document"]):
                row[f"{PAPER}K = {cell['clusters']:,}"] = number(cell["paper_microseconds_per_document"], 2)
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    table, claims = speed_table(pd.read_csv(files["times"][0]), pd.read_csv(files["paper"][0]))
    return Built(table, shown=format_speed_table(table), claims=claims)


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    grid, seeds = configuration.config["nips2012"]["table1"], configuration.config["seeds"]
    length, _ = said_sweeps({grid["sweeps"]}, None)
    return {"articles": {"documents": f"{grid['n_documents']:,}", "length": length, "repeats": counted(seeds, "chain")}}


def _caption(options: Options) -> str:
    grid = options["grid"]
    return (
        "Microseconds per document of FastEx by number of clusters K and length of signature, on "
        f"{grid['n_documents']} simulated articles and one core, next to the paper's figures. Proposal: a draw from "
        "the signatures alone; total: a whole sweep. Compare how the columns grow, not their levels: machines differ."
        f"\n\nTimes are medians over {counted(grid['sweeps'], 'sweep')}, without compilation and without the sweeps "
        f"that fit the projection, and means over {counted(options['n_seeds'], 'chain')} for hashed methods. Data: "
        f"{say_source('articles', {'source': 'simulated'})}, of about 100 distinct words."
    )


TARGET = Target(
    title="NIPS 2012, table 1: microseconds per document (simulated articles)",
    shows="microseconds per document",
    build=_build,
    caption=_caption,
    inputs={"times": "times"},
    draws=("articles",),
    options=options_of(grid="nips2012.table1", n_seeds="seeds"),
    extent=_extent,
    notes=NOTES,
    has_paper=True,
)
