"""Compare new results with reference results of a long run, which are stored in the repository."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base import storage
from mc2core.posterior.scores import solutions_of

KEYS = ["run", "seed", "solution"]
_FIT = KEYS[:2]
#: compared values; cells are empty if a score lacks the value
MEASURES = (
    "clusters", "topics", "perplexity", "purity", "nmi", "ari", "rand_index", "f_score", "vi_bits", "extended_nmi",
)  # fmt: skip
COLUMNS = (*KEYS, "date", "commit", "machine", "cpu_seconds", "estimator", *MEASURES)
#: relative difference that counts as equal: another processor may change the last digits
SAME = 1e-6
#: a result is near if it is within so many sd of the reference seeds, or within this share of the reference
SPREAD, SHARE = 3.0, 0.01


def read_results(results: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the final results of all fits in a folder of results, as rows with the columns COLUMNS.

    A fit has one row per clustering in its scores; if there are several, ``solution`` has their names. A fit also has
    rows for its perplexity over time, and a row for the end of its trace if the trace has the distance from labels.
    """
    folder, rows = Path(results), list[dict[Any, Any]]()
    for path in sorted(folder.glob("scores/*/*.json")):
        score = storage.read_json(path)
        estimator = score.get("estimator")
        value = {"estimator": estimator, "perplexity": score.get("perplexity", {}).get(estimator)}
        origin = _read_origin(folder, path.parent.name, int(path.stem)) | {"solution": ""}
        rows += [origin | {**one} | value for one in solutions_of(score)]
    for path in sorted(folder.glob("fits/*/*/trace.tsv")):
        last, run, seed = pd.read_csv(path, sep="\t").to_dict("records")[-1], path.parts[-3], int(path.parts[-2])
        if "vi_bits" in last and not (folder / f"scores/{run}/{seed}.json").is_file():
            rows.append(last | _read_origin(folder, run, seed) | {"solution": ""})
    for path in sorted(folder.glob("curves/*.csv")):
        for state in pd.read_csv(path).to_dict("records"):
            facts = _read_origin(folder, state["run"], state["seed"])
            rows.append(facts | {"solution": f"iteration {state['iteration']:g}", "perplexity": state["perplexity"]})
            if pd.notna(state["averaged"]):
                rows.append(facts | {"solution": "averaged", "perplexity": state["averaged"]})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(MEASURES, float))


def _read_origin(folder: Path, run: str, seed: int) -> dict[str, Any]:
    """Return the date, the machine, the commit and the processor time of a fit."""
    provenance = folder / "fits" / run / str(seed) / "provenance.json"
    fit = storage.read_json(provenance)
    day = datetime.fromtimestamp(provenance.stat().st_mtime, UTC).date()
    facts = {"run": run, "seed": seed, "date": f"{day}", "commit": str(fit.get("git_commit"))[:8]}
    return facts | {"machine": f"{fit.get('machine')}, {fit.get('cores')} cores", "cpu_seconds": fit.get("cpu_seconds")}


def read_record(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of reference results."""
    return pd.read_csv(path, dtype={"commit": str, "solution": str}).fillna({"solution": ""})


def record(results: str | os.PathLike[str], path: str | os.PathLike[str]) -> pd.DataFrame:
    """Write the results of a run to a file of reference results; rows of other fits in this file are kept."""
    earlier = read_record(path) if Path(path).is_file() else pd.DataFrame(columns=list(COLUMNS))
    fresh = read_results(results)
    parts = [part for part in (earlier[~_of_fits(earlier, fresh)], fresh) if len(part)]
    if not parts:
        raise ValueError(f"{results} has no scores to record")
    table = pd.concat(parts).sort_values(KEYS, ignore_index=True)
    with storage.replacing(Path(path)) as stream:
        table.to_csv(stream, index=False, float_format="%.8g")
    return table


def _of_fits(table: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Return, for each row of a table, whether its fit is also in another table."""
    return pd.MultiIndex.from_frame(table[_FIT]).isin(pd.MultiIndex.from_frame(other[_FIT]))


def compare(fresh: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare fresh results with the reference, fit by fit.

    Returns
    -------
    One row per number that is in both tables, with KEYS, measure, fresh, reference, and agreement: "same" (by SAME),
    "near" (by SPREAD or SHARE) or "differs".
    """
    rows = []
    by_fit = reference.set_index(KEYS)
    spread = reference.groupby(["run", "solution"])[list(MEASURES)].std(ddof=1).fillna(0.0)
    for _, row in fresh.iterrows():
        key = tuple(row[KEYS])
        if key not in by_fit.index:
            continue
        for measure in MEASURES:
            value, expected = row[measure], by_fit.loc[key, measure]
            if pd.isna(expected):
                continue
            away = abs(value - expected)
            near = max(SPREAD * spread.loc[(row["run"], row["solution"]), measure], SHARE * abs(expected))
            agreement = "same" if away <= SAME * abs(expected) else "near" if away <= near else "differs"
            rows.append((*key, measure, value, expected, agreement))
    return pd.DataFrame(rows, columns=[*KEYS, "measure", "fresh", "reference", "agreement"])


def describe(fresh: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Describe the progress of a run, the remaining work, and the agreement of its results with the reference."""
    table = compare(fresh, reference)
    fits = reference.drop_duplicates(_FIT)
    is_left = ~_of_fits(fits, fresh)
    minutes = fits["cpu_seconds"][is_left].sum() / 60
    counts = table["agreement"].value_counts()
    same, near, differ = (counts.get(one, 0) for one in ("same", "near", "differs"))
    lines = [
        f"{len(fits) - is_left.sum()} of {len(fits)} reference fits are done; the others took {minutes:.0f} "
        "minutes of processor time when the reference was made.",
        f"Of {len(table)} numbers, the same: {same}, near: {near}, different: {differ}.",
    ]
    for _, row in table[table["agreement"] == "differs"].iterrows():
        solution = f", {row['solution']}" if row["solution"] else ""
        numbers = f"{row['measure']} {row['fresh']:,.6g}, reference {row['reference']:,.6g}"
        lines.append(f"{row['run']}, seed {row['seed']}{solution}: {numbers}")
    return "\n".join(lines)
