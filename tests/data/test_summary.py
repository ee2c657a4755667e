"""What is known of votes without holding them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data.summary import Summary, digest_of
from votes import from_rows, rows


def test_a_summary_says_what_is_in_the_votes():
    votes = Comparisons.from_arrays(["u", "v", "v"], ["a"] * 3, ["b"] * 3, [1, 0, 0])
    found = Summary.of(votes)
    assert str(found) == "3 votes (66.7 % ties) by 2 users on 2 items"
    assert repr(votes) == f"Comparisons: {found}"
    assert (found.n_votes, found.n_ties) == (3, 2)
    assert found.tie_share == pytest.approx(2 / 3)


@given(rows, st.booleans(), st.integers(0, 2**31))
def test_a_fingerprint_knows_the_votes_and_not_their_order(rows, grouped, seed):
    votes = from_rows(rows, grouped=grouped)
    order = np.random.default_rng(seed).permutation(len(votes))
    assert Summary.of(votes.subset(order)).fingerprint == Summary.of(votes).fingerprint
    if len(votes) > 1:
        assert Summary.of(votes.subset(order[1:])).fingerprint != Summary.of(votes).fingerprint


@given(rows, st.booleans())
def test_the_digests_of_parts_add_up_to_that_of_the_whole(rows, grouped):
    votes = from_rows(rows, grouped=grouped)
    cut = votes.n_users // 2
    mine = votes.subset(votes.user < cut)
    rest = votes.subset(votes.user >= cut)
    counted_anew = Comparisons(
        rest.users, rest.items, rest.user - np.int32(cut), rest.left, rest.right, rest.outcome,
        rest.weight, rest.group,
    )  # fmt: skip
    both = digest_of(mine) + digest_of(counted_anew, cut)
    np.testing.assert_array_equal(both, digest_of(votes))


def test_a_fingerprint_sees_ids_and_counts():
    found = Summary.of(Comparisons.from_arrays(["u", "v"], ["a", "b"], ["b", "a"], [1, 0]))
    others = [
        replace(found, users=np.array(["u", "w"], object)),
        replace(found, items=np.array(["a", "c"], object)),
        replace(found, votes_per_user=np.array([2, 0])),
        replace(found, n_ties=2),
        replace(found, digest=found.digest + np.array([0, 1], dtype=np.uint64)),
        replace(found, digest=found.digest + np.array([1, 0], dtype=np.uint64)),
    ]
    assert len({each.fingerprint for each in (found, *others)}) == 7
    assert found.digest[0] != found.digest[1]


@pytest.mark.parametrize(
    "column", ["user", "left", "right", "winner", "weight", "group", "time", "duration"]
)
def test_a_fingerprint_sees_every_column(column):
    columns = {
        "user": ["u", "u", "v"], "left": ["a", "b", "c"], "right": ["b", "c", "a"],
        "winner": [1, 0, -1], "weight": [1.0, 2.0, 3.0], "group": ["g", "h", "h"],
        "time": [1.0, 2.0, 3.0], "duration": [1.0, 2.0, 3.0],
    }  # fmt: skip
    other = dict(columns)
    changed = {
        "user": "v", "left": "a", "right": "a", "winner": -1, "weight": 5.0, "group": "g",
        "time": 5.0, "duration": 5.0,
    }  # fmt: skip
    other[column] = [columns[column][0], changed[column], columns[column][2]]

    def fingerprint(of):
        votes = Comparisons.from_arrays(outcome=of["winner"], **without(of, "winner"))
        return Summary.of(votes).fingerprint

    assert fingerprint(columns) != fingerprint(other)


def without(table, name):
    return {each: values for each, values in table.items() if each != name}


def test_a_fingerprint_tells_weights_times_and_durations_apart():
    votes = Comparisons.from_arrays(["u", "v"], ["a", "b"], ["b", "a"], [1, 0])
    numbers = np.array([1.0, 2.0])
    found = [votes, *(replace(votes, **{n: numbers}) for n in ("weight", "time", "duration"))]
    assert len({Summary.of(each).fingerprint for each in found}) == 4


FINGERPRINT = "c5193dbee7f4f28890bbd583ef902539ee19bf7e3c72c27d9a0e86dbced5370e"


def test_the_fingerprint_of_votes_without_times_stays_what_it_was():
    votes = Comparisons.from_arrays(["u", "v"], ["a", "b"], ["b", "a"], [1, 0])
    votes = replace(votes, weight=np.array([1.0, 0.5]))  # as older folders have them
    assert Summary.of(votes).fingerprint == FINGERPRINT
