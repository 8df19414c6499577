"""Every reader on damaged input: the parsers of ``tests/fuzz``, each for its share of the time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from .report import Report

TESTS = Path(__file__).parents[1]
#: a parser that gets less tries little more than its first case
MIN_SECONDS = 1.0


def run(seconds: float, seed: int, scratch: Path) -> Report:
    """Mutate inputs for some seconds; where they are few, not every parser has its turn."""
    sys.path.insert(0, str(TESTS / "fuzz"))
    import configurations
    import sources_files
    import sources_xml
    from harness import fuzz

    data_folder: Path | None = Path(os.environ.get("MC2_DATA_FOLDER") or TESTS.parents[1] / "shared/mirror")
    if not data_folder.is_dir():
        data_folder = None
    parsers = {
        name: one
        for module in (sources_files, sources_xml, configurations)
        for name, one in module.parsers(data_folder).items()
    }
    names = np.random.default_rng(seed).permutation(sorted(parsers))
    chosen = names[: max(1, int(seconds / MIN_SECONDS))].tolist()
    report = Report("mutated inputs of readers")
    for name in chosen:
        result = fuzz(name, parsers[name], seconds / len(chosen), seed, scratch / name.replace(" ", "-"))
        report.tried += result.cases
        report.failures += result.failures
        report.counts["refused"] = report.counts.get("refused", 0) + result.refused
        report.counts[f"cases of {name}"] = result.cases
    return report
