"""UAI 2016, section 5.4: seconds per epoch by number of workers and size of mini-batches, with the printed hours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2core.compute.spark import missing
from mc2papers.report.captions import counted, say_data, say_sources
from mc2papers.report.claims import NO_SPARK, Claim, judge, not_run, of_order, ratio_of, unmet
from mc2papers.report.extent import extent_of_runs
from mc2papers.report.tables import number, spread
from mc2papers.targets import Built, Files, Options, Target

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

_THREADS = "threads"
#: names of rows by engine
_METHODS = {"svi": "SVI-MC2, an epoch", "gibbs": "Gibbs, document level, a sweep (ours)"}
#: name of rows with the printed hours; the paper does not state the number of epochs
_PRINTED = "SVI-MC2, as printed (epochs not said)"


def judge_nodes(rows: pd.DataFrame, paper: pd.DataFrame, has_spark: bool) -> list[Claim]:
    """Compare the printed speed-ups of several nodes over one node with our speed-ups of several Spark workers.

    Speed-ups are compared by size of mini-batches.

    Parameters
    ----------
    rows : columns dataset, engine, place ("threads" or a Spark master), workers, batch_size, iteration and seconds
    paper : columns dataset, nodes, batch_size, hours and speedup_over_one_node, as printed
    has_spark : whether Spark can be used; otherwise, no rows are from Spark
    """
    claims, dataset = [], rows["dataset"].iloc[0]
    on_spark = rows[(rows["place"] != _THREADS) & (rows["engine"] == "svi")]
    printed = paper.dropna(subset="speedup_over_one_node").drop_duplicates(["nodes", "batch_size"])
    for number_of_nodes, here in printed.groupby("nodes"):
        nodes = int(str(number_of_nodes))
        wanted = {int(one["batch_size"]): float(one["speedup_over_one_node"]) for _, one in here.iterrows()}
        said = ", ".join(f"{times} in batches of {size:,}" for size, times in wanted.items())
        text = f"the speed-up of {nodes} nodes over one is about as large as printed ({said})"
        if not has_spark:
            claims.append(not_run(dataset, text, NO_SPARK))
            continue
        timed = {size: _speed_up(on_spark[on_spark["batch_size"] == size]) for size in wanted}
        ratios = []
        for size, (_, times) in timed.items():
            if len(times):
                name, least = f"speed-up in batches of {size:,}", of_order(wanted[size]) - 1
                ratios.append(ratio_of(name, times, above=1, digits=2, over="timings", size=least))
        workers = max(number for number, _ in timed.values())
        ours = {size: np.exp(np.log(times).mean()) for size, (_, times) in timed.items() if len(times)}
        numbers = ", ".join(f"{mean:.2f} times in batches of {size:,}" for size, mean in ours.items())
        numbers += f" on {workers} workers"
        if not ratios:
            claims.append(not_run(dataset, text, "no Spark cluster was timed with one worker and with several"))
        elif len(ratios) < len(wanted) or workers != nodes:
            lack = f"{nodes} nodes{' and all sizes of mini-batches' if len(ratios) < len(wanted) else ''}"
            reason = f"needs {lack}; {'; '.join(one.said for one in ratios)}"
            claims.append(not_run(dataset, text, reason, numbers))
        else:
            claims.append(judge(dataset, text, ratios, numbers))
    return claims


def _speed_up(rows: pd.DataFrame) -> tuple[int, pd.Series]:
    """Return the largest number of workers, and its speed-up over one worker per timed epoch (empty without times)."""
    seconds = rows.dropna(subset="workers").pivot_table(index="iteration", columns="workers", values="seconds")
    if 1 not in seconds or seconds.shape[1] < 2:
        return 1, pd.Series(dtype=float)
    workers = int(seconds.columns.max())
    return workers, seconds[1] / seconds[workers]


def judge_batches(rows: pd.DataFrame) -> list[Claim]:
    """Judge whether several workers save more time with larger mini-batches.

    The speed-up of all workers over one worker must be larger for the largest mini-batches than for the smallest. This
    is judged for threads and for Spark. The claims on the hours on 8 nodes are added as not run.

    rows : as in :func:`judge_nodes`
    """
    rows = rows[rows["engine"] == "svi"]
    dataset, small, large = rows["dataset"].iloc[0], rows["batch_size"].min(), rows["batch_size"].max()
    text = f"more workers save more time with batches of {large:,.0f} than with batches of {small:,.0f}"
    claims = []
    kinds = rows.assign(kind=rows["place"].where(rows["place"] == _THREADS, "Spark"))
    for place, here in kinds.groupby("kind"):
        (workers, less), (others, more) = (_speed_up(here[here["batch_size"] == size]) for size in (small, large))
        if small == large or workers != others or workers == 1:
            continue
        numbers = f"{more.mean():.2f} against {less.mean():.2f} times on {workers} ({place})"
        name = f"ratio of speed-ups, batches of {large:,.0f} to batches of {small:,.0f},"
        gain = ratio_of(name, more / less, above=1, digits=2, over="timings")
        claims.append(judge(dataset, text, [gain], numbers))
    if not claims:
        claims = [unmet(dataset, text, "only one size of mini-batches or one number of workers was timed")]
    hours = (
        "a million documents take 17 to 18.5 hours on 8 nodes",
        "Spark reduces the time by another order of magnitude",
    )
    return claims + [not_run(dataset, one, "needs a cluster of 8 nodes with 16 cores each") for one in hours]


def format_table(rows: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Format our mean times by place and size of mini-batches, followed by the printed times, as text."""
    about = [name for name in rows if name not in ("iteration", "seconds")]
    ours = rows.groupby(about, sort=False, dropna=False)["seconds"].agg(["mean", "std", "size"]).reset_index()
    ours = ours.rename(columns={"mean": "seconds", "std": "seconds_sd"})
    shown = [
        {
            "dataset": row["dataset"],
            "source": row["source"],
            "documents": number(row["documents"]),
            "what": _METHODS[row["engine"]],
            "where": "one process" if row["place"] == _THREADS else f"Spark, {row['place']}",
            "threads or workers": number(row["workers"]),
            "batch": number(row["batch_size"]),
            "s": spread(row, "seconds", 2),
            "us per document": number(1e6 * row["seconds"] / row["documents"]),
            "timings": number(row["size"]),
        }
        for _, row in ours.iterrows()
    ]
    shown += [
        {
            "dataset": row["dataset"],
            "source": "the paper",
            "what": _PRINTED,
            "where": "Spark",
            "threads or workers": f"{row['nodes']} nodes",
            "batch": number(row["batch_size"]),
            "s": f"{number(3600 * row['hours'])} ({row['hours']:g} hours)",
        }
        for _, row in paper.dropna(subset="hours").iterrows()
    ]
    return pd.DataFrame(shown).fillna("")


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    rows, paper = pd.concat([pd.read_csv(path) for path in files["epochs"]]), pd.read_csv(files["paper"][0])
    claims = [*judge_nodes(rows, paper, options["has_spark"]), *judge_batches(rows)]
    return Built(rows, shown=format_table(rows, paper), claims=claims)


