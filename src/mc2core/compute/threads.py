"""Fixed blocks of work on threads, and BLAS under the same budget: bits do not depend on the number of threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController

from mc2core.base.checks import whole

#: more threads are a mistake: each needs memory, and no machine has so many cores
MAX_THREADS = 1024


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


class Helpers(ThreadPoolExecutor):
    """``n_helpers`` threads in addition to the caller's own."""

    def __init__(self, n_helpers: int) -> None:
        super().__init__(n_helpers)
        self.n_helpers = n_helpers

    def submit(self, *work: Any, **given: Any) -> Any:
        """Submit work as every executor. Raises ValueError if the system starts no more threads."""
        try:
            return super().submit(*work, **given)
        except RuntimeError as error:
            raise ValueError(f"{self.n_helpers} threads are too many for this system ({error}); use fewer") from error


@contextmanager
def thread_budget(threads: int) -> Iterator[Executor | None]:
    """Yield ``threads`` - 1 helpers of this thread, or None for none, and limit every BLAS call to one thread.

    With several threads, BLAS sums in a different order and competes for the cores.
    """
    whole("threads", threads, most=MAX_THREADS)
    with _libraries().limit(limits=1):
        if threads == 1:
            yield None
            return
        with Helpers(threads - 1) as pool:
            yield pool


def n_threads(pool: Executor | None) -> int:
    """Return the number of threads: the caller's and its helpers."""
    return 1 if pool is None else cast(Helpers, pool).n_helpers + 1


def in_blocks(pool: Executor | None, work: Callable[[int, int], Any], size: int, block: int) -> list[Any]:
    """Run ``work(first, last)`` on fixed blocks of ``range(size)``; returns results in the order of the blocks."""
    bounds = [(first, min(first + block, size)) for first in range(0, size, block)]
    if pool is None or len(bounds) == 1:
        return [work(*bound) for bound in bounds]
    results, left = [None] * len(bounds), deque(range(len(bounds)))

    def take() -> None:
        while left:
            try:
                number = left.popleft()
            except IndexError:  # another thread was faster
                return
            results[number] = work(*bounds[number])

    # a task for each helper, not for each block: handing one over takes as long as a small block
    helpers = [pool.submit(take) for _ in range(min(n_threads(pool), len(bounds)) - 1)]
    try:
        take()
    finally:
        left.clear()
        for helper in helpers:
            helper.result()
    return results


def look_ahead(
    pool: Executor | None, first: int, last: int, look: Callable[[int, int, int], int]
) -> tuple[int, list[int]]:
    """Evaluate proposals on several threads ahead, each as if all earlier ones were rejected, as most of them are.

    A thread takes the next proposal when it has finished one, because some take a thousand times as long as others.

    Parameters
    ----------
    first, last : int
        Numbers of the remaining proposals.
    look : callable
        (thread, first, last) -> number of the first of these proposals that is accepted, or last. It changes nothing
        that another thread reads; the accepted move stays with the thread.

    Returns
    -------
    int
        Number of the first accepted proposal; last if there is none.
    list of int
        Threads with an accepted proposal, the earliest proposal first. The proposals of the other threads must be
        evaluated again, so that the chain equals the chain of one thread.
    """
    n = n_threads(pool)
    if n == 1:
        found = look(0, first, last)
        return found, [0] if found < last else []
    left = deque(range(first, last))
    hits: list[tuple[int, int]] = []

    def take(thread: int, _: int) -> None:
        # numbers are taken in order, so all numbers before the first accepted one have been evaluated
        while left and not hits:
            try:
                number = left.popleft()
            except IndexError:  # another thread was faster
                return
            if look(thread, number, number + 1) == number:
                hits.append((number, thread))
                return

    in_blocks(pool, take, n, 1)
    hits.sort()
    return (hits[0][0] if hits else last), [thread for _, thread in hits]
