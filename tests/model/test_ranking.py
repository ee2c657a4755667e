"""Rankings with ties, and recommendations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isplitlbi.model.ranking import Ranking, as_good_as, better_than, relation

# Few distinct numbers, so that equal scores and differences on the threshold come up often.
coarse = st.integers(-8, 8).map(lambda k: k / 4)
any_scores = hnp.arrays(float, st.integers(1, 8), elements=coarse | st.floats(-3, 3))
any_threshold = st.sampled_from([1e-3, 0.25, 0.5, 1.0]) | st.floats(1e-3, 4)

OPPOSITE = {"better": "worse", "tied": "tied", "worse": "better"}


def ranked(scores, threshold, seen=None):
    """Rank items called a, b, c, ..."""
    scores = np.asarray(scores, dtype=float)
    names = np.array([chr(ord("a") + k) for k in range(len(scores))], dtype=object)
    everything = np.ones(len(scores), dtype=bool)
    return Ranking.of(names, scores, threshold, everything if seen is None else np.asarray(seen))


# --- tiers ---------------------------------------------------------------------------------


def test_a_tier_starts_at_its_best_item_and_takes_in_all_within_the_threshold():
    # c is within 1 of b but not of a, the best of the first tier.
    assert ranked([3.0, 2.25, 1.5, 1.0, 0.25], 1.0).tiers == [["a", "b"], ["c", "d"], ["e"]]


def test_a_difference_equal_to_the_threshold_is_still_within_it():
    assert ranked([1.0, 0.0, -0.25], 1.0).tiers == [["a", "b"], ["c"]]


def test_one_item_makes_one_tier():
    ranking = ranked([0.3], 0.5)
    assert (ranking.tiers, len(ranking)) == ([["a"]], 1)


def test_equal_scores_keep_the_order_of_the_items():
    assert ranked([0.0, 5.0, 0.0, 5.0], 0.1).tiers == [["b", "d"], ["a", "c"]]


@given(any_scores, any_threshold)
def test_tiers_are_what_their_description_says(scores, threshold):
    ranking = ranked(scores, threshold)
    assert np.all(np.diff(ranking.scores) <= 0)
    assert set(ranking.items) == {chr(ord("a") + k) for k in range(len(scores))}
    expected, best = [], np.inf
    for item, score in zip(ranking.items, ranking.scores, strict=True):
        if expected and best - score <= threshold:
            expected[-1].append(item)
        else:
            expected.append([item])
            best = score
    assert ranking.tiers == expected
    np.testing.assert_array_equal(
        ranking.tier, [number for number, tier in enumerate(expected, 1) for _ in tier]
    )


@given(any_scores, any_threshold)
def test_the_best_of_a_tier_ties_with_all_of_it_and_beats_all_below(scores, threshold):
    ranking = ranked(scores, threshold)
    for number in np.unique(ranking.tier):
        best = int(np.flatnonzero(ranking.tier == number)[0])
        for other in range(best, len(ranking)):
            expected = "tied" if ranking.tier[other] == number else "better"
            assert relation(ranking.scores, threshold, best, other) == expected


def test_scores_and_what_was_compared_follow_their_items():
    ranking = ranked([0.0, 2.0, 1.0], 0.5, seen=[True, False, True])
    assert ranking.items.tolist() == ["b", "c", "a"]
    np.testing.assert_array_equal(ranking.scores, [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(ranking.compared, [False, True, True])


def test_integer_ids_come_back_as_they_are():
    ranking = Ranking.of(np.array([7, 3]), np.array([0.0, 1.0]), 0.5, np.ones(2, dtype=bool))
    assert ranking.tiers == [[3], [7]]


def test_a_printed_ranking_has_a_line_per_tier():
    assert str(ranked([2.0, 1.75, 0.0], 0.5)) == "1  a, b\n2  c"


def test_a_printed_ranking_aligns_the_numbers_of_ten_tiers():
    lines = str(ranked(np.arange(10.0), 0.5)).splitlines()
    assert (lines[0], lines[9]) == (" 1  j", "10  a")


def test_a_printed_ranking_brackets_items_that_were_never_compared():
    *tiers, note = str(ranked([2.0, 1.75, 0.0], 0.5, [True, False, True])).splitlines()
    assert tiers == ["1  a, (b)", "2  c"]
    assert "never compared" in note


# --- the exact relation --------------------------------------------------------------------


def test_being_tied_is_not_transitive():
    scores = np.array([2.0, 1.25, 0.5])
    assert relation(scores, 1.0, 0, 1) == relation(scores, 1.0, 1, 2) == "tied"
    assert relation(scores, 1.0, 0, 2) == "better"


@given(any_scores, any_threshold, st.data())
def test_the_relation_is_exact_and_antisymmetric(scores, threshold, data):
    index = st.integers(0, len(scores) - 1)
    a, b = data.draw(index), data.draw(index)
    found = relation(scores, threshold, a, b)
    assert relation(scores, threshold, b, a) == OPPOSITE[found]
    assert (found == "better") == (scores[a] - scores[b] > threshold)
    assert (found == "worse") == (scores[b] - scores[a] > threshold)


@given(any_scores, any_threshold)
def test_better_than_better_is_better(scores, threshold):
    everything = range(len(scores))
    beats = np.array(
        [[relation(scores, threshold, a, b) == "better" for b in everything] for a in everything]
    )
    through_another = (beats.astype(int) @ beats) > 0
    assert np.all(beats[through_another])


# --- recommendations -----------------------------------------------------------------------


def test_items_as_good_as_one_come_nearest_first_without_itself():
    scores = np.array([0.0, 0.75, -0.5, 3.0, 0.25])
    assert as_good_as(scores, 1.0, 0).tolist() == [4, 2, 1]


def test_items_better_than_one_come_with_the_slightest_step_first():
    scores = np.array([0.0, 5.0, 0.5, 2.0, -3.0, 1.5])
    assert better_than(scores, 1.0, 0).tolist() == [5, 3, 1]


def test_nothing_is_better_than_the_best():
    assert better_than(np.array([1.0, 0.0]), 0.1, 0).tolist() == []


@given(any_scores, any_threshold, st.data())
def test_recommendations_agree_with_the_relation(scores, threshold, data):
    item = data.draw(st.integers(0, len(scores) - 1))
    stand = [relation(scores, threshold, other, item) for other in range(len(scores))]
    same, better = as_good_as(scores, threshold, item), better_than(scores, threshold, item)
    assert set(same) == {k for k, word in enumerate(stand) if word == "tied" and k != item}
    assert set(better) == {k for k, word in enumerate(stand) if word == "better"}
    for chosen in (same, better):
        assert np.all(np.diff(np.abs(scores[chosen] - scores[item])) >= 0)


# --- thresholds of pairs, and none ----------------------------------------------------------


HABITS = np.array([1.0, 0.5, 3.0, 1.0])  # the third invites ties


def test_a_pair_has_a_threshold_of_its_own():
    scores = np.array([2.0, 1.2, 0.5, 0.0])
    assert relation(scores, 1.0, 0, 1, HABITS) == "better"  # apart by .8, threshold .5
    assert relation(scores, 1.0, 0, 1) == "tied"
    assert relation(scores, 1.0, 2, 0, HABITS) == "tied"  # apart by 1.5, threshold 3
    assert relation(scores, 1.0, 3, 0, HABITS) == "worse"
    assert as_good_as(scores, 1.0, 2, HABITS).tolist() == [3, 1, 0]
    assert better_than(scores, 1.0, 1, HABITS).tolist() == [0]


def test_a_tier_goes_on_while_items_tie_with_its_best():
    names, scores = np.array(list("abcd")), np.array([2.0, 1.2, 0.5, 0.0])
    ranking = Ranking.of(names, scores, 1.0, np.ones(4, dtype=bool), HABITS)
    assert ranking.tiers == [["a"], ["b", "c"], ["d"]]
    assert ranking.habits.tolist() == HABITS.tolist()
    shuffled = np.array([2, 0, 3, 1])
    again = Ranking.of(
        names[shuffled], scores[shuffled], 1.0, np.ones(4, dtype=bool), HABITS[shuffled]
    )
    assert again.tiers == ranking.tiers and again.habits.tolist() == ranking.habits.tolist()


def test_without_a_threshold_there_are_no_tiers():
    names, scores = np.array(list("abc")), np.array([0.0, 1.0, 1.0])
    ranking = Ranking.of(names, scores, None, np.ones(3, dtype=bool))
    assert ranking.tier is None and ranking.threshold is None
    assert ranking.tiers == [["b"], ["c"], ["a"]]
    assert str(ranking).splitlines() == ["1  b", "2  c", "3  a"]
    assert relation(scores, None, 1, 0) == "better"
    assert relation(scores, None, 0, 2) == "worse"
    assert relation(scores, None, 1, 2) == "tied"
    assert better_than(scores, None, 0).tolist() == [1, 2]
