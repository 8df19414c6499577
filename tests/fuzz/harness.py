"""What the fuzz scripts share: damage valid input at random, and see that a reader reads it or refuses it.

A case mutates one file of a valid input (bytes flipped, cut out, doubled, joined from two places, words of the format
put in) and must end in a result or a ValueError, of one line or a line for each bad row, within ten seconds. A case is
known by parser, seed and number. Each parser runs in a process of its own, so that a crash of a library is found too.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from reliability.children import Outcome, outcomes

LONGEST_SECONDS = 10.0
#: after so many a parser is left alone
MAX_FAILURES = 5
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


def mutate(data: bytes, rng: np.random.Generator, tokens: Sequence[bytes]) -> bytes:
    """A few random edits."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(0, len(changed) + 1))
        length = int(rng.integers(1, 200))
        match rng.integers(0, 6):
            case 0:
                changed[at : at + 1] = bytes([rng.integers(0, 256)])
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * int(rng.integers(1, 4))
            case 3:
                other = int(rng.integers(0, len(changed) + 1))
                changed[at:at] = changed[other : other + length]
            case 4 if tokens:
                changed[at:at] = tokens[rng.integers(0, len(tokens))] * int(rng.integers(1, 30))
            case 5:
                del changed[at + 1000 :]
    return bytes(changed)


def damaged(parser: Parser, rng: np.random.Generator) -> dict[str, bytes]:
    """A valid input with one file damaged, before or after it is compressed."""
    files = dict(parser.inputs[rng.integers(0, len(parser.inputs))])
    name = sorted(files)[rng.integers(0, len(files))]
    pack = parser.pack[rng.integers(0, len(parser.pack))]
    before = rng.random() < 0.8 or len(parser.pack) == 1
    files[name] = (
        pack(mutate(files[name], rng, parser.tokens)) if before else mutate(pack(files[name]), rng, parser.tokens)
    )
    return files


def try_case(name: str, parser: Parser, seed: int, case: int, scratch: Path) -> Outcome:
    """Try one case; its input is in ``scratch / "input"``, and stays in another folder there if it failed."""
    write(scratch / "input", damaged(parser, np.random.default_rng([seed, case, *name.encode()])))
    outcome = Outcome()
    began = time.process_time()
    try:
        parser.read(scratch / "input", scratch / "result")
    except ValueError as error:
        outcome.counts.append("refused")
        if len(str(error).splitlines()) != 1 and "rows cannot be read" not in str(error):
            outcome.wrong = f"a message that is not one line: {error!r}"
    except Exception:
        outcome.wrong = traceback.format_exc()
    outcome.seconds = time.process_time() - began
    if outcome.seconds > LONGEST_SECONDS:
        outcome.wrong = outcome.wrong or f"it took {outcome.seconds:.1f} s"
    if outcome.wrong:
        shutil.copytree(scratch / "input", scratch / f"case {case}", dirs_exist_ok=True)
    return outcome


def fuzz(name: str, parser: Parser, seconds: float, seed: int, scratch: Path) -> Result:
    """Try case after case for some seconds; inputs that failed stay in ``scratch``."""

    def prepare() -> None:  # compiled code is made or loaded before a clock runs
        write(scratch / "input", parser.inputs[0])
        parser.read(scratch / "input", scratch / "result")

    result = Result()
    tried = outcomes(lambda case: try_case(name, parser, seed, case, scratch), seconds, prepare=prepare)
    for case, outcome in tried:
        result.cases += 1
        result.refused += "refused" in outcome.counts
        result.slowest = max(result.slowest, outcome.seconds)
        if outcome.wrong:
            result.failures.append(f"{name}, seed {seed}, case {case}: {outcome.wrong}")
        if len(result.failures) == MAX_FAILURES:
            break
    tried.close()
    return result


def write(folder: Path, files: Input) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def main(description: str, parsers_of: Callable[[Path | None], Mapping[str, Parser]]) -> int:
    """Fuzz each parser for some time, or repeat one case and leave its input in the working folder.

    Archives hold the time of their writing, so that a repeated case may differ in a few bytes from the one that failed.
    """
    options_of = argparse.ArgumentParser(description=description.split("\n")[0])
    options_of.add_argument("--seconds", type=float, default=60.0, help="for each parser")
    options_of.add_argument("--seed", type=int, default=0)
    options_of.add_argument("--data-folder", type=Path, help="folder with real files, damaged as well as written ones")
    options_of.add_argument("--only", nargs="*", help="parsers to run; all by default")
    options_of.add_argument("--case", type=int, help="this case alone, of the parsers of --only")
    options = options_of.parse_args()
    failures = 0
    for name, parser in parsers_of(options.data_folder).items():
        if options.only and name not in options.only:
            continue
        if options.case is not None:
            print(name, try_case(name, parser, options.seed, options.case, Path(f"fuzz-{name}-{options.case}")))
            continue
        scratch = Path(tempfile.mkdtemp())
        result = fuzz(name, parser, options.seconds, options.seed, scratch)
        print(
            f"{name}: {result.cases} cases, {result.refused} refused, slowest {result.slowest:.2f} s, "
            f"{len(result.failures)} failed (seed {options.seed})",
            flush=True,
        )
        for failure in result.failures:
            print(f"{failure} (input in {scratch})", flush=True)
        if not result.failures:
            shutil.rmtree(scratch)
        failures += len(result.failures)
    return int(failures > 0)
