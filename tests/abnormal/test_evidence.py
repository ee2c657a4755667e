"""How likely votes are in some way, beside integrals and maxima that are found numerically."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from crowds import SCORES, THRESHOLD, consensus_of, gather, vote
from isplitlbi.abnormal import directions as directing
from isplitlbi.abnormal import evidence
from isplitlbi.abnormal.directions import Directions, Said
from isplitlbi.abnormal.evidence import Way, explain_by, explain_by_one_item
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.kinds import COPIED, ORDINARY, OTHER_TASTE, OWN_SCORES, REVERSED
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.others import Others
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.runtime.local import Local

LINK = Logistic()
NOTHING = (0.0, 0.0, 0.0, 0.0)  # variances of slope, side, level and taste
AGAINST = ("other pair", "reversed")  # who vote against the consensus
A_LITTLE = (0.02, 0.05, 0.05, 0.1)


def explained(inputs, yardstick, way, some):
    """Return what one way comes to."""
    return explain_by(inputs, yardstick, [way], some)[way]


def one_pair(rng, n_votes, left=2, right=5, scores=SCORES):
    """Let a user vote on one pair alone."""
    perceived = scores[left] - scores[right] + rng.logistic(size=n_votes)
    outcome = (perceived > THRESHOLD) * 1 - (perceived <= -THRESHOLD)
    return np.full(n_votes, left), np.full(n_votes, right), outcome


def promoting(rng, n_votes, item, raised):
    return vote(rng, n_votes, SCORES + raised * (np.arange(8) == item))


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(7)
    return gather({
        "all pairs": vote(rng, 100),
        "few votes": vote(rng, 12),
        "flat": vote(rng, 60, 0 * SCORES),
        "one pair": one_pair(rng, 40),
        "other pair": one_pair(rng, 25, 6, 1, -SCORES),
        "raises": promoting(rng, 80, 1, 4.0),
        "reversed": vote(rng, 60, -SCORES),
        "sinks": promoting(rng, 80, 6, -4.0),
        "ties": vote(rng, 60, threshold=2.0),
    })  # fmt: skip


def known(votes, variances=NOTHING, link=LINK, scale=1.0):
    """Return inputs and a yardstick by hand: the consensus is exact, users vary by so much."""
    start = consensus_of(scale * SCORES, scale * THRESHOLD)
    inputs = Inputs.of(votes, link, start, delta=1e-3, seed=0, runtime=Local(votes))
    expected = inputs.expectation()
    said = Said.of(link, expected.margin, expected.level, inputs.answers.weighted, True)
    others = Others.of(inputs, said, inputs.answers.voted, 0.0)
    directions = Directions.of(inputs.answers, votes)
    return inputs, Yardstick(
        directions, expected, others, np.array(variances), np.zeros(votes.n_users)
    )


def asked(votes):
    return np.ones(votes.n_users, dtype=bool)


def likelihood_of(inputs, yardstick, user, way=ORDINARY):
    """Return the log-likelihood of a user's votes, by deviations of slope, side and level."""
    mine, expected = inputs.answers.of_user(user), yardstick.expected
    counts = inputs.answers.weighted[mine]

    def likelihood(slope=0.0, side=0.0, level=0.0):
        margin = expected.margin[mine] + (way.slope - 1.0 + slope) * expected.apart[mine] + side
        threshold = np.exp(expected.level[mine] + way.level + level)
        return float(np.sum(counts * inputs.link.log_probabilities(margin, threshold)))

    return likelihood


WAYS = {
    "slope": Way(of_slope=0.5),
    "flat slope": Way(0.0, of_slope=0.3),
    "mirrored slope": Way(-1.0, of_slope=0.16),
    "side": Way(of_side=1.0),
    "level": Way(of_level=0.8),
    "shifted level": Way(level=0.5, of_level=0.3),
}


