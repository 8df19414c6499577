"""List the recorded verdicts whose engines have changed their results since the recorded run.

python tools/records.py

The output has one line per target and commit of ``recorded_claims.csv``. The file
``tests/mc2core/inference/same_bits.json`` stores the results of small fits of each engine. A line has the number of
small fits of the target's engines whose assignments differ between the commit and HEAD, and their names unless all
differ. If no fit has changed, the chains of the target are the same. Its verdicts can then change only by a change of
the scores or of the target's code.
"""

from __future__ import annotations

import csv
import functools
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mc2papers.report.scorecard import recorded

ROOT = Path(__file__).resolve().parents[1]
BITS = "tests/mc2core/inference/same_bits.json"


def engines_of(target: str) -> set[str]:
    """Return the engines and baselines of the runs that a target uses."""
    with open(ROOT / "config" / "experiments.tsv", encoding="utf-8") as stream:
        rows = csv.DictReader(stream, delimiter="\t")
        return {row["engine"] for row in rows if target in row["targets"].split()}


@functools.cache
def stored_fits(commit: str) -> Mapping[str, Any]:
    """Return the results of the small fits by name, as stored at a commit."""
    done = subprocess.run(["git", "show", f"{commit}:{BITS}"], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["fits"]


def said(before: Mapping[str, Any], now: Mapping[str, Any], engines: set[str]) -> str:
    """Return a text on the stored fits of these engines that have changed."""
    names = [name for name in now if name.partition(" ")[0] in engines]
    changed = [name for name in names if now[name]["assignments"] != before.get(name, {}).get("assignments")]
    if not changed:
        return "unchanged"
    return f"{len(changed)} of {len(names)} fits changed" + (f": {'; '.join(changed)}" if changed != names else "")


def main() -> None:
    """Print the list."""
    for (target, date, commit), _ in recorded().groupby(["target", "date", "commit"], sort=False):
        print(f"{target}, {date}, {commit}: {said(stored_fits(commit), stored_fits('HEAD'), engines_of(target))}")


if __name__ == "__main__":
    main()
