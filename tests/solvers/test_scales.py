"""How large terms are, as the votes tell it: empirical Bayes before anybody leaves."""

import numpy as np
import pytest

from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import Terms
from isplitlbi.runtime import blocks
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import scales
from isplitlbi.solvers.scales import Given, estimate_sizes, fit_sized, refreshed
from machines import on_machines
from votes import random_votes, rebuilt

BASE = {"n_users": 80, "n_items": 8, "votes_per_user": (80, 80), "abnormal_share": 0.0,
        "score_sd": 1.0}  # fmt: skip
PLANTED = {"taste": 0.5, "sharpness": 0.5, "side": 0.6, "threshold": 0.5}


def drawn(seed, threshold=0.7, **others):
    return simulate(**BASE, threshold=threshold, random_state=seed, **others).votes


def terms_for(votes, names="all"):
    features = () if votes.features is None else votes.features.names
    return Terms.named(names, features=features, has_ties=bool(np.any(votes.outcome == 0)))


def estimated(votes, given=None, *, names="all", n_threads=1, seed=0):
    terms = terms_for(votes, names)
    return estimate_sizes(votes, Logistic(), terms, Local(votes, n_threads), given, seed)


def spreads(sizes):
    """Return standard deviations by the names of terms."""
    return dict(zip(sizes.terms.names, np.sqrt(sizes.variances), strict=True))


@pytest.fixture(scope="module")
def varied():
    """Users who differ in everything, and items whose habits do."""
    return drawn(
        1, sharpness=0.5, side=0.6, taste_sd=0.5, threshold_sd=0.5, tie_habit=0.4,
        features={"length": (0.5, 0.4)},
    )  # fmt: skip


def assert_same_sizes(one, other, tolerance=0.0):
    np.testing.assert_allclose(one.variances, other.variances, rtol=tolerance)
    np.testing.assert_allclose(
        [one.nu, one.ordinary, one.terms.score_variance, one.terms.habit_variance],
        [other.nu, other.ordinary, other.terms.score_variance, other.terms.habit_variance],
        rtol=tolerance,
    )
    if one.terms.reference is not None:
        np.testing.assert_allclose(
            one.terms.reference, other.terms.reference, rtol=tolerance, atol=tolerance
        )


# --- what is found -------------------------------------------------------------------------


def test_planted_sizes_are_found_roughly(varied):
    sizes = estimated(varied)
    found = spreads(sizes)
    for name, planted in (PLANTED | {"length": 0.4}).items():
        assert 0.6 * planted < found[name] < 1.5 * planted, name
    assert 0.2 < np.sqrt(sizes.terms.habit_variance) < 0.8
    assert 0.4 < np.sqrt(sizes.terms.score_variance) < 2.0
    assert sizes.terms.scales[0] == 1.0 and sizes.nu == pytest.approx(found["taste"] ** 2)


def test_where_all_are_alike_every_size_is_next_to_nothing():
    found = estimated(drawn(0, threshold_spread=0.0))
    assert max(spreads(found).values()) < 0.2
    assert found.terms.habit_variance < 0.02


@pytest.mark.parametrize(
    ("planted", "name"),
    [({"sharpness": 0.6}, "sharpness"), ({"side": 0.8}, "side"), ({"taste_sd": 0.8}, "taste"),
     ({"threshold_sd": 0.8}, "threshold")],
)  # fmt: skip
def test_what_users_differ_in_is_the_largest_by_far(planted, name):
    found = spreads(estimated(drawn(2, **planted)))
    assert found[name] > 0.6 * next(iter(planted.values()))
    assert all(found[name] > 2.0 * other for each, other in found.items() if each != name)


def test_a_choice_that_is_forced_has_no_threshold_to_size():
    votes = drawn(3, threshold=None, sharpness=0.5, side=0.6)
    sizes = estimated(votes)
    found = spreads(sizes)
    assert found["threshold"] == 0.0
    assert 0.3 < found["sharpness"] < 0.8 and 0.4 < found["side"] < 0.9
    assert "threshold" not in refreshed(votes, Logistic(), sizes, Local(votes)).spreads


def test_terms_that_are_switched_off_stay_off(varied):
    found = spreads(estimated(varied, names="side"))
    assert found["taste"] == found["threshold"] == 0.0
    assert found["side"] > 0.3
    sharp = estimated(varied, names="sharpness")
    assert sharp.terms.scales[0] == 0.0 and spreads(sharp)["sharpness"] > 0.2
    assert fit_sized(varied, Logistic(), sharp, Local(varied)).terms.scales[0] == 0.0


# --- what is given -------------------------------------------------------------------------


