"""Run the harnesses of this folder: ``python -m tests.reliability --minutes 60 --seed 0`` from the checkout's root.

Each harness gets an equal share of the time. A table of what was tried, held and failed is printed at the end, and the
exit code is 1 if anything failed. What each harness does and what was found: ``docs/development/reliability.md``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

HARNESSES = (
    "readers", "random_settings", "killed_fits", "interrupted", "damaged_files", "full_disk", "two_runs",
    "killed_workflow",
)  # fmt: skip
FOLDER = Path(__file__).parent
# harnesses import the helpers of the tests, and fits in child processes the package
sys.path.insert(0, str(FOLDER.parent))


def main() -> int:
    present = [name for name in HARNESSES if (FOLDER / f"{name}.py").is_file()]
    options_of = argparse.ArgumentParser(prog="python -m tests.reliability", description=(__doc__ or "").split("\n")[0])
    options_of.add_argument("--minutes", type=float, default=60.0, help="of all harnesses together (default 60)")
    options_of.add_argument("--seed", type=int, default=0, help="the same seed tries the same cases (default 0)")
    options_of.add_argument("--only", nargs="+", choices=present, default=present, help="harnesses to run")
    options_of.add_argument("--case", type=int, nargs="+", default=[], help="repeat these cases alone, not of readers")
    options = options_of.parse_args()
    rows: list[tuple[str, int, int, int, float, str]] = []
    failures: list[str] = []
    for name in options.only:
        harness = importlib.import_module(f"reliability.{name}")
        with tempfile.TemporaryDirectory(prefix=f"{name}-") as scratch:
            for case in options.case:
                outcome = harness.try_case(options.seed, case, Path(scratch))
                print(f"{name}, seed {options.seed}, case {case}: {outcome.wrong or 'held'}")
                failures += [outcome.wrong] if outcome.wrong else []
            if options.case:
                continue
            began = time.monotonic()
            report = harness.run(60 * options.minutes / len(options.only), options.seed, Path(scratch))
        failures += report.failures
        counts = ", ".join(f"{what} {n:,}" for what, n in sorted(report.counts.items()))
        rows.append((report.name, report.tried, report.held, len(report.failures), time.monotonic() - began, counts))
        print(f"{name}: {report.held:,} of {report.tried:,} held", flush=True)
    if rows:
        print(
            f"\nseed {options.seed}\n\n| what | tried | held | failed | minutes | of these |\n|---|---|---|---|---|---|"
        )
        for what, tried, held, failed, seconds, counts in rows:
            print(f"| {what} | {tried:,} | {held:,} | {failed:,} | {seconds / 60:.1f} | {counts} |")
        for failure in failures:
            print(f"\nfailed: {failure}")
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())
