"""What must not matter: names, the order of rows, sides, the unit of weights, threads."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowds import QUICK, SCORES, assert_same, consensus_in, gather, vote
from isplitlbi import ISplitLBI
from isplitlbi.abnormal import find_abnormal
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Logistic
from isplitlbi.runtime.local import Local
from votes import rebuilt

LINK = Logistic()
SEEDS = range(4)
FLOATS = ("effect", "effect_low", "effect_high", "quality", "slope", "threshold")
P_VALUES = ("p_value", "q_value", "p_unreliable", "q_unreliable")
DOUBTFUL = 0.15  # other draws may lead a smaller q-value below .05


def study(seed, n_users=40, n_votes=40):
    """Draw ordinary users and five of different kinds."""
    rng = np.random.default_rng(seed)

    def instead(outcome):
        return *vote(rng, n_votes)[:2], np.broadcast_to(outcome, n_votes)

    return gather(
        {f"normal-{number:02d}": vote(rng, n_votes) for number in range(n_users - 5)}
        | {
            "careless": instead(rng.integers(-1, 2, size=n_votes)),
            "left": instead(1),
            "own": vote(rng, n_votes, 2.0 * rng.permutation(SCORES)),
            "reversed": vote(rng, n_votes, -SCORES),
            "tie": instead(0),
        }
    )


@pytest.fixture(scope="module", params=SEEDS)
def known(request):
    votes = study(request.param)
    found = find_abnormal(votes, LINK, consensus_in(votes))
    assert {"unreliable", ""} <= set(found.list)
    return votes, found


def findings(votes):
    return find_abnormal(votes, LINK, consensus_in(votes))


def assert_alike(found, other, order=None):
    """Assert that findings differ by their draws alone; ``order`` is where users are in the other.

    Whom draws leave in no doubt has the same list and the same kind.
    """
    order = np.arange(len(found.kind)) if order is None else order
    clear = np.ones(len(order), dtype=bool)
    for name in ("q_value", "q_unreliable"):
        for q_value in (getattr(found, name), getattr(other, name)[order]):
            clear &= (q_value < found.fdr) | (q_value > DOUBTFUL)
    assert clear.mean() > 0.8
    for name in ("list", "kind"):
        here, there = np.array(getattr(found, name)), np.array(getattr(other, name))[order]
        assert_array_equal(here[clear], there[clear])
    same = np.array(found.list) == np.array(other.list)[order]
    for name in FLOATS:
        here, there = getattr(found, name)[same], getattr(other, name)[order][same]
        assert_allclose(here, there, atol=1e-5 if name in ("slope", "threshold") else 1e-6)
    for name in ("p_value", "p_unreliable"):
        here, there = getattr(found, name), getattr(other, name)[order]
        assert np.corrcoef(here, there)[0, 1] > 0.8


def renamed(votes, users, items):
    """Give other names, by number; times are kept."""
    user_names = np.array([f"x{number:02d}" for number in range(votes.n_users)])
    item_names = np.array([f"y{number}" for number in range(votes.n_items)])
    return Comparisons.from_arrays(
        user_names[users][votes.user], item_names[items][votes.left],
        item_names[items][votes.right], votes.outcome, time=votes.time,
    )  # fmt: skip


def test_other_names_in_the_same_order_change_nothing(known):
    votes, found = known
    other = findings(renamed(votes, np.arange(votes.n_users), np.arange(votes.n_items)))
    for field in fields(found):
        # The explanation tells of items.
        if field.name not in ("consensus", "explanation", "ordinary"):
            assert_array_equal(getattr(other, field.name), getattr(found, field.name))
    assert_same(other.ordinary, found.ordinary)


@pytest.mark.parametrize("what", ["users", "items", "both"])
def test_names_in_another_order_change_the_draws_alone(known, what):
    votes, found = known
    rng = np.random.default_rng(1)
    users, items = np.arange(votes.n_users), np.arange(votes.n_items)
    users = users if what == "items" else rng.permutation(users)
    items = items if what == "users" else rng.permutation(items)
    other = findings(renamed(votes, users, items))
    assert_alike(found, other, users)
    assert_allclose(other.consensus.scores[items], found.consensus.scores, atol=1e-6)


def test_the_order_of_rows_changes_nothing(known):
    votes, found = known
    again = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    assert_same(findings(again), found)


def test_the_order_of_rows_of_a_group_changes_nothing():
    votes = replace(study(0), group=np.arange(1600, dtype=np.int32) // 4)
    again = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    one, other = findings(votes), findings(again)
    for name in P_VALUES:
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.list, one.kind) == (other.list, other.kind)


def test_swapped_sides_change_the_draws_alone(known):
    votes, found = known
    other = findings(rebuilt(votes, swapped=True))
    assert_alike(found, other)
    assert_allclose(other.side, -found.side, atol=1e-5)
    assert found.list == other.list
    assert found.kind == other.kind


@pytest.mark.parametrize("weight", [0.02, 1.0, 50.0])
def test_the_unit_of_weights_changes_nothing(known, weight):
    votes, found = known
    heavy = replace(votes, weight=np.full(len(votes), weight))
    other = find_abnormal(heavy, LINK, consensus_in(votes))
    for name in P_VALUES:
        assert_array_equal(getattr(other, name), getattr(found, name))
    assert (other.list, other.kind, other.explanation) == (
        found.list, found.kind, found.explanation
    )  # fmt: skip
    for name in FLOATS:
        assert_allclose(getattr(other, name), getattr(found, name), atol=1e-6)


@pytest.mark.parametrize("unit", [0.02, 50.0])
def test_the_unit_of_different_weights_changes_nothing(unit):
    votes, rng = study(1), np.random.default_rng(0)
    weight = rng.choice([0.5, 1.0, 2.0], size=len(votes))
    start = consensus_in(votes)
    found, other = (
        find_abnormal(replace(votes, weight=each), LINK, start) for each in (weight, unit * weight)
    )
    assert_array_equal(found.p_value, other.p_value)
    assert (found.list, found.kind) == (other.list, other.kind)
    assert_allclose(found.effect, other.effect, atol=1e-6)


def test_weights_that_are_whole_are_no_counts():
    votes, rng = study(1), np.random.default_rng(0)
    weight, start = rng.choice([1.0, 2.0], size=len(votes)), consensus_in(votes)
    nearly = np.where(weight == 2.0, 2.0 + 1e-6, 1.0)
    again = np.repeat(np.arange(len(votes)), weight.astype(int))
    found, other, counted = (
        find_abnormal(each, LINK, start)
        for each in (
            replace(votes, weight=weight), replace(votes, weight=nearly), rebuilt(votes, again),
        )
    )  # fmt: skip
    assert_allclose(other.effect_high, found.effect_high, atol=1e-4)
    assert np.max(np.abs(counted.effect_high - found.effect_high)) > 0.01


@pytest.mark.parametrize("n_threads", [2, 5])
def test_the_number_of_threads_changes_nothing(known, n_threads):
    votes, found = known
    other = find_abnormal(
        votes, LINK, consensus_in(votes), runtime=Local(votes, n_threads=n_threads)
    )
    assert_same(other, found)


def few_items(seed=1, n_votes=80):
    """Draw users who vote on the same few pairs again and again."""
    rng = np.random.default_rng(seed)
    scores = np.linspace(-1.5, 1.5, 4)

    def voting(scores):
        left = rng.integers(4, size=n_votes)
        right = (left + rng.integers(1, 4, size=n_votes)) % 4
        perceived = scores[left] - scores[right] + rng.logistic(size=n_votes)
        return left, right, (perceived > 0.8) * 1 - (perceived <= -0.8)

    voters = {f"normal-{number:02d}": voting(scores) for number in range(35)}
    voters |= {"random": voting(0 * scores), "reversed": voting(-scores)}
    return replace(gather(voters), time=None)


def test_equal_rows_may_stand_anywhere():
    votes = few_items()
    order = np.lexsort((votes.outcome, votes.right, votes.left, votes.user))
    for rows in (order, order[::-1]):
        assert_same(findings(rebuilt(votes, rows)), findings(votes))


def test_votes_that_are_counted_are_the_same_votes(tmp_path):
    votes = few_items()
    names = votes.users[votes.user], votes.items[votes.left], votes.items[votes.right]
    asked, place = np.unique(np.stack(names, axis=1).astype(str), axis=0, return_inverse=True)
    lines = ["user,item1,item2,win1,win2,tied"]
    for number, question in enumerate(asked):
        given = [np.sum((place == number) & (votes.outcome == each)) for each in (1, -1, 0)]
        lines.append(",".join([*question, *map(str, given)]))
    file = tmp_path / "counts.csv"
    file.write_text("\n".join(lines))
    found, counted = findings(votes), findings(Comparisons.read(file))
    assert_same(counted, found)


# --- by the estimator ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 2])
def test_a_model_finds_the_same_whatever_the_rows_sides_and_names(seed):
    votes = study(seed)
    rng = np.random.default_rng(3)
    found = ISplitLBI(**QUICK).fit(votes).abnormality_
    again = rebuilt(votes, rng.permutation(len(votes)))
    assert_same(ISplitLBI(**QUICK).fit(again).abnormality_, found)
    assert_alike(found, ISplitLBI(**QUICK).fit(rebuilt(votes, swapped=True)).abnormality_)
    users, items = rng.permutation(votes.n_users), rng.permutation(votes.n_items)
    other = ISplitLBI(**QUICK).fit(renamed(votes, users, items)).abnormality_
    assert_alike(found, other, users)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("weight", [0.02, 50.0])
def test_a_model_finds_the_same_whatever_the_unit_of_weights(weight, seed):
    votes = study(seed)
    heavy = replace(votes, weight=np.full(len(votes), weight))
    found, other = (ISplitLBI(**QUICK).fit(each).abnormality_ for each in (votes, heavy))
    # The path, from which the tests start, is another one; what they find is not.
    assert_allclose(other.effect, found.effect, atol=0.1)
    assert found.list == other.list
    assert found.kind == other.kind