def _options(configuration: Configuration, name: str) -> dict[str, Any]:
    datasets = {configuration.runs[run]["dataset"] for run in configuration.runs_of(name)}
    return {
        "corpora": configuration.corpora_of(sorted(datasets)),
        "has_spark": missing() is None,
        **configuration.config["running_time"],
    }


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    timed = {"length": "3 timed epochs", "repeats": "1 fit"}
    return {dataset: one | timed for dataset, one in extent_of_runs(configuration, name).items()}


def _caption(options: Options) -> str:
    spark = f"on Spark with {counted(options['n_shards'], 'shard')}, masters {', '.join(options['masters'])}."
    if not options["has_spark"]:
        spark = f"not on Spark: {NO_SPARK}."
    return (
        "Seconds of an epoch of SVI-MC2, with tables as printed, by size of mini-batches, on "
        f"{say_data(options['corpora'])}, next to the paper's hours on 8 nodes for a million documents.\n\nTimed: "
        f"epochs 2 to 4 of a fit and sweep 2 of Gibbs, on one thread, on several, and {spark} "
        f"{say_sources(options['corpora'])} The paper does not report the number of epochs."
    )


TARGET = Target(
    title="UAI 2016, section 5.4: seconds of an epoch of SVI-MC2 on threads and on Spark",
    shows="seconds of an epoch",
    build=_build,
    caption=_caption,
    inputs={"epochs": "epochs"},
    datasets=("wikipedia",),
    options=_options,
    extent=_extent,
    notes=(
        "Our numbers: mean ± sd of epochs 2 to 4 of one fit; on Spark, one core per worker on one machine. The paper's "
        "corpora, nodes and cores per node differ: compare orders of magnitude. A million documents with this code: "
        "docs/notes/spark.md.",
    ),
    has_paper=True,
)
