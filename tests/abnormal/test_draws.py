"""Votes of ordinary users in the place of others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crowds import consensus_of, gather, vote
from isplitlbi.abnormal import draws as drawing
from isplitlbi.abnormal.directions import Directions, Said
from isplitlbi.abnormal.draws import Revote
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.others import Others
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.runtime.local import Local

SCORES = np.linspace(-1, 1, 8)


def revoting(votes, link=None, variances=(0.0, 0.0, 0.0, 0.0), threshold=0.5):
    """Return the draws for the first user, and what is needed to check them."""
    link = link or Logistic()
    start = consensus_of(SCORES[: votes.n_items], threshold)
    inputs = Inputs.of(votes, link, start, delta=1e-3, seed=0, runtime=Local(votes))
    answers, directions = inputs.answers, Directions.of(inputs.answers, votes)
    expected = inputs.expectation()
    said = Said.of(link, expected.margin, expected.level, answers.weighted, expected.has_ties)
    others = Others.of(inputs, said, answers.voted, 0.0)
    yardstick = Yardstick(
        directions, expected, others, np.array(variances), np.zeros(votes.n_users)
    )
    block = directions.block(np.array([0]), expected.apart)
    (revote,) = Revote.of(inputs, [yardstick], said, block)
    return revote, inputs, yardstick, said, block


@pytest.fixture(scope="module")
def repeated():
    """Return votes of a user who voted often on some pairs."""
    rng = np.random.default_rng(4)
    left, right, outcome = vote(rng, 60)
    often = np.repeat([0, 2], 15), np.repeat([1, 5], 15), rng.integers(-1, 2, size=30)
    return gather({"u": tuple(map(np.append, (left, right, outcome), often))})


def statistics(inputs, yardstick, said, block):
    found = yardstick.surprise(block, said, inputs.answers)
    return found.statistic(block.pull(said.by_margin, said.by_level))


def test_the_votes_themselves_have_the_statistic_that_draws_have(repeated):
    revote, inputs, yardstick, said, block = revoting(repeated)
    given = np.cumsum(revote.adds, axis=0)[:, :, : len(revote.n_votes)]
    added = np.einsum("qo,odq->d", inputs.answers.counts, given)
    traits, taste = added[:3], np.sum(added[3:-4] ** 2)
    found = drawing.surprise_of(traits[None], np.array([taste]), *revote.moments)
    assert_allclose(found, statistics(inputs, yardstick, said, block), rtol=1e-3)
    assert added[-4] == pytest.approx(said.log_likelihood.sum(), rel=1e-5)
    assert_allclose(added[-3:], inputs.answers.counts.sum(axis=0))


def answers_of(revote, n_draws, seed):
    """Return how often each answer is drawn."""
    shares = []
    original = drawing.of_answers
    try:
        drawing.of_answers = lambda given, **_: shares.append(given) or given.sum(axis=-1)
        revote.draw(n_draws, np.random.default_rng(seed))
    finally:
        drawing.of_answers = original
    return np.concatenate(shares)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("many", [0, 10**9], ids=["as counts", "one by one"])
def test_answers_are_as_frequent_as_expected(repeated, link, many, monkeypatch):
    monkeypatch.setattr(drawing, "MANY_VOTES", many)
    revote, inputs, yardstick, *_ = revoting(repeated, LINKS[link](), threshold=0.4)
    given = answers_of(revote, 4_000, 1)
    expected = inputs.answers.n_votes @ yardstick.expected.probability
    error = given.std(axis=0) / np.sqrt(len(given))
    assert np.all(np.abs(given.mean(axis=0) - expected) < 4 * error)


def rankings(n_rankings, seed=0):
    """Return all pairs of rankings of four items, with and without groups."""
    rng = np.random.default_rng(seed)
    left, right, group = [], [], []
    for number in range(n_rankings):
        items = rng.permutation(8)[:4]
        for one in range(4):
            for other in range(one):
                left.append(items[one])
                right.append(items[other])
                group.append(number)
    outcome = rng.choice([-1, 1], size=len(left))
    outcome[0] = 0
    return [np.zeros(len(left), int), np.array(left), np.array(right), outcome, None, group]


@pytest.mark.parametrize("link", LINKS)
def test_votes_of_one_group_depend_on_each_other_and_are_as_likely(link):
    columns = rankings(6)
    grouped = Comparisons.from_arrays(*columns)
    alone = Comparisons.from_arrays(*columns[:4])
    found = {}
    for name, votes in {"grouped": grouped, "alone": alone}.items():
        revote, inputs, yardstick, *_ = revoting(votes, LINKS[link](), threshold=0.3)
        given = answers_of(revote, 4_000, 2)
        expected = inputs.answers.weight * inputs.answers.n_votes @ yardstick.expected.probability
        error = given.std(axis=0) / np.sqrt(len(given))
        assert np.all(np.abs(given.mean(axis=0) - expected) < 4 * error)
        found[name] = revote, inputs
    share = found["grouped"][1].answers.weight
    assert_allclose(share, 3 / 5)  # four items: three votes on each
    of_groups, single = found["grouped"][0], found["alone"][0]
    assert single.noisy is None
    left, right = of_groups.noisy
    assert len(np.unique(np.append(left, right))) == 6 * 4


def test_draws_in_small_parts_are_the_same_number_of_draws(repeated, monkeypatch):
    revote, *_ = revoting(repeated)
    whole = revote.draw(3_000, np.random.default_rng(2))
    monkeypatch.setattr(drawing, "MOST_NUMBERS", 1_000)
    parts = revote.draw(3_000, np.random.default_rng(2))
    assert whole.shape == parts.shape == (2, 3_000)
    error = np.sqrt((whole.var(axis=1) + parts.var(axis=1)) / 3_000)
    assert np.all(np.abs(whole.mean(axis=1) - parts.mean(axis=1)) < 4 * error)


def test_ordinary_users_vary_more(repeated):
    alike, *_ = revoting(repeated)
    ordinary, *_ = revoting(repeated, variances=(0.3, 0.3, 0.3, 0.5))
    spreads = [each.draw(4_000, np.random.default_rng(3))[1].std() for each in (alike, ordinary)]
    assert spreads[1] > 1.2 * spreads[0]