@pytest.mark.parametrize("name", WAYS)
def test_evidences_are_integrals(votes, name):
    way, what = WAYS[name], name.split()[-1]
    inputs, yardstick = known(votes)
    found = explained(inputs, yardstick, way, asked(votes))
    variance = {"slope": way.of_slope, "side": way.of_side, "level": way.of_level}[what]
    prior = norm(0.0, np.sqrt(variance))
    for user, name_of in enumerate(votes.users):
        likelihood = likelihood_of(inputs, yardstick, user, way)
        grid = np.linspace(*prior.interval(1 - 1e-9), 401)
        at = np.array([likelihood(**{what: each}) + prior.logpdf(each) for each in grid])
        peak, most = grid[at.argmax()], at.max()
        integral, _ = quad(
            lambda each, of=likelihood, most=most: np.exp(
                of(**{what: each}) + prior.logpdf(each) - most
            ),
            grid[0], grid[-1], points=[peak - 0.1, peak, peak + 0.1], limit=200,
        )  # fmt: skip
        expected = np.log(integral) + most
        # How votes bend is what they tell on average: not those that contradict all that a way may
        # be, of which the evidence is tens of nats behind others in any case.
        within = 1.5 if way.slope > 0.0 and name_of in AGAINST else 0.1
        assert found.evidence[user] == pytest.approx(expected, abs=within), name_of


@pytest.mark.parametrize("link", LINKS)
def test_without_variances_the_evidence_is_the_log_likelihood(votes, link):
    inputs, yardstick = known(votes, NOTHING, LINKS[link](), scale=0.15)
    found = explained(inputs, yardstick, ORDINARY, asked(votes))
    expected = inputs.answers.log_likelihood(yardstick.expected.log_probability)
    assert_allclose(found.evidence, expected)
    assert_allclose(found.log_likelihood, expected)
    assert_array_equal(found.slope, 1.0)
    for nothing in (found.side, found.level, found.items):
        assert_array_equal(nothing, 0.0)


def test_the_numbers_are_where_the_penalised_log_likelihood_is_largest(votes):
    inputs, yardstick = known(votes)
    way = Way(of_slope=0.5, of_side=1.0, of_level=0.7)
    found = explained(inputs, yardstick, way, asked(votes))
    variances = np.array([way.of_slope, way.of_side, way.of_level])
    for user, name in enumerate(votes.users):
        likelihood = likelihood_of(inputs, yardstick, user)

        def loss(at, of=likelihood):
            return 0.5 * np.sum(at**2 / variances) - of(*at)

        best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
        mine = np.array([found.slope[user] - 1.0, found.side[user], found.level[user]])
        assert loss(mine) - best.fun < 0.01, name
        assert_allclose(mine, best.x, atol=0.05, err_msg=name)
        assert found.log_likelihood[user] == pytest.approx(likelihood(*mine), abs=1e-4)


def test_scores_of_the_users_own_are_where_the_penalised_log_likelihood_is_largest(votes):
    inputs, yardstick = known(votes, A_LITTLE)
    found = explained(inputs, yardstick, OTHER_TASTE, asked(votes))
    scale = np.var(inputs.consensus.scores)
    variances = np.array([0.02, 0.05, 0.05, *np.full(8, 0.1 + OTHER_TASTE.of_taste * scale)])
    directions, answers = yardstick.directions, inputs.answers
    for user in np.flatnonzero(directions.n_columns == 11):
        mine, expected = answers.of_user(user), yardstick.expected
        counts, left, right = answers.weighted[mine], answers.left[mine], answers.right[mine]

        def loss(at, mine=mine, counts=counts, left=left, right=right, expected=expected):
            slope, side, level, *items = at
            items = np.array(items)
            margin = expected.margin[mine] + slope * expected.apart[mine] + side
            margin = margin + items[left] - items[right]
            said = LINK.log_probabilities(margin, np.exp(expected.level[mine] + level))
            return 0.5 * np.sum(at**2 / variances) - np.sum(counts * said)

        best = minimize(loss, np.zeros(11), method="BFGS")
        first = directions.first[user]
        own = [found.slope[user] - 1, found.side[user], found.level[user]]
        own = np.array([*own, *found.items[first : first + 8]])
        assert loss(own) - best.fun < 0.05


def test_only_those_asked_about_have_an_evidence(votes):
    inputs, yardstick = known(votes, A_LITTLE)
    some = np.arange(votes.n_users) % 2 == 0
    found = explained(inputs, yardstick, OTHER_TASTE, some)
    assert_array_equal(np.isfinite(found.evidence), some)
    for numbers in (found.slope, found.side, found.level, found.log_likelihood):
        assert_array_equal(numbers[~some], 0.0)


