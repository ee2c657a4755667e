"""What users' deviations are made of: strong, personal, noise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.decomposition import decompose, squares_by_term
from isplitlbi.model.links import LINKS, Logistic, link_named
from isplitlbi.model.parameters import Parameters
from isplitlbi.model.terms import Terms
from isplitlbi.solvers import Dynamics, fit_before_entries
from traits import TRAITS, Leftmost, terms_with
from votes import from_rows, random_votes, rows

some_terms = st.sampled_from([terms_with(*traits) for traits in TRAITS.values()])
NOBODY = np.empty(0, dtype=np.intp)


@given(rows, some_terms, st.integers(0, 2**32 - 1), st.floats(0, 4), st.sampled_from(sorted(LINKS)))
def test_three_parts_with_disjoint_supports_add_up_to_the_deviation_exactly(
    rows, terms, seed, noise_level, link
):
    votes, rng = from_rows(rows), np.random.default_rng(seed)
    layout = Layout.of(votes, terms.traits)
    consensus = rng.normal(size=layout.vector.width)
    consensus[layout.vector.threshold] = 1.0
    deviation = rng.normal(size=layout.n_slots) * rng.integers(0, 2)
    deviation[layout.slots.threshold] = rng.uniform(-0.5, 1.0, votes.n_users)
    out = np.flatnonzero(rng.random(votes.n_users) < 0.4)
    parameters = Parameters(layout.vector, layout.slots, consensus, deviation, terms)
    parts = decompose(votes, parameters, out, link_named(link), 1.0, noise_level)

    table = parameters.table()
    total = parts.strong + parts.personal + parts.noise
    assert total.toarray().tobytes() == (table + 0.0).tobytes()
    supports = np.stack([part.toarray() != 0 for part in parts])
    assert supports.sum(axis=0).max() <= 1
    # Nothing is stored that is zero, and what is strong is all of the users outside.
    assert sum(part.nnz for part in parts) == np.count_nonzero(deviation)
    table[np.setdiff1d(np.arange(votes.n_users), out)] = 0.0
    np.testing.assert_array_equal(parts.strong.toarray(), table)

    shares = parts.shares_of_parts()
    has_some = np.any(parameters.table() != 0.0, axis=1)
    np.testing.assert_allclose(shares.sum(axis=1), has_some, atol=1e-12)
    np.testing.assert_array_equal(shares[:, 0], np.isin(np.arange(votes.n_users), out) & has_some)


@pytest.mark.parametrize("noise_level", [-1.0, -np.inf, np.nan])
def test_a_noise_level_below_nothing_is_refused(noise_level):
    layout = Layout.of(ONE_VOTE)
    parameters = Parameters(layout.vector, layout.slots, np.array([0.0, 0.0, 1.0]), np.zeros(3))
    with pytest.raises(InvalidSetting, match=r"^the noise level must be 0 or more, but it is "):
        decompose(ONE_VOTE, parameters, NOBODY, Logistic(), NU, noise_level)


def test_a_higher_noise_level_leaves_less_that_is_personal():
    votes = random_votes(0, n_votes=120)
    rng, layout = np.random.default_rng(1), Layout.of(votes)
    parameters = Parameters(
        layout.vector, layout.slots, np.append(np.zeros(votes.n_items), 1.0),
        rng.normal(scale=0.5, size=layout.n_slots),
    )  # fmt: skip
    counts = [
        decompose(votes, parameters, NOBODY, Logistic(), 1.0, level).personal.nnz
        for level in (0.0, 1.0, 2.0, np.inf)
    ]
    assert counts[0] == layout.n_slots
    assert counts[-1] == 0
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4


# One vote on two equal items at threshold 1: either side wins with probability F(-1), and then the
# log-probability's slope in the margin is F(1); a tie has none.
ONE_VOTE = Comparisons.from_arrays(["ann"], ["tea"], ["milk"], ["left"])
WIN, LOSE = 1 / (1 + np.exp(1.0)), 1 / (1 + np.exp(-1.0))
INFORMATION, NU = 2 * WIN * LOSE**2, 0.5


def test_the_noise_of_one_vote_is_that_of_its_information_under_the_ridge():
    sd, layout = np.sqrt(INFORMATION) / (INFORMATION + 1 / NU), Layout.of(ONE_VOTE)
    consensus = np.array([0.0, 0.0, 1.0])
    for size, personal in ((1.99, 0), (2.01, 2)):
        deviation = size * sd * np.array([1.0, -1.0, 0.0])
        parameters = Parameters(layout.vector, layout.slots, consensus, deviation)
        parts = decompose(ONE_VOTE, parameters, NOBODY, Logistic(), NU, 2.0)
        assert (parts.personal.nnz, parts.noise.nnz) == (personal, 2 - personal)


def test_what_a_trait_shows_of_itself_is_its_column_squared():
    class Twice(Leftmost):
        def column(self, shown):
            return 2.0 * super().column(shown)

    terms = terms_with(Twice())
    layout = Layout.of(ONE_VOTE, terms.traits)
    information = 4 * INFORMATION
    sd = np.sqrt(information) / (information + 1 / NU)
    for size, personal in ((1.99, 0), (2.01, 1)):
        deviation = np.array([0.0, 0.0, size * sd, 0.0])
        parameters = Parameters(
            layout.vector, layout.slots, np.array([0.0, 0.0, 0.0, 1.0]), deviation, terms
        )
        parts = decompose(ONE_VOTE, parameters, NOBODY, Logistic(), NU, 2.0)
        assert (parts.personal.nnz, parts.noise.nnz) == (personal, 1 - personal)


def test_a_user_of_the_consensus_is_mostly_noise_and_a_reversed_one_is_not():
    votes, _ = simulate(
        n_users=12, n_items=6, votes_per_user=(60, 60), score_sd=2.0, threshold=0.8,
        abnormal_share=0.0, random_state=2,
    )  # fmt: skip
    last = votes.user == 11
    votes = replace(votes, outcome=np.where(last, -votes.outcome, votes.outcome))
    dynamics = Dynamics(nu=1.0)
    parameters = fit_before_entries(votes, Logistic(), dynamics)
    parts = decompose(votes, parameters, NOBODY, Logistic(), dynamics.nu, 2.0)
    personal_share = np.count_nonzero(parts.personal.toarray(), axis=1) / 7
    assert np.mean(personal_share[:11]) < 0.1
    assert personal_share[11] > 0.5


def test_shares_say_which_term_a_user_differs_by():
    terms = Terms.named("all").referring(np.array([1.0, -1.0]))
    votes = Comparisons.from_arrays(
        ["ann", "bob", "cat", "dan", "eve"], ["tea"] * 5, ["milk"] * 5, [1, 0, -1, 1, 1]
    )
    layout = terms.layout(votes)
    parameters = Parameters(
        layout.vector, layout.slots, np.zeros(layout.vector.width), np.zeros(layout.n_slots), terms
    )
    end = layout.slots.threshold
    parameters.deviation[end[0]] = 1.0  # the threshold of ann
    parameters.deviation[end[1] - 1] = -2.0  # the side of bob
    parameters.deviation[end[2] - 2] = 0.5  # the sharpness of cat, who adds 1 to the margin
    parameters.deviation[layout.slots.start[3]] = 0.3  # what dan thinks of one item, and his side
    parameters.deviation[end[3] - 1] = 0.4
    shares = decompose(votes, parameters, NOBODY, Logistic(), 1.0, 2.0).shares
    assert terms.names == ("taste", "sharpness", "side", "threshold")
    expected = [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [0.36, 0, 0.64, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    squares = squares_by_term(votes, parameters)
    np.testing.assert_allclose(squares[:3].max(axis=1), [(np.e - 1) ** 2, 4.0, 1.0])
