"""Fixed blocks of work on threads, and BLAS under the same budget: bits do not depend on the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


class Helpers(ThreadPoolExecutor):
    """Threads beside the caller's own, ``n_helpers`` of them."""

    def __init__(self, n_helpers: int) -> None:
        super().__init__(n_helpers)
        self.n_helpers = n_helpers


@contextmanager
def thread_budget(threads: int) -> Iterator[Executor | None]:
    """The ``threads`` - 1 helpers of this thread (None for none), while every BLAS call is held to its caller's thread.

    A BLAS of several threads sums in another order than one of one thread, and would fight with ours for the cores.
    """
    with _libraries().limit(limits=1):
        if threads == 1:
            yield None
            return
        with Helpers(threads - 1) as pool:
            yield pool


def in_blocks(pool: Executor | None, work: Callable[[int, int], Any], size: int, block: int) -> list[Any]:
    """``work(first, last)`` over fixed blocks of ``range(size)``; results in the order of the blocks."""
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
    helpers = [pool.submit(take) for _ in range(min(cast(Helpers, pool).n_helpers, len(bounds) - 1))]
    try:
        take()
    finally:
        left.clear()
        for helper in helpers:
            helper.result()
    return results
