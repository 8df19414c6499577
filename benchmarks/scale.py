"""Measure memory and time of the commands import, fit, predict and describe on a large simulated corpus.

    python -m benchmarks.scale --documents 100000 --folder /tmp/scale

Memory is the anonymous resident memory of all processes of a command together, sampled from /proc/*/smaps_rollup
(Linux). It does not include pages of files, because the system may drop them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

_SEED = 0
_CLUSTERS, _TOPICS, _WORDS, _JOURNALS = 50, 200, 100_000, 500
_TOPICS_OF_A_DOCUMENT = 6
_BLOCK = 10_000
_SECONDS = 0.25  # between two samples of memory


class Taken(NamedTuple):
    """Time and memory of a command: elapsed and processor seconds, and the peak anonymous memory in bytes."""

    seconds: float
    processor: float
    memory: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the corpus, run the commands, and print a Markdown table of their times and memory."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--tokens", type=int, default=85, help="of a document; 85 are about 60 different words")
    parser.add_argument("--predicted", type=int, help="documents of mc2 predict (default: all)")
    parser.add_argument("--folder", type=Path, required=True, help="for files; what is there is replaced")
    parser.add_argument("--engine", choices=["svi", "gibbs"], default="svi", help="gibbs: with the defaults of mc2 fit")
    parser.add_argument("--epochs", type=int, default=1, help="of SVI")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--set", dest="settings", action="append", default=[], help="of the model and the engine")
    options = parser.parse_args(arguments)
    folder, threads = options.folder, ["--threads", str(options.threads)]
    folder.mkdir(parents=True, exist_ok=True)
    records, fit = folder / "documents.jsonl", folder / "fit"
    write(records, options.documents, options.tokens)
    more = folder / "more.jsonl"
    write(more, options.documents, options.tokens, first=options.documents)
    contexts = ["--context", "year:number", "--context", "journal:bag"]
    given = ["--text", "text", "--id", "id", *contexts, "--min-df", "2"]
    chosen = list(options.settings)
    own = ["--context", "year", "--context", "journal", *threads]
    if options.engine == "svi":
        chosen = [f"max_clusters={_CLUSTERS}", f"max_topics={_TOPICS}", "batch_size=500", *chosen]
        own += ["--iterations", str(options.epochs)]
    own += [part for setting in chosen for part in ("--set", setting)]
    posterior = str(fit / "posterior.npz")
    n_predicted = options.predicted or options.documents
    part = folder / "predicted.jsonl"
    with records.open("rb") as every, part.open("wb") as some:
        some.writelines(line for _, line in zip(range(n_predicted), every, strict=False))
    data, page, n = str(folder / "data"), str(folder / "page"), options.documents
    commands = {
        "import": (n, ["import", str(records), *given, "--out", data], None),
        "fit": (n, ["fit", data, "--engine", options.engine, *own, "--out", str(fit)], None),
        "predict": (n_predicted, ["predict", posterior, *threads], part),
        "describe": (n, ["describe", posterior, data, *threads, "--out", page], None),
        "import --like": (n, ["import", str(more), "--like", posterior, "--out", str(folder / "like")], None),
        "import --append": (n, ["import", str(more), "--append", "--out", data], None),
    }
    print(f"{options.documents:,} documents, {records.stat().st_size / 1e6:,.0f} MB as JSON Lines", flush=True)
    print(
        "| command | documents | s | CPU s | µs of CPU a document | anonymous memory, MB |\n|---|---|---|---|---|---|"
    )
    for name, (n_seen, command, given_lines) in commands.items():
        log = folder / f"{name.replace(' --', '_')}.log"
        taken = measured([sys.executable, "-m", "mc2core", *command], log, given_lines)
        per_document = 1e6 * taken.processor / n_seen
        sizes = f"{taken.seconds:.1f} | {taken.processor:.1f} | {per_document:.0f} | {taken.memory / 1e6:,.0f}"
        print(f"| {name} | {n_seen:,} | {sizes} |", flush=True)
    return 0


def write(path: Path, n_documents: int, n_tokens: int, first: int = 0) -> None:
    """Write documents that each have a few topics, a year and a journal, all drawn by the cluster of the document.

    The documents are numbered from ``first`` on, which is also part of the random seed.
    """
    random = np.random.default_rng(_SEED + first)
    words = np.array([f"{_letters(number)}" for number in range(_WORDS)])
    # each topic has a power law over a random order of the words
    order = np.array([random.permutation(_WORDS) for _ in range(_TOPICS)])
    ranks = np.cumsum(1.0 / (10.0 + np.arange(_WORDS)))
    ranks /= ranks[-1]
    of_cluster = random.dirichlet(np.full(_TOPICS, 0.05), _CLUSTERS)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(first, first + n_documents, _BLOCK):
            n = min(_BLOCK, first + n_documents - number)
            cluster = random.integers(_CLUSTERS, size=n)
            topics = np.array([random.choice(_TOPICS, _TOPICS_OF_A_DOCUMENT, p=of_cluster[one]) for one in cluster])
            topic = np.take_along_axis(topics, random.integers(_TOPICS_OF_A_DOCUMENT, size=(n, n_tokens)), axis=1)
            text = words[order[topic, np.searchsorted(ranks, random.random((n, n_tokens)))]]
            year = 1970 + cluster + random.integers(5, size=n)
            journal = 10 * cluster + random.integers(10, size=n)
            for j in range(n):
                about = {
                    "id": f"d{number + j}",
                    "text": " ".join(text[j]),
                    "year": int(year[j]),
                    "journal": f"j{journal[j]}",
                }
                stream.write(json.dumps(about) + "\n")


def _letters(number: int) -> str:
    """Return a made-up word, which no list of stop words contains."""
    return "zq" + "".join("abcdefghij"[int(digit)] for digit in f"{number:05d}")


def measured(command: Sequence[str], log: Path, given: Path | None) -> Taken:
    """Run a command, write its output and errors to ``log``, and return its time and memory.

    Raises RuntimeError if the command fails.
    """
    before, started, most = _processor(), time.monotonic(), 0
    with log.open("wb") as told, (given or Path("/dev/null")).open("rb") as lines:
        process = subprocess.Popen(command, stdin=lines, stdout=told, stderr=told)
        while process.poll() is None:
            most = max(most, sum(map(_anonymous, _tree(process.pid))))
            time.sleep(_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}; {log} has what it said")
    return Taken(time.monotonic() - started, _processor() - before, most)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(process: int) -> list[int]:
    """Return a process and all its running descendants."""
    found = [process]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, _read(children).split())
    return found


def _anonymous(process: int) -> int:
    """Return the bytes of anonymous resident memory of a process."""
    for line in _read(Path(f"/proc/{process}/smaps_rollup")).splitlines():
        if line.startswith("Anonymous:"):
            return 1024 * int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    """Read a file of /proc; "" if its process has ended."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


if __name__ == "__main__":
    sys.exit(main())
