"""Fixed blocks of work on threads, and BLAS under the same budget: bits do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def thread_budget(threads: int) -> Iterator[Executor | None]:
    """A pool of ``threads`` workers (None for one), while every BLAS call is held to its caller's thread.

    A BLAS of several threads sums in another order than one of one thread, and would fight with ours for the cores.
    """
    with _libraries().limit(limits=1):
        if threads == 1:
            yield None
            return
        with ThreadPoolExecutor(threads) as pool:
            yield pool


def in_blocks(pool: Executor | None, work: Callable[[int, int], Any], size: int, block: int) -> list[Any]:
    """``work(first, last)`` over fixed blocks of ``range(size)``; results in the order of the blocks."""
    bounds = [(first, min(first + block, size)) for first in range(0, size, block)]
    if pool is None or len(bounds) == 1:
        return [work(*bound) for bound in bounds]
    return list(pool.map(lambda bound: work(*bound), bounds))
