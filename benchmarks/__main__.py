"""Run benchmarks, and compare each with its last recorded result: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import cases, suite


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition(":")[0])
    parser.add_argument("--list", action="store_true", help="name all benchmarks, with units, sizes and what they need")
    parser.add_argument("--only", nargs="+", choices=suite.BENCHMARKS, metavar="NAME", help="these benchmarks alone")
    parser.add_argument("--repeats", type=int, help="figures of each benchmark; 3 for most of them where not given")
    parser.add_argument("--record", action="store_true", help="add the medians to history.csv and to the README")
    parser.add_argument(
        "--data-folder", type=Path, default=suite.DATA_FOLDER, help="folder of the real data (MC2_DATA_FOLDER)"
    )
    given = parser.parse_args()
    if given.repeats is not None and given.repeats < 1:
        parser.error("--repeats must be at least 1")
    chosen = [one for name, one in suite.BENCHMARKS.items() if given.only is None or name in given.only]
    if given.list:
        for one in chosen:
            sizes = ", ".join(f"{name}={value}" for name, value in one.sizes.items())
            needs = f" (needs {one.needs})" if one.needs else ""
            print(f"{one.name}: {one.measures}, {one.unit}; {sizes or 'no sizes'}{needs}")
        return
    shared = suite.circumstances()
    history = suite.read_history(suite.HISTORY)
    for one in chosen:
        if lack := cases.lacks(one.needs, given.data_folder):
            print(f"{one.name}: left out; {lack}", flush=True)
            continue
        started = time.perf_counter()
        row = suite.row_of(one, suite.measure(one, given.repeats or one.repeats, given.data_folder, one.sizes), shared)
        change = suite.ratio(row, history)
        compared = "nothing to compare with" if change is None else f"{change:.2f} of the row before"
        took = time.perf_counter() - started
        print(
            f"{row.benchmark}: {row.median:g} {row.unit} ({row.least:g} to {row.most:g}), {compared}; "
            f"took {took:.0f} s", flush=True,
        )  # fmt: skip
        if given.record:
            history.append(row)
            suite.append(row, suite.HISTORY)
    if given.record:
        text = suite.PAGE.read_text(encoding="utf-8")
        suite.PAGE.write_text(suite.page(text, history), encoding="utf-8")


if __name__ == "__main__":
    main()
