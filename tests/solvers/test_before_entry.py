"""Where on the time axis to look."""

import numpy as np
import pytest

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Logistic, Probit
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, Explicit, default_times
from isplitlbi.solvers.before_entry import residuals, times_of
from paths import odd_one_out, walk
from traits import Leftmost, terms_with


@pytest.mark.backend
@pytest.mark.parametrize("nu", [0.1, 1.0])
def test_default_times_span_the_entries(nu):
    votes, dynamics = odd_one_out(), Dynamics(nu=nu, kappa=10.0)
    times = default_times(votes, Logistic(), dynamics)
    path = walk(votes, Explicit(), dynamics, times, keep=False)
    assert times[0] < path.entry_times.min()
    assert np.isfinite(path.entry_times).mean() > 0.8
    assert times[-1] > 2 * np.quantile(path.entry_times, 0.7)
    # And not by so much that nothing happens in most of them.
    assert np.searchsorted(times, path.entry_times.min()) < 30
    assert np.argmin(path.entry_times) == 6


def test_default_times_are_geometric_and_as_many_as_asked():
    times = default_times(odd_one_out(), Probit(), Dynamics(), n_times=17)
    assert len(times) == 17
    assert np.all(times > 0)
    np.testing.assert_allclose(np.diff(np.log(times), n=2), 0.0, atol=1e-9)


def test_more_votes_of_other_users_hardly_move_the_first_time():
    # The loss is a sum: a user's entry depends on that user's own votes.
    few = odd_one_out()
    rows = np.concatenate([np.arange(len(few)), np.flatnonzero(few.user < 6)])
    names = np.where(np.arange(len(rows)) < len(few), "", "again-")
    many = Comparisons.from_arrays(
        np.char.add(names, few.users[few.user[rows]].astype(str)),
        few.items[few.left[rows]],
        few.items[few.right[rows]],
        few.outcome[rows],
    )
    one, other = (default_times(votes, Logistic(), Dynamics())[0] for votes in (few, many))
    assert other == pytest.approx(one, rel=0.2)


@pytest.mark.parametrize("outcomes", [[1, -1], [1], [0], [1, 0, -1]])
@pytest.mark.parametrize("n_users", [1, 2])
def test_users_in_perfect_agreement_still_give_finite_times(outcomes, n_users):
    rows = [(f"u{user}", "a", "b", outcome) for user in range(n_users) for outcome in outcomes]
    votes = Comparisons.from_arrays(*zip(*rows, strict=True))
    times = default_times(votes, Logistic(), Dynamics())
    assert np.isfinite(times).all()
    assert times[-1] < 1e5


def test_users_without_votes_do_not_count():
    whole = odd_one_out()
    votes = whole.subset(np.isin(whole.user, [0, 1, 6]))
    times = default_times(votes, Logistic(), Dynamics())
    assert np.isfinite(times).all()
    assert times[-1] < 100


def test_times_are_those_of_the_residuals():
    votes = odd_one_out()
    found = residuals(votes, Logistic(), Dynamics(), Local(votes))
    assert found.shape == (votes.n_users,)
    assert np.argmax(found) == 6
    usual = default_times(votes, Logistic(), Dynamics(), 9)
    np.testing.assert_array_equal(usual, times_of(found, n_times=9))
    assert usual[0] == pytest.approx(0.5 / found.max())


def test_terms_of_a_model_change_when_users_leave():
    votes = odd_one_out()
    usual = default_times(votes, Logistic(), Dynamics(), 5)
    other = default_times(votes, Logistic(), Dynamics(), 5, terms=terms_with(Leftmost()))
    assert np.isfinite(other).all()
    assert not np.array_equal(usual, other)
