"""Cases tried one after another in a child process, so that a crash of compiled code is a failure like any other."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection


@dataclass
class Outcome:
    """What became of a case: ``wrong`` says what failed, "" if nothing did; ``counts`` are worth counting."""

    wrong: str = ""
    counts: list[str] = field(default_factory=list)
    seconds: float = 0.0


def outcomes(
    try_one: Callable[[int], Outcome],
    seconds: float,
    *,
    first: int = 0,
    prepare: Callable[[], None] = lambda: None,
    silence: float = 300.0,
) -> Iterator[tuple[int, Outcome]]:
    """Yield (number, outcome) of case after case, for some seconds and at least of one.

    prepare : what each new child does first; not counted among the seconds.
    silence : a case of which nothing is heard for so many seconds hangs.
    """
    context = multiprocessing.get_context("fork")
    left, number = seconds, first
    while left > 0 or number == first:
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_try_cases, args=(try_one, prepare, number, left, sender))
        child.start()
        sender.close()  # so that the end of the child is the end of the pipe
        began, is_heard = time.monotonic(), True
        try:
            while is_heard := receiver.poll(silence):
                outcome = receiver.recv()
                if outcome is None:
                    began = time.monotonic()
                    continue
                yield number, outcome
                number += 1
        except EOFError:
            child.join()
        finally:  # one that hangs, or whose outcomes are not wanted any more
            child.kill()
            child.join()
        left -= time.monotonic() - began
        if child.exitcode == 0:
            return
        yield number, Outcome(f"it crashed (exit code {child.exitcode})" if is_heard else f"no end in {silence:.0f} s")
        number += 1


def _try_cases(
    try_one: Callable[[int], Outcome], prepare: Callable[[], None], first: int, seconds: float, sender: Connection
) -> None:
    prepare()
    sender.send(None)
    end = time.monotonic() + seconds
    for number in itertools.count(first):
        sender.send(try_one(number))
        if time.monotonic() > end:
            return
