"""Reference results: those of a long run, kept in the repository, with which fresh results are compared."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from mc2core.base import storage

KEYS = ["run", "seed"]
#: what is compared; cells are empty if a score has no such number
MEASURES = ("clusters", "topics", "perplexity", "purity", "nmi", "rand_index", "f_score", "extended_nmi")
COLUMNS = (*KEYS, "date", "commit", "machine", "cpu_seconds", "estimator", *MEASURES)
#: relative difference of the same result: another processor may change the last digits
SAME = 1e-6
#: results within so many sd of the reference seeds, or within this share of the reference, are near
SPREAD, SHARE = 3.0, 0.01


def read_results(results: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the scores below a folder of results: a row per fit with the columns COLUMNS."""
    rows = []
    for path in sorted(Path(results).glob("scores/*/*.json")):
        score = storage.read_json(path)
        run, seed = path.parent.name, int(path.stem)
        provenance = Path(results) / "fits" / run / str(seed) / "provenance.json"
        fit = storage.read_json(provenance)
        day = datetime.fromtimestamp(provenance.stat().st_mtime, UTC).date()
        about = {"run": run, "seed": seed, "date": f"{day}", "commit": str(fit.get("git_commit"))[:8]}
        about |= {"machine": f"{fit.get('machine')}, {fit.get('cores')} cores", "cpu_seconds": fit.get("cpu_seconds")}
        estimator = score.get("estimator")
        values = score | {"estimator": estimator, "perplexity": score.get("perplexity", {}).get(estimator)}
        rows.append(about | {name: values.get(name) for name in ("estimator", *MEASURES)})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(MEASURES, float))


def read_record(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of reference results."""
    return pd.read_csv(path, dtype={"commit": str})


def record(results: str | os.PathLike[str], path: str | os.PathLike[str]) -> pd.DataFrame:
    """Write the results of a run to a file; rows of other fits that it holds already are kept."""
    known = read_record(path) if Path(path).is_file() else pd.DataFrame(columns=list(COLUMNS))
    parts = [part for part in (known, read_results(results)) if len(part)]
    if not parts:
        raise ValueError(f"{results} has no scores to record")
    both = pd.concat(parts).drop_duplicates(KEYS, keep="last").sort_values(KEYS, ignore_index=True)
    with storage.replacing(Path(path)) as stream:
        both.to_csv(stream, index=False, float_format="%.8g")
    return both


def compare(fresh: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare fresh results with the reference, fit by fit.

    Returns
    -------
    A row per number that both have: run, seed, measure, fresh, reference, and agreement: "same" (by SAME), "near" (by
    SPREAD or SHARE) or "differs".
    """
    rows = []
    by_fit = reference.set_index(KEYS)
    spread = reference.groupby("run")[list(MEASURES)].std(ddof=1).fillna(0.0)
    for _, one in fresh.iterrows():
        key = one["run"], one["seed"]
        if key not in by_fit.index:
            continue
        for measure in MEASURES:
            value, known = one[measure], by_fit.loc[key, measure]
            if pd.isna(value) and pd.isna(known):
                continue
            away = abs(value - known)
            near = max(SPREAD * spread.loc[one["run"], measure], SHARE * abs(known))
            agreement = "same" if away <= SAME * abs(known) else "near" if away <= near else "differs"
            rows.append((*key, measure, value, known, agreement))
    return pd.DataFrame(rows, columns=[*KEYS, "measure", "fresh", "reference", "agreement"])


def describe(fresh: pd.DataFrame, reference: pd.DataFrame) -> str:
    """Describe how far a run has come, what is left of it, and how its results compare with the reference."""
    table = compare(fresh, reference)
    done = {*zip(fresh["run"], fresh["seed"], strict=True)}
    is_left = np.array([key not in done for key in zip(reference["run"], reference["seed"], strict=True)], bool)
    left = reference["cpu_seconds"][is_left].sum() / 60
    counts = table["agreement"].value_counts()
    same, near, differ = (counts.get(one, 0) for one in ("same", "near", "differs"))
    lines = [
        f"{len(reference) - is_left.sum()} of {len(reference)} reference fits are done; the others took {left:.0f} "
        "minutes of processor time when the reference was made.",
        f"Of {len(table)} numbers {same} are the same, {near} near, {differ} differ.",
    ]
    lines += [
        f"{one.run}, seed {one.seed}: {one.measure} {one.fresh:,.6g}, reference {one.reference:,.6g}"
        for one in table[table["agreement"] == "differs"].itertuples()
    ]
    return "\n".join(lines)
