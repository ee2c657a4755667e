"""LBI: users in the consensus have no deviation of their own."""

from isplitlbi import LBI, ISplitLBI


def test_lbi_leaves_users_in_the_consensus_no_deviation_of_their_own(study):
    votes, truth = study
    furthest = {}
    for method in (LBI(with_tests=False), ISplitLBI(with_tests=False)):
        model = method.fit(votes)
        inside = model.entry_times_ > model.time_
        assert 0 < inside.sum() < votes.n_users
        assert not inside[truth.abnormal].any()
        distance = model.distance_to_consensus()
        furthest[type(method)] = distance[inside].max()
        assert distance[truth.abnormal].min() > 1.0
    assert furthest[LBI] < 0.05
    assert furthest[ISplitLBI] > 0.2
