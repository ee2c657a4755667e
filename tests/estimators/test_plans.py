"""When a model says that one can stop, and how many more votes it asks for until then."""

from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isplitlbi import Comparisons, ISplitLBI, MarginMLE
from isplitlbi.errors import ISplitLBIError
from isplitlbi.estimators.plans import Needed, percent
from isplitlbi.evaluation.simulate import simulate

VOTES = Path(__file__).resolve().parents[2] / "docs" / "votes.csv"


def study(seed=1, **changes):
    settings = {"n_users": 15, "n_items": 8, "votes_per_user": (8, 20), "score_sd": 1.0}
    settings |= {"threshold": 0.5, "abnormal_share": 0.0, "taste_sd": 0.4}
    return simulate(**(settings | changes), random_state=seed)


@pytest.fixture(scope="module")
def unsure():
    """A model of few votes."""
    return ISplitLBI(with_tests=False).fit(study().votes)


@pytest.fixture(scope="module")
def plan(unsure):
    return unsure.plan()


@pytest.fixture(scope="module")
def sure():
    """A model of many votes on few items."""
    return ISplitLBI(with_tests=False).fit(VOTES)


# --- now -----------------------------------------------------------------------------------


def test_a_plan_says_how_certain_the_order_is(plan, unsure):
    n_pairs = 8 * 7 / 2
    assert plan.sure.tau == pytest.approx(1.0 - 2.0 * plan.sure.n_wrong / n_pairs)
    assert 0.0 < plan.sure.first == plan.sure.top < 1.0
    assert plan.items == unsure.ranking().items.tolist()
    assert (plan.n_votes, plan.n_users) == (len(unsure.votes()), 15)
    assert repr(plan) == f"Plan: {plan.now:.3f} of 0.9 (aim: ranking)"


def test_a_target_is_reached_once_the_order_is_that_certain(sure, unsure):
    assert sure.plan(target=0.9).is_reached
    assert not unsure.plan(target=0.9).is_reached
    plan = unsure.plan("top 2", target=0.5)
    assert plan.now == plan.sure.top
    assert unsure.plan("top 2", target=plan.now - 0.01).is_reached
    assert not unsure.plan("top 2", target=plan.now + 0.01).is_reached


def test_a_reached_target_needs_no_votes(sure):
    plan = sure.plan(target=0.9)
    for way in ("asked", "random"):
        assert plan.needed(way) == (0.0, 0.0, 0.0)
        assert str(plan.needed(way)) == "none"
    assert "you can stop" in plan.sentences()[-1]
    assert "needed" not in str(plan)


def test_the_expected_tau_is_about_that_with_the_truth():
    # In each study the order is right or wrong by chance, so some are looked at together.
    found, true = [], []
    for seed in range(5):
        drawn = study(seed, n_users=40, votes_per_user=(12, 12))
        model = ISplitLBI(with_tests=False).fit(drawn.votes)
        found.append(model.plan().sure.tau)
        truth, fitted = drawn.truth.scores, model.consensus_
        first, second = np.triu_indices(len(truth), 1)
        same = np.sign(truth[first] - truth[second]) * np.sign(fitted[first] - fitted[second])
        true.append(same.mean())
    assert np.mean(found) == pytest.approx(np.mean(true), abs=0.08)


# --- borders of tiers ----------------------------------------------------------------------


def test_borders_are_those_between_the_tiers_of_the_ranking(sure, unsure):
    for model in (sure, unsure):
        plan, tiers = model.plan(), [len(tier) for tier in model.ranking().tiers]
        assert plan.tiers == tiers
        borders = plan.borders()
        assert [tier for tier, _, _ in borders] == list(range(1, len(tiers)))
        assert [above for _, above, _ in borders] == list(accumulate(tiers))[:-1]
        assert all(0.0 <= certain <= 1.0 for _, _, certain in borders)
    assert max(certain for _, _, certain in sure.plan().borders()) > 0.9


def test_without_ties_there_are_no_tiers_and_no_borders():
    model = ISplitLBI(with_tests=False).fit(study(threshold=None).votes)
    assert model.ranking().tier is None
    plan = model.plan()
    assert (plan.borders(), plan.tiers, plan.sure.borders) == ([], [], ())
    assert plan.needed().votes > 0.0


# --- more votes ----------------------------------------------------------------------------


def test_more_votes_are_needed_for_more_certainty(unsure, plan):
    for way in ("asked", "random"):
        needed = [unsure.plan(target=target).needed(way) for target in (0.82, 0.86, 0.9)]
        for each in needed:
            assert 0.0 < each.low <= each.votes <= each.high
        assert all(one.votes < other.votes for one, other in pairwise(needed))
    assert plan.needed("asked").votes <= 1.1 * plan.needed("random").votes


def test_a_target_that_is_not_reached_needs_votes(unsure, plan):
    just_above = unsure.plan(target=plan.now + 0.005)
    assert not just_above.is_reached
    assert just_above.needed().votes > 0.0


def test_what_cannot_be_reached_is_more_than_can_be_foreseen(unsure):
    plan = unsure.plan(target=0.9999)
    assert plan.needed().votes == np.inf
    assert "more than can be foreseen" in str(plan)
    assert plan.best < 0.9999
    assert plan.sentences()[-1].endswith("Ask more users.")


@pytest.mark.parametrize(
    "needed, said",
    [
        ((0.0, 0.0, 0.0), "none"),
        ((7.2, 3.0, 12.0), "about 8 (3 to 12)"),
        ((123.4, 99.0, 1_010.0), "about 130 (99 to 1,100)"),
        ((12_001.0, 120.0, np.inf), "about 13,000 (120 to far more)"),
        ((np.inf, 5.0, np.inf), "more than can be foreseen"),
    ],
)
def test_numbers_of_votes_are_rounded_up_to_two_digits(needed, said):
    assert str(Needed(*needed)) == said


