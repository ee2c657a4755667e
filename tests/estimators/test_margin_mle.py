"""Margin-based maximum likelihood: many votes give back the truth."""

import numpy as np
import pytest

from isplitlbi import MarginMLE, simulate
from isplitlbi.errors import InvalidSetting

NOISES = {"logistic": ("logistic", 1.0, 0.6), "probit": ("normal", 0.7, 0.4),
          "uniform": ("uniform", 0.2, 0.3)}  # fmt: skip


@pytest.mark.parametrize("link", NOISES)
def test_many_votes_of_a_link_give_back_scores_and_threshold(link):
    noise, score_sd, threshold = NOISES[link]
    votes, truth = simulate(
        n_users=10, n_items=6, votes_per_user=(2000, 2000), score_sd=score_sd, threshold=threshold,
        abnormal_share=0.0, noise=noise, random_state=2,
    )  # fmt: skip
    expected = truth.scores - truth.scores.mean()

    def error(name):
        model = MarginMLE(name).fit(votes)
        return max(np.abs(model.consensus_ - expected).max(), abs(model.threshold_ - threshold))

    assert error(link) < 0.05
    for other in NOISES.keys() - {link}:  # whose scores are on another scale
        assert error(other) > 0.1
    scores = MarginMLE(link).fit(votes).consensus_
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(expected))


def test_nobody_has_a_ranking_of_their_own(votes):
    model = MarginMLE().fit(votes)
    assert not model.distance_to_consensus().any()
    assert str(model.ranking(votes.users[0]).tiers) == str(model.ranking().tiers)
    assert model.left_consensus_ == []
    assert np.isinf(model.entry_times_).all()
    assert (model.path_, model.selection_, model.time_) == (None, None, None)
    with pytest.raises(InvalidSetting, match=r"^a model of MarginMLE has no path .* Fit ISplitLBI"):
        model.decompose()
