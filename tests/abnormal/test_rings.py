"""Users who stand out together, and those who stand out each by themselves."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from crowds import SCORES, THRESHOLD, consensus_of, gather, vote
from isplitlbi.abnormal import find_abnormal, rings
from isplitlbi.abnormal.directions import Directions, Said
from isplitlbi.abnormal.evidence import explain_by
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.kinds import OWN_SCORES
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.others import Others
from isplitlbi.abnormal.rings import find_rings
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import fit_consensus
from votes import rebuilt

LINK = Logistic()


def sizes(votes, asked=None):
    """Return the size of everybody's ring by name, for those who are in one."""
    start = consensus_of(SCORES, THRESHOLD)
    inputs = Inputs.of(votes, LINK, start, delta=1e-3, seed=0, runtime=Local(votes))
    expected, answers = inputs.expectation(), inputs.answers
    said = Said.of(LINK, expected.margin, expected.level, answers.weighted, True)
    others = Others.of(inputs, said, answers.voted, 0.0)
    yardstick = Yardstick(
        Directions.of(answers, votes),
        expected,
        others,
        np.array([0.02, 0.05, 0.05, 0.1]),
        np.zeros(votes.n_users),
    )
    whole = answers.voted if asked is None else np.isin(votes.users, asked)
    own = explain_by(inputs, yardstick, [OWN_SCORES], whole)[OWN_SCORES]
    usual = answers.log_likelihood(expected.log_probability)
    found = find_rings(inputs, yardstick, own, np.maximum(usual, own.evidence), whole)
    return {str(votes.users[user]): int(found[user]) for user in np.flatnonzero(found)}


def voters(n_ring, n_dissenters=6, n_votes=150, seed=0):
    """Draw some users of one other ranking, and some who each have a ranking of their own."""
    rng = np.random.default_rng(seed)
    shared = 1.5 * rng.permutation(SCORES)
    ordinary = {f"ordinary-{number}": vote(rng, n_votes) for number in range(10)}
    ring = {f"ring-{number}": vote(rng, n_votes, shared) for number in range(n_ring)}
    own = {
        f"own-{number}": vote(rng, n_votes, 1.5 * rng.permutation(SCORES))
        for number in range(n_dissenters)
    }
    return ordinary | ring | own


@pytest.mark.parametrize("seed", range(3))
def test_a_ring_of_four_is_found_among_others(seed):
    votes = gather(voters(4, seed=seed))
    assert sizes(votes) == {f"ring-{number}": 4 for number in range(4)}


@pytest.mark.parametrize("seed", range(3))
def test_independent_dissenters_are_no_ring(seed):
    assert sizes(gather(voters(0, n_dissenters=12, seed=seed))) == {}


@pytest.mark.parametrize("n_ring", [1, 2])
def test_fewer_than_three_are_no_ring(n_ring):
    assert sizes(gather(voters(n_ring))) == {}


def test_two_rings_are_told_apart():
    first, other = voters(4, n_dissenters=0), voters(3, n_dissenters=0, seed=5)
    renamed = {f"other-{name}": each for name, each in other.items() if name.startswith("ring")}
    found = sizes(gather(first | renamed))
    assert found == {f"ring-{k}": 4 for k in range(4)} | {f"other-ring-{k}": 3 for k in range(3)}


def test_only_those_asked_about_are_compared(monkeypatch):
    votes = gather(voters(5))
    some = ["ring-0", "ring-2", "ring-3", "own-1", "ordinary-2"]
    assert sizes(votes, some) == dict.fromkeys(["ring-0", "ring-2", "ring-3"], 3)
    assert sizes(votes, some[:2]) == {}
    monkeypatch.setattr(rings, "MOST_USERS", 2)
    assert sizes(votes, some) == {}


def test_who_says_what_the_consensus_says_is_in_no_ring():
    assert sizes(gather({f"u{k}": vote(np.random.default_rng(k), 80) for k in range(8)})) == {}


def test_users_who_compared_other_items_foretell_nothing():
    rng = np.random.default_rng(1)
    low = {
        f"low-{k}": (*(item % 4 for item in _pairs(rng)), rng.choice([-1, 1], 60)) for k in range(3)
    }
    high = {
        f"high-{k}": (*(4 + item % 4 for item in _pairs(rng)), rng.choice([-1, 1], 60))
        for k in range(3)
    }
    assert sizes(gather(low | high)) == {}


def _pairs(rng):
    left = rng.integers(4, size=60)
    return left, (left + rng.integers(1, 4, size=60)) % 4


def test_rings_do_not_depend_on_the_order_of_rows():
    votes = gather(voters(4))
    again = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    assert sizes(again) == sizes(votes)


def test_a_ring_is_named_with_its_size():
    many = {f"normal-{k:02d}": vote(np.random.default_rng(100 + k), 60) for k in range(40)}
    votes = gather(many | voters(4))
    found = find_abnormal(votes, LINK, fit_consensus(votes, LINK))
    ring = np.char.startswith(votes.users.astype(str), "ring")
    kind = np.array(found.kind)
    assert_array_equal(kind == "ring", ring)
    for user in np.flatnonzero(ring):
        assert "as 3 others who stand out" in found.explanation[user]
