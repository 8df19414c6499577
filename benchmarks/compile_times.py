"""Seconds of processor time that cold kernels cost, kernel by kernel: what the rule ``warm_kernels`` compiles.

    python benchmarks/compile_times.py --repeats 3
    NUMBA_OPT=2 python benchmarks/compile_times.py --repeats 3

Each engine of the default plan is compiled in a new process with an empty store. A kernel's own seconds leave out the
kernels that are compiled while it is typed; the optimiser's share of inlined callees counts for the caller, where it
arises. Written as Markdown: medians over repeats of each engine's total, its passes and its largest kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("gibbs", "svi", "fastex")


def compile_engine(engine: str) -> dict[str, Any]:
    """Compile all that the default plan's fits with an engine use, in this process; own seconds by kernel and pass."""
    from numba.core import event

    from mc2core.engines.running.warm import warm_kernels
    from mc2core.experiments import plan

    class Clock(event.Listener):
        """Splits processor time among nested events: each gets what its own children do not take."""

        def __init__(self) -> None:
            self.open: list[list[float]] = []  # [start, seconds of children]
            self.seconds: Counter[str] = Counter()
            self.times: Counter[str] = Counter()

        def on_start(self, event: Any) -> None:
            self.open.append([time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            start, inner = self.open.pop()
            seconds = time.process_time() - start
            self.seconds[name(event)] += seconds - inner
            self.times[name(event)] += 1
            if self.open:
                self.open[-1][1] += seconds

    def name(one: Any) -> str:
        if one.kind == "numba:run_pass":
            return str(one.data["name"]).partition(" ")[0].removeprefix("nopython_")
        function = one.data["dispatcher"].py_func
        return f"{function.__module__.removeprefix('mc2core.')}.{function.__name__}"

    clocks = {"kernels": ("numba:compile", Clock()), "passes": ("numba:run_pass", Clock())}
    for kind, clock in clocks.values():
        event.register(kind, clock)
    imported = time.process_time()
    config = plan.read_yaml(ROOT / "config/config.yaml")
    schema = plan.read_yaml(ROOT / "workflow/schemas/experiments.schema.yaml")
    runs = plan.read_experiments(ROOT / "config/experiments.tsv", schema, config, plan.choose_datasets(config))
    warm_kernels(engine, plan.variants(runs, engine), config["contexts"], config["estimators"])
    return {
        "total": time.process_time() - imported,
        "imports": imported,
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **{part: dict(clock.seconds) for part, (_, clock) in clocks.items()},
        "versions": dict(clocks["kernels"][1].times),
    }


def run_cold(engine: str) -> dict[str, Any]:
    """:func:`compile_engine` in a new process whose store of kernels is empty."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, __file__, "--engine", engine]
        done = subprocess.run(
            command, env=os.environ | {"NUMBA_CACHE_DIR": store}, capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def medians(runs: list[dict[str, Any]], part: str) -> pd.Series:
    """Median seconds by name of one part, the largest first."""
    return pd.DataFrame([run[part] for run in runs]).fillna(0).median().sort_values(ascending=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, help="compile this one here and print JSON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=15, help="kernels to show of each engine")
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(compile_engine(options.engine)))
        return
    for engine in ENGINES:
        runs = [run_cold(engine) for _ in range(options.repeats)]
        kernels, passes = medians(runs, "kernels"), medians(runs, "passes")
        totals = sorted(run["total"] for run in runs)
        print(f"\n{engine}: {totals[len(totals) // 2]:.1f} s ({totals[0]:.1f} to {totals[-1]:.1f}), ", end="")
        print(f"{kernels.size} kernels in {sum(runs[0]['versions'].values())} versions, ", end="")
        print(f"imports {runs[0]['imports']:.1f} s, {max(run['MB'] for run in runs):.0f} MB\n")
        print("| kernel | versions | own seconds | share |\n|---|---|---|---|")
        for kernel, seconds in kernels.head(options.largest).items():
            share = seconds / kernels.sum()
            print(f"| `{kernel}` | {runs[0]['versions'][kernel]} | {seconds:.2f} | {share:.0%} |")
        print("\n| pass | seconds |\n|---|---|")
        for step, seconds in passes.head(6).items():
            print(f"| {step} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
