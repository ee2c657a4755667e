"""What is found of every user, whatever the order of votes, their weights, or where the work is."""

from dataclasses import fields, replace

import numpy as np
import pytest

from crowds import SCORES, assert_same, assert_same_ordinary, consensus_of, gather, vote
from isplitlbi.abnormal import Abnormality, find_abnormal, joined
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.model.links import LINKS, Logistic
from isplitlbi.runtime.local import Local
from isplitlbi.solvers.likelihood import fit_consensus
from machines import even_bounds, on_machines
from votes import rebuilt

LINK = Logistic()
FLOATS = ("effect", "effect_low", "effect_high", "quality", "slope", "side", "threshold")


def test_nothing_depends_on_the_order_of_rows(votes, found):
    again = rebuilt(votes, np.random.default_rng(0).permutation(len(votes)))
    assert_same(find_abnormal(again, LINK, fit_consensus(again, LINK)), found)


def test_nothing_depends_on_the_number_of_threads(votes, start, found):
    assert_same(find_abnormal(votes, LINK, start, runtime=Local(votes, n_threads=3)), found)


@pytest.mark.parametrize("n_machines", [2, 5])
def test_several_machines_find_what_one_finds_of_every_kind(votes, start, n_machines):
    duration = np.where(votes.users[votes.user] == "careless", 0.4, 5.0)
    timed = replace(votes, duration=duration)
    whole = find_abnormal(timed, LINK, start)
    assert {"ring", "pattern", "fatigue", "too fast"} <= set(whole.kind)
    parts = on_machines(
        timed,
        even_bounds(timed, n_machines),
        lambda shard, runtime: find_abnormal(shard, LINK, start, runtime=runtime),
    )
    together = joined(parts)
    for field in fields(whole):
        here, there = getattr(together, field.name), getattr(whole, field.name)
        if field.name in FLOATS:
            np.testing.assert_allclose(here, there, atol=1e-6, err_msg=field.name)
        elif field.name == "consensus":
            np.testing.assert_allclose(here.values, there.values, atol=1e-6)
        elif field.name == "ordinary":
            assert_same_ordinary(here, there)
        else:
            np.testing.assert_array_equal(here, there, err_msg=field.name)


def test_the_seed_decides_the_p_values_but_not_by_much(votes, start, found):
    assert_same(find_abnormal(votes, LINK, start), found)
    other = find_abnormal(votes, LINK, start, seed=1)
    many = votes.votes_per_user > 2
    assert not np.array_equal(other.p_value, found.p_value)
    assert np.corrcoef(other.p_value[many], found.p_value[many])[0, 1] > 0.9
    assert_same(other.consensus, found.consensus)


def test_weights_of_one_are_no_weights(votes, start, found):
    weighted = replace(votes, weight=np.ones(len(votes)))
    assert_same(find_abnormal(weighted, LINK, start), found)


def test_users_without_votes_are_unknown_and_never_flagged(votes, place):
    silent = place["reversed"]
    part = votes.subset(votes.user != silent)
    found = find_abnormal(part, LINK, fit_consensus(part, LINK))
    assert np.isnan([found.p_value[silent], found.q_value[silent], found.quality[silent]]).all()
    assert np.isnan(found.p_value).sum() == np.isnan(found.quality).sum() == 1
    assert not found.flagged[silent]
    assert (found.kind[silent], found.votes_needed[silent]) == ("", 0)
    assert found.flagged[place["careless"]]


@pytest.mark.parametrize("fdr", [0.0, 1.0, -0.1, 2.0, np.nan])
def test_a_false_discovery_rate_lies_between_zero_and_one(votes, start, fdr):
    with pytest.raises(InvalidSetting, match="it must lie between 0 and 1"):
        find_abnormal(votes, LINK, start, fdr=fdr)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_finds_the_reversed_user(link):
    link = LINKS[link]()
    rng = np.random.default_rng(2)
    # Near items, so that each of the three links can tell what it sees.
    voters = {f"normal-{number}": vote(rng, 50, 0.5 * SCORES, 0.4) for number in range(20)}
    votes = gather(voters | {"reversed": vote(rng, 200, -0.5 * SCORES, 0.4)})
    found = find_abnormal(votes, link, fit_consensus(votes, link))
    assert votes.users[found.flagged].tolist() == ["reversed"]
    assert found.kind[votes.n_users - 1] == "reversed"


def test_who_has_too_few_votes_is_never_named():
    votes, _ = simulate(
        n_users=200, n_items=5, votes_per_user=(1, 2), score_sd=1.0, threshold=0.7,
        abnormal_share=0.0, random_state=55,
    )  # fmt: skip
    found = find_abnormal(votes, LINK, fit_consensus(votes, LINK), seed=55)
    assert (found.votes_needed > 0).any()
    assert not found.flagged[found.votes_needed > 0].any()


def test_votes_that_cannot_surprise_are_no_error():
    votes = Comparisons.from_arrays(["u", "v", "w"], ["a"] * 3, ["b"] * 3, [1] * 3)
    found = find_abnormal(votes, LINK, consensus_of([40.0, -40.0], 0.3))
    assert not found.flagged.any()


def test_parts_of_the_users_are_put_together_in_order(found):
    def part(begin, end):
        per_user = {
            field.name: getattr(found, field.name)[begin:end]
            for field in fields(Abnormality)
            if field.name not in ("fdr", "consensus", "ordinary")
        }
        return replace(found, **per_user)

    assert_same(joined([part(0, 10), part(10, 10), part(10, None)]), found)