def test_the_table_has_both_ways_of_asking(plan):
    table = plan.to_frame()
    assert table.columns == [
        "way", "more_votes", "tau", "tau_low", "tau_high", "top", "top_low", "top_high",
    ]  # fmt: skip
    assert table["way"].unique(maintain_order=True).to_list() == ["asked", "random"]
    for (_way,), part in table.group_by("way", maintain_order=True):
        assert part["more_votes"][0] == 0
        assert part["more_votes"][-1] == 20 * plan.n_votes
        assert part["more_votes"].is_sorted()
        for name in ("tau", "top"):
            assert (part[f"{name}_low"] <= part[f"{name}_high"]).all()
        assert part["tau"].to_numpy()[-1] > part["tau"].to_numpy()[0]


def test_tables_are_of_the_kind_that_the_votes_came_in(quick):
    assert isinstance(quick.plan().to_frame(), pd.DataFrame)


def test_the_cells_are_those_of_the_aim(plan, unsure):
    heading, *rows = plan.cells()
    assert heading == ["more votes", "tau, asked", "80 %", "tau, random", "80 %"]
    assert len(rows) == len(plan.ahead.asked.n_more)
    assert rows[0][0] == "0" and rows[0][1] == rows[0][3]
    assert unsure.plan("top 2").cells()[0][1] == "probability, asked"


# --- in words ------------------------------------------------------------------------------


def test_sentences_say_what_is_certain_and_what_is_missing(unsure):
    plan = unsure.plan(target=0.8)
    said = plan.sentences()
    assert said[0].startswith(f"Of 28 pairs of items, about {plan.sure.n_wrong:.1f} stand in the")
    assert said[1] == f"{plan.items[0]} is first with a probability of {percent(plan.sure.first)}."
    assert said[2].startswith("For Kendall's tau of 0.8, more votes are needed: about")
    assert str(plan) == "\n".join(said)
    top = unsure.plan("top 3")
    assert top.sentences()[2].startswith("The first 3 places hold the right items with a probab")
    assert top.sentences()[3].startswith("For the probability of 0.9")
    assert plan.sentences(lambda item: "it")[1].startswith("it is first")


def test_items_and_users_are_called_as_in_the_study():
    model = ISplitLBI(with_tests=False, call={"items": "teas", "users": "person/people"})
    said = str(model.fit(study().votes).plan(target=0.9999))
    assert "28 pairs of teas" in said
    assert "15 people" in said and "Ask more people." in said


@pytest.mark.parametrize(
    "share, said",
    [(0.0, "below 1 %"), (0.01, "1 %"), (0.5, "50 %"), (0.99, "99 %"), (1.0, "over 99 %")],
)
def test_nothing_is_certain_in_per_cent(share, said):
    assert percent(share) == said


# --- other models --------------------------------------------------------------------------


def test_a_crowd_has_a_plan_and_no_users_to_ask_more_of(unsure):
    votes = unsure.votes()
    crowd = ISplitLBI().fit(Comparisons.from_arrays(
        None, votes.items[votes.left], votes.items[votes.right], votes.outcome
    ))  # fmt: skip
    plan = crowd.plan(target=0.999)
    assert plan.is_of_crowd
    assert plan.ahead.most_tau > 0.999  # nobody in it has a taste of their own
    assert "Ask more" not in str(plan)
    assert 0.0 < crowd.plan(target=0.95).needed().votes < np.inf


def test_one_ranking_for_all_has_a_plan(unsure):
    plan = MarginMLE().fit(unsure.votes()).plan()
    assert 0.0 < plan.sure.tau < 1.0
    assert plan.ahead.most_tau > 0.999
    assert 0.0 < plan.needed().votes < np.inf


def test_the_same_votes_in_another_order_have_the_same_plan(unsure, plan):
    order = np.random.default_rng(0).permutation(len(unsure.votes()))
    again = ISplitLBI(with_tests=False, n_jobs=2).fit(unsure.votes().subset(order)).plan()
    assert again.items == plan.items and again.tiers == plan.tiers
    assert_allclose(again.sure.tau, plan.sure.tau, rtol=1e-6)
    # What is ahead is drawn: rounding may decide on which side of a border a draw lies.
    assert_allclose(again.ahead.asked.tau, plan.ahead.asked.tau, atol=1e-4)
    assert_allclose(again.ahead.asked.top, plan.ahead.asked.top, atol=0.02)


def test_progress_goes_to_the_end_and_a_plan_changes_nothing(unsure, plan):
    told = []
    again = unsure.plan(progress=told.append)
    assert told[-1] == 1.0
    assert_array_equal(again.ahead.asked.tau, plan.ahead.asked.tau)
    assert again.sentences() == plan.sentences()


# --- what is refused -----------------------------------------------------------------------

REFUSED = {
    "a person": ({"aim": "person"}, "a plan is of the consensus"),
    "nothing": ({"target": 0.0}, "target is 0.0"),
    "certainty": ({"target": 1.0}, "target is 1.0"),
    "per cent": ({"target": 90}, "target is 90"),
    "no number": ({"target": float("nan")}, "target is nan"),
    "more places than items": ({"aim": "top 99"}, "'top 99'"),
    "another aim": ({"aim": "nonsense"}, "'nonsense' is not one of"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(unsure, what):
    settings, said = REFUSED[what]
    with pytest.raises(ISplitLBIError, match=said) as refused:
        unsure.plan(**settings)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


def test_another_way_of_asking_is_refused(plan):
    with pytest.raises(ISplitLBIError, match="'guessing' is not one of asked, random"):
        plan.needed("guessing")