def test_several_ways_at_once_are_found_as_one_by_one(votes):
    inputs, yardstick = known(votes, A_LITTLE)
    ways = [ORDINARY, OTHER_TASTE, WAYS["flat slope"]]
    together = explain_by(inputs, yardstick, ways, asked(votes))
    assert list(together) == ways
    for way in ways:
        alone = explained(inputs, yardstick, way, asked(votes))
        for here, there in zip(together[way], alone, strict=True):
            assert_allclose(here, there, atol=2e-6)


@pytest.mark.parametrize("way", [ORDINARY, OTHER_TASTE, WAYS["flat slope"], WAYS["level"]])
def test_who_else_is_looked_at_changes_nothing(votes, way, monkeypatch):
    inputs, yardstick = known(votes, A_LITTLE)
    together = explained(inputs, yardstick, way, asked(votes))
    monkeypatch.setattr(directing, "NUMBERS_AT_ONCE", 1)  # one by one
    alone = explained(inputs, yardstick, way, asked(votes))
    for here, there in zip(together, alone, strict=True):
        assert_allclose(here, there, atol=2e-6)


def test_the_way_in_which_users_vote_has_the_largest_evidence(votes):
    inputs, yardstick = known(votes, A_LITTLE)
    evidences = {
        name: explained(inputs, yardstick, way, asked(votes)).evidence
        for name, way in WAYS.items()
        if name in ("slope", "flat slope", "mirrored slope", "level")
    }
    for user, name in {"flat": "flat slope", "reversed": "mirrored slope", "ties": "level"}.items():
        place = votes.users.tolist().index(user)
        assert max(evidences, key=lambda each, at=place: evidences[each][at]) == name


def test_all_arrive_however_far_they_are_out(votes, monkeypatch):
    # Three times the scores: by the consensus some votes are next to impossible.
    inputs, yardstick = known(votes, A_LITTLE, scale=3.0)
    ways = [OWN_SCORES, OTHER_TASTE, COPIED, REVERSED]
    soon = {way: explained(inputs, yardstick, way, asked(votes)).evidence for way in ways}
    monkeypatch.setattr(evidence, "N_STEPS", 500)
    monkeypatch.setattr(evidence, "ENOUGH", 1e-6)
    for way in ways:
        late = explained(inputs, yardstick, way, asked(votes)).evidence
        assert_allclose(soon[way], late, atol=0.3)


# --- one item --------------------------------------------------------------------------------


def test_promotions_find_the_item(votes):
    inputs, yardstick = known(votes, A_LITTLE)
    ordinary = explained(inputs, yardstick, ORDINARY, asked(votes))
    evidence, item, raised = explain_by_one_item(inputs, yardstick, asked(votes), ordinary)
    usual = ordinary.evidence
    place = {user: number for number, user in enumerate(votes.users)}
    for user, which, sign in (("raises", 1, 1), ("sinks", 6, -1)):
        assert item[place[user]] == which
        assert 1.5 < sign * raised[place[user]] < 7.0
        assert evidence[place[user]] > usual[place[user]] + 5.0
    for user in ("all pairs", "few votes"):
        assert evidence[place[user]] < usual[place[user]]


def test_of_a_promotion_only_one_item_among_all_is_meant(votes):
    inputs, yardstick = known(votes)
    ordinary = explained(inputs, yardstick, ORDINARY, asked(votes))
    evidence, _, raised = explain_by_one_item(inputs, yardstick, asked(votes), ordinary)
    user = votes.users.tolist().index("raises")
    mine, expected = inputs.answers.of_user(user), yardstick.expected
    by_item = 1.0 * (inputs.answers.left[mine] == 1) - (inputs.answers.right[mine] == 1)
    prior = norm(0.0, 3.0)

    def log_density(by):
        said = LINK.log_probabilities(expected.margin[mine] + by * by_item, THRESHOLD)
        return np.sum(inputs.answers.weighted[mine] * said) + prior.logpdf(by)

    grid = np.linspace(-5, 12, 1_701)
    values = np.array([log_density(each) for each in grid])
    integral = np.log(np.sum(np.exp(values - values.max())) * 0.01) + values.max()
    assert evidence[user] == pytest.approx(integral - np.log(8), abs=0.1)
    assert raised[user] == pytest.approx(grid[values.argmax()], abs=0.1)
