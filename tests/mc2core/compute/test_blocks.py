"""Blocks of work on threads, and memory that is used again."""

import threading
import time

import numpy as np
import pytest

from mc2core.compute.buffers import Buffers
from mc2core.compute.threads import in_blocks, look_ahead, thread_budget


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


def test_the_callers_thread_works_too_and_no_thread_is_beyond_it():
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


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("made", [{17}, {5, 6, 7, 39}, {4, 17}, {40}, set()])
def test_the_first_proposal_is_found_on_any_number_of_threads(threads, made):
    looked, holds, is_late = [], {}, threading.Event()

    def look(thread, first, last):
        assert thread not in holds  # what it is to make is still with it
        for number in range(first, last):
            looked.append(number)
            if number == min(made, default=-1):
                is_late.wait(0.02)  # others go on meanwhile
            if number in made:
                holds[thread] = number
                return number
        return last

    with thread_budget(threads) as pool:
        found, hits = look_ahead(pool, 4, 40, look)
    expected = min(made - {40}, default=40)
    assert found == expected
    assert sorted(looked) == sorted(set(looked))
    assert set(range(4, expected)) <= set(looked) <= set(range(4, 40))
    assert [holds[thread] for thread in hits] == sorted(holds.values())


def test_a_thread_goes_on_while_another_has_a_long_proposal():
    others = threading.Event()

    def look(_, first, last):
        if first == 0:
            assert others.wait(20), "nobody went on to the last proposal"
        elif last == 30:
            others.set()
        return last

    with thread_budget(2) as pool:
        assert look_ahead(pool, 0, 30, look) == (30, [])


def test_threads_look_no_further_once_a_proposal_is_to_be_made():
    looked = []

    def look(_, first, last):
        looked.append(first)
        time.sleep(0.002)
        return first if first == 3 else last

    with thread_budget(2) as pool:
        assert look_ahead(pool, 0, 200, look)[0] == 3
    assert len(looked) < 20


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
