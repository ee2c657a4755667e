"""Users on several machines: every machine finds of its users what one would find of all."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowds import assert_same, assert_same_ordinary
from isplitlbi.abnormal import find_abnormal, joined
from isplitlbi.data.splits import held_out_parts, in_order
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import malicious_study, simulate
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.solvers import fit_consensus
from machines import even_bounds, on_machines
from votes import from_rows, random_votes, rows

LINK = Logistic()


def changed(votes, seed=0, *, weighted=False, grouped=False):
    """Return the same votes with random weights or groups."""
    rng, n = np.random.default_rng(seed), len(votes)
    return replace(
        votes,
        weight=rng.choice([0.5, 1.0, 2.3], n) if weighted else None,
        group=rng.integers(15, size=n, dtype=np.int32) if grouped else None,
    )


def few_and_many(seed=3):
    """Draw users with very few votes and with many, some of whom are abnormal."""
    return simulate(
        n_users=30, n_items=6, votes_per_user=(1, 60), score_sd=1.5, threshold=0.8,
        abnormal_share=0.2, malicious={"reversed": 0.1, "always-left": 0.05}, random_state=seed,
    ).votes  # fmt: skip


STUDIES = {
    "malicious": lambda: malicious_study("random", 1).votes,
    "weights": lambda: changed(few_and_many(), weighted=True),
    "groups": lambda: changed(few_and_many(), grouped=True),
}


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    """Return votes, a consensus to start from, and what is found of all users at once."""
    votes = STUDIES[request.param]()
    start = fit_consensus(votes, LINK)
    return votes, start, find_abnormal(votes, LINK, start, seed=5)


# What the last digits of matrices show in, which are formed for several users at once.
ROUNDED = ("quality", "slope", "side", "threshold", "effect", "effect_low", "effect_high")


def assert_same_findings(one, other):
    for field in fields(one):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if field.name == "consensus":
            assert_allclose(here.values, there.values, atol=1e-7)
        elif field.name == "ordinary":
            assert_same_ordinary(here, there)
        elif field.name in ROUNDED:
            assert_allclose(here, there, atol=1e-6, err_msg=field.name)
        else:
            assert_array_equal(here, there, err_msg=field.name)


# --- everything ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_machines", [1, 2, 3])
def test_several_machines_find_what_one_finds(study, n_machines):
    votes, start, whole = study
    parts = on_machines(
        votes,
        even_bounds(votes, n_machines),
        lambda shard, runtime: find_abnormal(shard, LINK, start, seed=5, runtime=runtime),
    )
    for part in parts:
        assert_array_equal(part.consensus.values, parts[0].consensus.values)
    assert whole.flagged.any()
    assert_same_findings(joined(parts), whole)


def test_threads_of_a_machine_do_not_show():
    votes = few_and_many()
    start = fit_consensus(votes, LINK)
    one, other = (
        on_machines(
            votes,
            [0, 10, 30],
            lambda shard, runtime: find_abnormal(shard, LINK, start, runtime=runtime),
            n,
        )
        for n in (1, 2)
    )
    for here, there in zip(one, other, strict=True):
        assert_array_equal(here.consensus.values, there.consensus.values)
        assert_same(here.ordinary, there.ordinary)
        for field in fields(here):
            if field.name not in ("consensus", "ordinary"):
                assert_array_equal(getattr(here, field.name), getattr(there, field.name))


@pytest.mark.parametrize("grouped", [False, True])
def test_a_machine_may_have_users_without_votes_or_with_hardly_any(grouped):
    votes = changed(few_and_many(), weighted=True, grouped=grouped)
    silent = np.isin(votes.user, [0, 12, 13, 14, 29])
    first_of_ten = np.flatnonzero(votes.user == 10)[0]
    silent |= (votes.user == 10) & (np.arange(len(votes)) != first_of_ten)
    votes = votes.subset(~silent)
    start = fit_consensus(votes, LINK)
    whole = find_abnormal(votes, LINK, start)
    assert np.isnan(whole.p_value).sum() == 5
    assert whole.flagged.any()
    # A machine with one vote, one with none, and one whose last user has none.
    parts = on_machines(
        votes,
        [0, 10, 11, 12, 15, 30],
        lambda shard, runtime: find_abnormal(shard, LINK, start, runtime=runtime),
    )
    assert_same_findings(joined(parts), whole)


def test_how_many_votes_somebody_needs_depends_on_all_users():
    votes = in_order(few_and_many())
    votes = votes.subset(np.append(True, np.diff(votes.user) > 0) | (votes.user < 20))
    start = fit_consensus(votes, LINK)
    whole = find_abnormal(votes, LINK, start)
    assert whole.votes_needed[24] > 1
    parts = on_machines(
        votes,
        [0, 24, 25, 30],
        lambda shard, runtime: find_abnormal(shard, LINK, start, runtime=runtime),
    )
    assert_same_findings(joined(parts), whole)


def test_nobody_is_asked_about_where_nobody_is_flagged():
    votes = random_votes(2, n_users=8, n_votes=60)
    start = fit_consensus(votes, LINK)
    whole = find_abnormal(votes, LINK, start)
    assert not whole.flagged.any()
    parts = on_machines(
        votes, [0, 3, 8], lambda shard, runtime: find_abnormal(shard, LINK, start, runtime=runtime)
    )
    assert_same_findings(joined(parts), whole)


# --- what a machine learns of the others ---------------------------------------------------


@given(rows, st.integers(1, 3), st.booleans())
def test_folds_are_those_of_all_users_even_where_they_are_empty_here(rows, cut, grouped):
    votes = from_rows(rows, grouped=grouped)
    n_folds = min(4, len(votes))
    bounds = [0, min(cut, votes.n_users - 1), votes.n_users] if votes.n_users > 1 else [0, 1]

    def sizes(shard, runtime):
        parts = held_out_parts(shard, n_folds, runtime.numbers(9), runtime=runtime)
        return np.array([[len(training), len(held_out)] for training, held_out in parts])

    if len(votes) < 2:
        with pytest.raises(InvalidSetting, match="n_folds is 1; it must be an integer, 2 or more"):
            held_out_parts(votes, n_folds, 9)
        return
    whole = held_out_parts(votes, n_folds, 9)
    expected = [[len(training), len(held_out)] for training, held_out in whole]
    assert_array_equal(sum(on_machines(votes, bounds, sizes)), expected)


# --- the consensus -------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_machines", [1, 2, 3])
def test_the_consensus_of_several_machines_is_that_of_all(n_machines, link):
    votes = random_votes(1, n_users=9, n_items=7, n_votes=300, weighted=True)
    fitted = on_machines(
        votes,
        even_bounds(votes, n_machines),
        lambda shard, runtime: fit_consensus(shard, LINKS[link](), 1e-3, 2.0, runtime).values,
    )
    for consensus in fitted:
        assert_array_equal(consensus, fitted[0])
    assert_allclose(fitted[0], fit_consensus(votes, LINKS[link](), 1e-3, 2.0).values, atol=1e-9)


@given(rows, st.integers(0, 4))
def test_the_consensus_does_not_depend_on_who_holds_which_votes(rows, cut):
    votes = from_rows(rows, weighted=False)
    bounds = [0, min(cut, votes.n_users), votes.n_users]  # a machine may hold nobody
    fitted = on_machines(
        votes, bounds, lambda shard, runtime: fit_consensus(shard, LINK, runtime=runtime).values
    )
    assert_allclose(fitted[0], fit_consensus(votes, LINK).values, atol=1e-6)
    assert_array_equal(*fitted)
