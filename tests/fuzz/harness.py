"""What the fuzz scripts share: damage valid input at random, and see that a reader reads it or refuses it.

A case mutates one file of a valid input (bytes flipped, cut out, doubled, joined from two places, words of the format
put in) and must end in a result or a ValueError of one line, within ten seconds. Each parser runs in a process of its
own, so that a crash of a library is found too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LONGEST_SECONDS = 10.0
Input = Mapping[str, bytes]


@dataclass
class Parser:
    """read : called with the folder of the input's files and a path for results. inputs : valid ones, {name: content}.

    tokens : words of the format. pack : ways to compress a file, one of which is taken at random.
    """

    read: Callable[[Path, Path], None]
    inputs: Sequence[Input]
    tokens: Sequence[bytes] = ()
    pack: Sequence[Callable[[bytes], bytes]] = field(default_factory=lambda: [bytes])


def mutate(data: bytes, draw: np.random.Generator, tokens: Sequence[bytes]) -> bytes:
    """A few random edits."""
    changed = bytearray(data)
    for _ in range(draw.integers(1, 6)):
        at = int(draw.integers(0, len(changed) + 1))
        length = int(draw.integers(1, 200))
        match draw.integers(0, 6):
            case 0:
                changed[at : at + 1] = bytes([draw.integers(0, 256)])
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * int(draw.integers(1, 4))
            case 3:
                other = int(draw.integers(0, len(changed) + 1))
                changed[at:at] = changed[other : other + length]
            case 4 if tokens:
                changed[at:at] = tokens[draw.integers(0, len(tokens))] * int(draw.integers(1, 30))
            case 5:
                del changed[at + 1000 :]
    return bytes(changed)


def damaged(parser: Parser, draw: np.random.Generator) -> dict[str, bytes]:
    """A valid input with one file damaged, before or after it is compressed."""
    files = dict(parser.inputs[draw.integers(0, len(parser.inputs))])
    name = sorted(files)[draw.integers(0, len(files))]
    pack = parser.pack[draw.integers(0, len(parser.pack))]
    before = draw.random() < 0.8 or len(parser.pack) == 1
    files[name] = (
        pack(mutate(files[name], draw, parser.tokens)) if before else mutate(pack(files[name]), draw, parser.tokens)
    )
    return files


def fuzz(name: str, parser: Parser, seconds: float, seed: int, scratch: Path) -> None:
    """Run one parser; ends the process with 1 at the first failure, whose input is left in ``scratch``."""
    draw = np.random.default_rng([seed, *name.encode()])
    folder, target = scratch / "input", scratch / "result"
    write(folder, parser.inputs[0])
    parser.read(folder, target)  # compiled code is made or loaded before a clock runs
    cases, refused, slowest, end = 0, 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        cases += 1
        write(folder, damaged(parser, draw))
        failed = ""
        began = time.process_time()
        try:
            parser.read(folder, target)
        except ValueError as error:
            refused += 1
            failed = "" if len(str(error).splitlines()) == 1 else f"a message of several lines: {error}"
        except Exception:
            failed = traceback.format_exc()
        spent = time.process_time() - began
        slowest = max(slowest, spent)
        if spent > LONGEST_SECONDS:
            failed = failed or f"it took {spent:.1f} s"
        if failed:
            print(f"{name}: case {cases} failed: {failed}", flush=True)
            raise SystemExit(1)
    print(f"{name}: {cases} cases, {refused} refused, slowest {slowest:.2f} s", flush=True)


def write(folder: Path, files: Input) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def main(description: str, parsers_of: Callable[[Path | None], Mapping[str, Parser]]) -> int:
    """Fuzz each parser for some time; the input of a failure is kept in the working folder."""
    options_of = argparse.ArgumentParser(description=description.split("\n")[0])
    options_of.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    options_of.add_argument("--seed", type=int, default=0)
    options_of.add_argument("--mirror", type=Path, help="folder with real files, damaged as well as written ones")
    options_of.add_argument("--only", nargs="*", help="parsers to run; all by default")
    options = options_of.parse_args()
    failures = 0
    for name, parser in parsers_of(options.mirror).items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            arguments = (name, parser, options.seconds, options.seed, Path(scratch))
            process = multiprocessing.get_context("fork").Process(target=fuzz, args=arguments)
            process.start()
            process.join()
            if process.exitcode:
                kept = Path(f"fuzz-{name}-{options.seed}")
                write(kept, {one.name: one.read_bytes() for one in (Path(scratch) / "input").iterdir()})
                print(f"{name}: failed (exit code {process.exitcode}), its input is in {kept}", flush=True)
                failures += 1
    return int(failures > 0)
