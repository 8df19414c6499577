"""What the fuzz scripts share: damage valid input at random, and see that a reader reads it or refuses it.

A case mutates one file of a valid input (bytes flipped, cut out, doubled, joined from two places, words of the format
put in) and must end in a result or a ValueError of one line, within ten seconds. A case is known by parser, seed and
number. Each parser runs in a process of its own, so that a crash of a library is found too.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

LONGEST_SECONDS = 10.0
#: of the clock: a case of which nothing is heard for so long hangs
LONGEST_SILENCE_SECONDS = 300.0
#: after so many a parser is left alone
MOST_FAILURES = 5
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


@dataclass
class Result:
    """Cases of one parser, how many of them were refused, the slowest in seconds of processor, and what failed."""

    cases: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)


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


def try_case(name: str, parser: Parser, seed: int, case: int, scratch: Path) -> tuple[bool, float, str]:
    """(was it refused, seconds of processor, what is wrong or ""); the input stays in ``scratch / "input"``."""
    write(scratch / "input", damaged(parser, np.random.default_rng([seed, case, *name.encode()])))
    refused, wrong = False, ""
    began = time.process_time()
    try:
        parser.read(scratch / "input", scratch / "result")
    except ValueError as error:
        refused = True
        if len(str(error).splitlines()) != 1:
            wrong = f"a message that is not one line: {error!r}"
    except Exception:
        wrong = traceback.format_exc()
    spent = time.process_time() - began
    if spent > LONGEST_SECONDS:
        wrong = wrong or f"it took {spent:.1f} s"
    return refused, spent, wrong


def fuzz(name: str, parser: Parser, seconds: float, seed: int, scratch: Path, kept: Path) -> Result:
    """Try case after case for some seconds; inputs that failed are left in the folder ``kept``."""
    result = Result()
    left = seconds
    while left > 0 and len(result.failures) < MOST_FAILURES:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        arguments = (name, parser, seed, result.cases, left, scratch, kept, sender)
        process = multiprocessing.get_context("fork").Process(target=_try_cases, args=arguments)
        process.start()
        sender.close()  # so that the end of the process is the end of the pipe
        began, is_heard = time.monotonic(), True
        while len(result.failures) < MOST_FAILURES and (is_heard := receiver.poll(LONGEST_SILENCE_SECONDS)):
            try:
                answer = receiver.recv()
            except EOFError:
                break
            if answer is None:  # compiled code is made or loaded before a clock runs
                began = time.monotonic()
                continue
            refused, spent, wrong = answer
            if wrong:
                result.failures.append(f"{name}, seed {seed}, case {result.cases}: {wrong}")
            result.cases += 1
            result.refused += refused
            result.slowest = max(result.slowest, spent)
        else:
            process.kill()
        process.join()
        left -= time.monotonic() - began
        if process.exitcode == 0:
            break
        if len(result.failures) < MOST_FAILURES:
            wrong = f"it crashed (exit code {process.exitcode})" if is_heard else "it hangs"
            result.failures.append(f"{name}, seed {seed}, case {result.cases}: {wrong}")
            _keep(name, seed, result.cases, scratch, kept)
            result.cases += 1
    return result


def _try_cases(
    name: str, parser: Parser, seed: int, first: int, seconds: float, scratch: Path, kept: Path, sender: Connection
) -> None:
    write(scratch / "input", parser.inputs[0])
    parser.read(scratch / "input", scratch / "result")
    sender.send(None)
    end = time.monotonic() + seconds
    for case in itertools.count(first):
        if time.monotonic() > end:
            return
        refused, spent, wrong = try_case(name, parser, seed, case, scratch)
        if wrong:
            _keep(name, seed, case, scratch, kept)
        sender.send((refused, spent, wrong))


def _keep(name: str, seed: int, case: int, scratch: Path, kept: Path) -> None:
    """Copy the input of a case that failed."""
    target = kept / f"fuzz-{name.replace(' ', '-')}-{seed}-{case}"
    shutil.copytree(scratch / "input", target, dirs_exist_ok=True)


def write(folder: Path, files: Input) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def main(description: str, parsers_of: Callable[[Path | None], Mapping[str, Parser]]) -> int:
    """Fuzz each parser for some time; inputs that failed are kept in the working folder."""
    options_of = argparse.ArgumentParser(description=description.split("\n")[0])
    options_of.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    options_of.add_argument("--seed", type=int, default=0)
    options_of.add_argument("--mirror", type=Path, help="folder with real files, damaged as well as written ones")
    options_of.add_argument("--only", nargs="*", help="parsers to run; all by default")
    options_of.add_argument("--case", type=int, help="run this case alone, of the parsers of --only")
    options = options_of.parse_args()
    failures = 0
    for name, parser in parsers_of(options.mirror).items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            if options.case is not None:
                print(name, *try_case(name, parser, options.seed, options.case, Path(scratch)))
                continue
            result = fuzz(name, parser, options.seconds, options.seed, Path(scratch), Path.cwd())
        print(
            f"{name}: {result.cases} cases, {result.refused} refused, slowest {result.slowest:.2f} s, "
            f"{len(result.failures)} failed (seed {options.seed})",
            flush=True,
        )
        for failure in result.failures:
            print(failure, flush=True)
        failures += len(result.failures)
    return int(failures > 0)
