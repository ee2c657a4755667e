import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data.layout import Layout
from isplitlbi.runtime import blocks
from isplitlbi.runtime.blocks import Blocks
from isplitlbi.runtime.local import Local, available_threads
from votes import random_votes


def blocks_of(votes, n_threads=1):
    return Blocks(Layout.of(votes), Local(votes, n_threads))


def ranges_of(votes, size, n_threads=1, most=blocks.MOST_BLOCKS):
    """Return the blocks' ranges, were a block meant to hold this many edges."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "EDGES_PER_BLOCK", size)
        patch.setattr(blocks, "MOST_BLOCKS", most)
        return blocks_of(votes, n_threads).ranges


def assert_partition(ranges, n_users):
    """Assert that contiguous ranges cover all users once, none of them empty."""
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n_users
    assert all(begin < end for begin, end in ranges)
    assert all(one[1] == other[0] for one, other in pairwise(ranges))


@given(
    seed=st.integers(0, 10_000),
    n_users=st.integers(1, 40),
    n_votes=st.integers(1, 200),
    size=st.integers(1, 50),
    kept=st.floats(0.0, 1.0),
)
def test_blocks_cover_all_users_exactly_once(seed, n_users, n_votes, size, kept):
    whole = random_votes(seed, n_users=n_users, n_votes=n_votes)
    silent = np.random.default_rng(seed).random(whole.n_users) > kept
    for votes in (whole, whole.subset(~silent[whole.user])):
        assert_partition(ranges_of(votes, size), votes.n_users)


def test_a_small_study_is_one_block():
    votes = random_votes(0, n_users=9)
    assert blocks_of(votes, 4).ranges == [(0, 9)]


def test_users_are_shared_out_by_their_edges():
    votes = random_votes(0, n_users=200, n_items=10, n_votes=4000)
    ranges = ranges_of(votes, 300)
    start = Layout.of(votes).edges.start
    n_edges = [start[end] - start[begin] for begin, end in ranges]
    assert len(ranges) > 5
    assert max(n_edges) < 2 * min(n_edges)


def test_there_is_a_limit_to_the_number_of_blocks():
    votes = random_votes(0, n_users=50, n_votes=400)
    ranges = ranges_of(votes, 1, most=7)
    assert len(ranges) == 7
    assert_partition(ranges, votes.n_users)


@pytest.mark.parametrize("n_users", [1, 2, 5])
def test_there_are_never_more_blocks_than_users(n_users):
    votes = random_votes(0, n_users=n_users, n_items=10, n_votes=300)
    assert ranges_of(votes, 1) == [(user, user + 1) for user in range(n_users)]


def test_users_without_votes_belong_to_a_block_too():
    whole = random_votes(0, n_users=10, n_items=8, n_votes=300)
    votes = whole.subset(np.isin(whole.user, [3, 4, 7]))
    ranges = ranges_of(votes, 5)
    assert len(ranges) >= 3
    assert_partition(ranges, 10)


def test_where_blocks_lie_does_not_depend_on_the_threads():
    votes = random_votes(0, n_users=20, n_votes=200)
    ranges = ranges_of(votes, 16)
    assert len(ranges) > 3
    assert all(ranges_of(votes, 16, n_threads) == ranges for n_threads in (2, 3, 100))


@pytest.fixture
def several(monkeypatch):
    """Return a way to get several blocks on some threads."""
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 10)
    votes = random_votes(0, n_users=30, n_items=6, n_votes=300)
    return lambda n_threads: blocks_of(votes, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_blocks(several, n_threads):
    parts = several(n_threads)
    first_done = threading.Event()

    def work(block, users):
        if n_threads > 1 and block == 0:
            first_done.wait(5.0)  # the first block ends last
        if block == 1:
            first_done.set()
        return block, users

    results = parts.run(work)
    assert len(parts) == len(results) > 5
    assert results == list(enumerate(parts.ranges))


def test_threads_work_side_by_side(several):
    both = threading.Barrier(2, timeout=10.0)
    parts = several(2)

    def work(block, _users):
        if block < 2:
            both.wait()
        return threading.get_ident()

    assert len(set(parts.run(work))) == 2


def test_one_thread_is_the_callers_own(several):
    assert set(several(1).run(lambda *_: threading.get_ident())) == {threading.get_ident()}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("bad", [0, 3, -1])
def test_an_exception_in_a_block_comes_out(several, n_threads, bad):
    parts = several(n_threads)
    bad %= len(parts)

    def work(block, users):
        if block == bad:
            raise ZeroDivisionError("users {} to {}".format(*users))
        return block

    with pytest.raises(ZeroDivisionError, match="users {} to {}".format(*parts.ranges[bad])):
        parts.run(work)
    assert parts.run(lambda block, *_: block) == list(range(len(parts)))  # and work goes on


def test_threads_end_with_their_blocks(several):
    before = set(threading.enumerate())
    parts = several(3)
    parts.run(lambda *_: None)
    started = set(threading.enumerate()) - before
    assert 1 <= len(started) <= 3
    del parts
    for thread in started:
        thread.join(10.0)
        assert not thread.is_alive()


def test_this_process_may_use_a_thread():
    assert available_threads() >= 1
