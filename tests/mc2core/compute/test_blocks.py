"""Blocks of work on threads, and memory that is used again."""

import threading

import numpy as np
import pytest

from mc2core.compute.buffers import Buffers
from mc2core.compute.threads import in_blocks, thread_budget


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("size", "block"), [(0, 3), (2, 3), (10, 3), (400, 1)])
def test_every_block_is_done_once_and_results_are_in_order(threads, size, block):
    done = []

    def work(first, last):
        done.append((first, last))
        return first

    with thread_budget(threads) as pool:
        results = in_blocks(pool, work, size, block)
    assert results == list(range(0, size, block))
    assert sorted(done) == [(first, min(first + block, size)) for first in range(0, size, block)]


def test_the_callers_thread_works_too_and_a_budget_has_no_thread_beyond_it():
    meet = threading.Barrier(3, timeout=20)  # passed only where three blocks are done at a time
    with thread_budget(3) as pool:
        known = set(in_blocks(pool, lambda *_: (meet.wait(), threading.get_ident())[1], 3, 1))
        assert threading.get_ident() in known
        assert len(known) == 3
        names = set(in_blocks(pool, lambda *_: threading.get_ident(), 500, 1))
    assert names <= known


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_ends_the_blocks(threads):
    done = []

    def work(first, _):
        done.append(first)
        raise ValueError(f"block {first}")

    with thread_budget(threads) as pool, pytest.raises(ValueError, match="block"):
        in_blocks(pool, work, 1000, 1)
    assert len(done) <= threads


def test_buffers_give_the_same_memory_again():
    buffers = Buffers()
    one = buffers.empty("a", 10, 4)
    one[:] = 7.0
    again, other = buffers.empty("a", 3, 4), buffers.empty("b", 10, 4)
    assert np.shares_memory(one, again)
    assert not np.shares_memory(one, other)
    np.testing.assert_array_equal(again, 7.0)
    grown = buffers.empty("a", 100, 4)
    assert grown.shape == (100, 4)
    assert not np.shares_memory(one, grown)
