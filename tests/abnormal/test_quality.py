"""How carefully users vote."""

import numpy as np
import pytest

from isplitlbi.abnormal.expectation import Answers, Expectation
from isplitlbi.abnormal.kinds import KINDS
from isplitlbi.abnormal.quality import find_quality
from isplitlbi.model.links import Logistic


def test_quality_lies_between_zero_and_one_and_is_never_clipped(found):
    assert np.all((found.quality > 0) & (found.quality < 1))
    assert np.ptp(found.quality) > 0.5
    own = [found.kind[user] != "copier" for user in range(len(found.kind))]
    assert len(np.unique(found.quality[own])) == sum(own)


@pytest.mark.parametrize("user", ["diligent-1", "diligent-2", "different taste", "sharper"])
def test_careful_voters_are_rated_high_whatever_their_taste(found, place, user):
    assert found.quality[place[user]] > 0.8


@pytest.mark.parametrize(
    "user", ["careless", "always left", "always right", "always-tie", "pattern", "reversed"]
)
def test_votes_that_do_not_depend_on_the_items_are_rated_low(found, place, user):
    assert found.quality[place[user]] < 0.15


def test_one_usual_vote_leaves_the_quality_near_one_half(found, place):
    assert found.quality[place["newcomer-1"]] == pytest.approx(0.5, abs=0.2)


def test_a_kind_may_have_a_quality_of_its_own(votes, found):
    answers = Answers.of(votes)
    expected = Expectation.of(answers, found.consensus, Logistic())
    explained = answers.log_likelihood(np.log(expected.probability))
    usual = find_quality(answers, expected, explained, [""] * votes.n_users)
    for name, kind in KINDS.items():
        everybody = find_quality(answers, expected, explained, [name] * votes.n_users)
        known = usual if kind.quality is None else np.full(votes.n_users, kind.quality)
        np.testing.assert_array_equal(everybody, known)
