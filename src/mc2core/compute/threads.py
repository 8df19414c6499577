"""Parallel work in fixed blocks, with BLAS limited to one thread: results do not depend on the number of threads."""

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

#: largest accepted number of threads; no machine has more cores, and each thread needs memory
MAX_THREADS = 1024


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


class Helpers(ThreadPoolExecutor):
    """Thread pool of ``n_helpers`` threads, which work in addition to the calling thread."""

    def __init__(self, n_helpers: int) -> None:
        super().__init__(n_helpers)
        self.n_helpers = n_helpers

    def submit(self, *work: Any, **given: Any) -> Any:
        """Submit work to the pool; raise ValueError if the system cannot start another thread."""
        try:
            return super().submit(*work, **given)
        except RuntimeError as error:
            raise ValueError(f"{self.n_helpers} threads are too many for this system ({error}); use fewer") from error


@contextmanager
def thread_budget(threads: int) -> Iterator[Executor | None]:
    """Yield a pool of ``threads`` - 1 helper threads (None for one thread), and limit every BLAS call to one thread.

    With several threads, BLAS would sum in a different order and compete for the cores.
    """
    whole("threads", threads, most=MAX_THREADS)
    with _libraries().limit(limits=1):
        if threads == 1:
            yield None
            return
        with Helpers(threads - 1) as pool:
            yield pool


def n_threads(pool: Executor | None) -> int:
    """Return the number of threads: the calling thread and the helpers of ``pool``."""
    return 1 if pool is None else cast(Helpers, pool).n_helpers + 1


def in_blocks(pool: Executor | None, work: Callable[[int, int], Any], size: int, block: int) -> list[Any]:
    """Run ``work(first, last)`` on fixed blocks of ``range(size)``; return the results in the order of the blocks."""
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

    # one task per helper, not per block, because submitting a task takes as long as a small block
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
    """Evaluate proposals on several threads at once, each as if all earlier proposals were rejected, as most are.

    A thread takes the next proposal when it finishes one, because some proposals take a thousand times as long as
    others.

    Parameters
    ----------
    first, last : int
        Numbers of the remaining proposals.
    look : callable
        Function of (thread, first, last) that returns the number of the first accepted proposal, or last. It does not
        change data that other threads read; the accepted move is stored in data of the thread.

    Returns
    -------
    int
        Number of the first accepted proposal; last if there is none.
    list of int
        Threads with an accepted proposal, in the order of the proposals. Only the first is valid; later proposals must
        be evaluated again, so that the chain equals the chain of one thread.
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