def test_what_is_given_is_used_as_given(varied):
    given = Given(0.2, {"side": 0.5, "sharpness": 2.0})
    sizes = estimated(varied, given)
    assert sizes.nu == 0.2
    assert sizes.terms.scales[0] == 1.0
    assert sizes.terms.scale("side") == pytest.approx(0.5)
    assert sizes.terms.scale("sharpness") == pytest.approx(2.0)
    assert sizes.terms.scale("threshold") not in (0.0, 1.0)  # found from the votes
    assert given.as_dict() == {"nu": 0.2, "scales": {"side": 0.5, "sharpness": 2.0}}


def test_a_scale_of_nothing_switches_a_term_off(varied):
    sizes = estimated(varied, Given(scales={"side": 0.0}))
    assert sizes.terms.scale("side") == 0.0
    assert sizes.terms.scale("sharpness") > 0.0


def test_a_scale_that_is_given_is_in_units_of_the_nu_that_is_found(varied):
    sizes = estimated(varied, Given(scales={"side": 0.5}))
    assert sizes.terms.scale("side") == pytest.approx(0.5)
    assert sizes.variances[sizes.terms.names.index("side")] == pytest.approx(0.25 * sizes.nu)


# --- what must not matter ------------------------------------------------------------------


def test_the_order_of_rows_leaves_no_trace(varied):
    shuffled = rebuilt(varied, np.random.default_rng(0).permutation(len(varied)))
    # What a feature is measured by is a sum over rows, and rounds as these come.
    assert_same_sizes(estimated(varied), estimated(shuffled), 1e-9)


def test_the_number_of_threads_leaves_no_trace(varied, monkeypatch):
    monkeypatch.setattr(blocks, "EDGES_PER_BLOCK", 500)
    assert_same_sizes(*(estimated(varied, n_threads=n) for n in (1, 2)))


def test_machines_find_together_what_one_finds(varied):
    terms = terms_for(varied)
    alone = estimated(varied)
    together = on_machines(
        varied, [0, 30, 80],
        lambda here, runtime: estimate_sizes(here, Logistic(), terms, runtime, None, 0),
    )  # fmt: skip
    assert_same_sizes(together[0], together[1])
    assert_same_sizes(alone, together[0], 1e-6)


def test_a_sample_of_users_tells_nearly_the_same_and_the_seed_decides_it(varied, monkeypatch):
    whole = estimated(varied)
    monkeypatch.setattr(scales, "MOST_WORK", 4e4)
    one, again, other = (estimated(varied, seed=seed) for seed in (0, 0, 1))
    assert_same_sizes(one, again)
    assert not np.array_equal(one.variances, other.variances)
    for name, found in spreads(one).items():
        assert 0.4 < found / spreads(whole)[name] < 2.5, name


# --- the reference, and other sizes --------------------------------------------------------


def test_the_reference_is_the_consensus_of_the_fit_itself(varied):
    sizes = refreshed(varied, Logistic(), estimated(varied), Local(varied))
    fitted = fit_sized(varied, Logistic(), sizes, Local(varied))
    reference, scores = sizes.terms.reference, fitted.common.scores
    assert np.corrcoef(reference, scores)[0, 1] > 0.999
    np.testing.assert_allclose(reference, scores, atol=0.1 * np.std(scores))
    assert set(sizes.spreads) == set(sizes.terms.names)
    assert all(value > 0.1 for value in sizes.spreads.values())


def test_multiples_change_what_they_are_of_and_nothing_else(varied):
    sizes = estimated(varied)
    names = sizes.terms.names
    for name in names:
        other = sizes.resized({name: 4.0})
        expected = sizes.variances * np.where(np.array(names) == name, 4.0, 1.0)
        np.testing.assert_allclose(other.variances, expected, rtol=1e-12)
        assert other.terms.scales[0] == 1.0


@pytest.mark.parametrize("tie_share", [0.0, 0.2, 1.1], ids=["no ties", "some", "only ties"])
@pytest.mark.parametrize("sizes", [(1, 2, 1), (1, 2, 5), (5, 2, 5), (3, 9, 6)], ids=str)
def test_the_smallest_studies_have_sizes_too(sizes, tie_share):
    votes = random_votes(0, *sizes, tie_share)
    found = estimated(votes)
    assert np.isfinite(found.variances).all() and np.isfinite(found.nu)
    assert 0.0 < found.nu <= scales.LARGEST
    fitted = fit_sized(votes, Logistic(), found, Local(votes))
    assert np.isfinite(fitted.consensus).all() and np.isfinite(fitted.deviation).all()
