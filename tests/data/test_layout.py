"""Where parameters lie, and votes collapsed to what a model can tell apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.data import layout
from isplitlbi.data.layout import Layout, Sees, Shown, tally
from votes import arrays_of, assert_same, from_rows, random_votes, rebuilt
from votes import rows as vote_rows


class LeftSide:
    """A trait that sees the side: it counts where the item on the left is favoured."""

    name, sees = "side", Sees.SIDE

    def column(self, shown: Shown):
        return np.ones(len(shown.first))


class Parity:
    """A trait that belongs to the vote alone: whether its row is odd."""

    name, sees = "parity", Sees.VOTE

    def column(self, shown: Shown):
        assert len(shown.votes) > shown.row.max(initial=-1)
        return (shown.row % 2).astype(np.float64)


LEFT_SIDE, PARITY = LeftSide(), Parity()

# --- edges and slots -----------------------------------------------------------------------


def brute_tally(votes, sides=False, weighted=True):
    """Count outcomes per (user, pair) one vote after another, the lower item first or the left."""
    found = {}
    weights = votes.weight if weighted and votes.weight is not None else np.ones(len(votes))
    for user, left, right, outcome, weight in zip(
        votes.user, votes.left, votes.right, votes.outcome, weights, strict=True
    ):
        mirrored = left > right and not sides
        pair = (user, right, left) if mirrored else (user, left, right)
        counts = found.setdefault(pair, [0.0, 0.0, 0.0])
        counts[1 - (-outcome if mirrored else outcome)] += weight
    return found


def edge_table(votes):
    layout = Layout.of(votes)
    edges, item = layout.edges, layout.slots.coordinate
    counts = np.stack([edges.first_wins, edges.ties, edges.second_wins], axis=-1)
    keys = zip(edges.owner, item[edges.first], item[edges.second], strict=True)
    return dict(zip(keys, counts, strict=True))


@given(vote_rows, st.booleans())
def test_edges_count_the_votes_of_one_user_on_one_pair(rows, weighted):
    votes = from_rows(rows, weighted=weighted)
    found, expected = edge_table(votes), brute_tally(votes)
    assert list(found) == sorted(expected)
    assert len(Layout.of(votes).edges.first) == len(expected)
    for key, counts in expected.items():
        np.testing.assert_allclose(found[key], counts, rtol=1e-14)


@given(vote_rows)
def test_edges_lie_in_their_users_slots_first_before_second(rows):
    votes = from_rows(rows)
    _, slots, edges = Layout.of(votes)
    assert edges.start[0] == 0 and edges.start[-1] == len(edges.first)
    assert (edges.first < edges.second).all()
    assert (slots.owner[edges.first] == edges.owner).all()
    assert (slots.owner[edges.second] == edges.owner).all()
    assert (slots.coordinate[edges.second] < votes.n_items).all()


def test_a_vote_counts_as_much_as_its_weight_says():
    twice = Comparisons.from_arrays(["u"] * 3, list("aab"), list("bbc"), [1, 1, 0])
    weighted = Comparisons.from_arrays(["u"] * 2, list("ab"), list("bc"), [1, 0], weight=[2, 1])
    as_given = weighted.in_weight_unit(1.0)  # and not in units of the mean
    for one, other in zip(Layout.of(twice).edges, Layout.of(as_given).edges, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@given(vote_rows)
def test_slots_are_the_items_each_user_compared_and_a_threshold_last(rows):
    votes = from_rows(rows)
    slots = Layout.of(votes).slots
    for user in range(votes.n_users):
        mine = votes.user == user
        compared = sorted({*votes.left[mine].tolist(), *votes.right[mine].tolist()})
        own = slots.coordinate[slots.start[user] : slots.start[user + 1]]
        assert own.tolist() == [*compared, votes.n_items]
    assert slots.n_users == votes.n_users
    assert (slots.coordinate[slots.threshold] == votes.n_items).all()


@given(vote_rows, st.booleans())
def test_slots_and_edges_are_the_same_with_and_without_a_table_of_all_of_them(rows, weighted):
    def laid():
        votes = from_rows(rows, weighted=weighted)
        return votes, votes.subset(np.arange(0, len(votes), 2))

    expected = laid()
    assert all(len(Layout.of(votes).edges.first) for votes in expected)
    with pytest.MonkeyPatch.context() as patch:
        for per_vote, bits in ((10**6, 63), (0, 63), (10**6, 0), (0, 0)):
            patch.setattr(layout, "TABLE_PER_VOTE", per_vote)
            patch.setattr(layout, "PACKED_BITS", bits)
            for here, there in zip(laid(), expected, strict=True):
                assert_same(here, there)


def test_memory_grows_with_the_votes_and_not_with_users_times_items():
    n = 2000
    votes = Comparisons.from_arrays(range(n), range(n), range(1, n + 1), [1] * n)
    laid = Layout.of(votes)
    assert laid.n_slots == 3 * n and len(laid.edges.first) == n


@given(vote_rows, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, weighted, random):
    votes = from_rows(rows, weighted=weighted)
    shuffled = list(rows)
    random.shuffle(shuffled)
    here, there = arrays_of(votes), arrays_of(from_rows(shuffled, weighted=weighted))
    for name, array in here.items():
        if name in ("users", "items") or "." in name:
            np.testing.assert_array_equal(array, there[name], err_msg=name, strict=True)


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_many_weights_do_not_depend_on_the_order_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    votes = random_votes(rng, n_users=1, n_items=2, n_votes=200, weighted=True)
    other = rebuilt(votes, order=rng.permutation(200), swapped=rng.random(200) < 0.5)
    for one, two in zip(Layout.of(votes).edges, Layout.of(other).edges, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)


@given(vote_rows, st.data())
def test_swapping_the_sides_of_any_votes_leaves_the_edges_unchanged(rows, data):
    votes = from_rows(rows)
    n = votes.n_votes
    swapped = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    other = rebuilt(votes, swapped=swapped)
    assert (other.left[swapped] == votes.right[swapped]).all()
    for one, two in zip(Layout.of(votes).edges, Layout.of(other).edges, strict=True):
        np.testing.assert_array_equal(one, two, strict=True)


# --- parts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [[4, 0], [True, False, False, False, True] + [False] * 55])
def test_a_part_has_the_slots_of_the_whole(chosen):
    votes = random_votes(0)
    part = votes.subset(chosen)
    here, whole = Layout.of(part), Layout.of(votes)
    assert here.slots is whole.slots
    assert here.edges.start.shape == whole.edges.start.shape
    assert edge_table(part).keys() == brute_tally(part).keys()
    assert Layout.of(part.subset([0])).slots is whole.slots


def test_the_empty_part_has_no_edges_and_all_slots():
    votes = random_votes(0)
    part = Layout.of(votes.subset(np.zeros(len(votes), dtype=bool)))
    assert len(part.edges.first) == 0
    assert part.edges.start.tolist() == [0] * (votes.n_users + 1)
    assert part.slots is Layout.of(votes).slots


def test_a_layout_is_found_once_and_cannot_be_changed():
    votes = random_votes(0)
    found = Layout.of(votes)
    assert Layout.of(votes) is found
    for array in (found.slots.start, found.slots.coordinate, *found.edges):
        assert not array.flags.writeable


# --- traits ----------------------------------------------------------------------------------


def test_traits_lie_after_the_items_and_before_the_threshold():
    vector = Layout.of(random_votes(0), (LEFT_SIDE, PARITY)).vector
    assert vector.traits == ("side", "parity", "threshold")
    assert (vector.place("side"), vector.place("parity"), vector.threshold) == (4, 5, 6)
    assert vector.width == 7 and vector.scores == slice(0, 4)


@given(vote_rows)
def test_every_user_has_a_slot_for_every_trait(rows):
    votes = from_rows(rows)
    plain, found = Layout.of(votes), Layout.of(votes, (LEFT_SIDE,))
    assert (found.slots.sizes == plain.slots.sizes + 1).all()
    assert (found.slots.coordinate[found.slots.threshold] == found.vector.threshold).all()
    assert (found.slots.coordinate[found.slots.threshold - 1] == found.vector.place("side")).all()


@given(vote_rows, st.booleans())
def test_where_a_trait_sees_the_side_both_sides_are_kept_apart(rows, weighted):
    votes = from_rows(rows, weighted=weighted)
    laid = Layout.of(votes, (LEFT_SIDE,))
    item, edges = laid.slots.coordinate, laid.edges
    found = dict(
        zip(
            zip(edges.owner, item[edges.first], item[edges.second], strict=True),
            np.stack(edges.counts, axis=-1),
            strict=True,
        )
    )
    expected = brute_tally(votes, sides=True)
    assert list(found) == sorted(expected)
    for key, counts in expected.items():
        np.testing.assert_allclose(found[key], counts, rtol=1e-14)
    np.testing.assert_array_equal(edges.columns, np.ones((1, len(edges.first))))


@given(vote_rows)
def test_where_a_trait_sees_the_vote_only_equal_votes_are_one_edge(rows):
    votes = from_rows(rows, weighted=False)
    edges = Layout.of(votes, (LEFT_SIDE, PARITY)).edges
    kinds = {
        (user, left, right, row % 2)
        for row, (user, left, right) in enumerate(
            zip(votes.user.tolist(), votes.left.tolist(), votes.right.tolist(), strict=True)
        )
    }
    assert len(edges.first) == len(kinds)
    assert sum(count.sum() for count in edges.counts) == len(votes)
    odd = edges.columns[1] == 1.0
    assert sum(count[odd].sum() for count in edges.counts) == len(votes) // 2


# --- counts by pair --------------------------------------------------------------------------


@given(vote_rows, st.booleans(), st.booleans(), st.sampled_from([Sees.PAIR, Sees.SIDE]))
def test_a_tally_counts_every_vote_once(rows, by_user, weighted, sees):
    votes = from_rows(rows)
    with pytest.MonkeyPatch.context() as patch:
        for bits in (63, 0):
            patch.setattr(layout, "PACKED_BITS", bits)
            found = tally(votes, by_user=by_user, sees=sees, weighted=weighted)
            expected = {}
            for key, counts in brute_tally(votes, sees == Sees.SIDE, weighted).items():
                key = key if by_user else (0, *key[1:])
                expected[key] = expected.get(key, 0.0) + np.array(counts)
            keys = zip(found.user, found.first, found.second, strict=True)
            assert list(keys) == sorted(expected)
            counts = np.array([expected[key] for key in sorted(expected)])
            np.testing.assert_allclose(np.stack(found.counts, axis=-1), counts, rtol=1e-14)
            np.testing.assert_allclose(found.amount, counts.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("by_weight", [False, True])
@pytest.mark.parametrize("sees", [Sees.PAIR, Sees.SIDE])
def test_votes_of_other_features_are_kept_apart_where_they_are_asked_for(sees, by_weight):
    rng = np.random.default_rng(0)
    plain = random_votes(3, n_votes=400, weighted=True)
    length = rng.integers(-2, 3, size=len(plain)).astype(float)
    columns = plain.users[plain.user], plain.items[plain.left], plain.items[plain.right]
    votes = Comparisons.from_arrays(
        *columns, plain.outcome, plain.weight, features={"length": length}
    )
    assert tally(votes, by_user=True, sees=sees).features is None
    found = tally(votes, by_user=True, by_weight=by_weight, by_features=True, sees=sees)
    turned = (votes.left > votes.right) & (sees == Sees.PAIR)
    first, second = np.where(turned, [votes.right, votes.left], [votes.left, votes.right])
    value = np.where(turned, -1.0, 1.0) * votes.features.values[:, 0]
    kept = [votes.user, first, second, *([votes.weight] if by_weight else []), value + 0.0]
    rows, amount = np.unique(np.stack(kept, axis=1), axis=0), found.amount
    here = [found.user, found.first, found.second, *([found.weight] if by_weight else [])]
    in_order = np.stack([*here, found.features[0] + 0.0], axis=1)
    np.testing.assert_array_equal(in_order[np.lexsort(in_order.T[::-1])], rows)
    total = len(votes) if by_weight else votes.weight.sum()
    assert amount.sum() == pytest.approx(total)
    again = tally(
        rebuilt(votes, rng.permutation(len(votes))), by_user=True, by_weight=by_weight,
        by_features=True, sees=sees,
    )  # fmt: skip
    np.testing.assert_array_equal(again.features, found.features)


# --- real votes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simulation", "college", "wmt16_cze-eng"])
def test_real_votes_are_laid_out_whole(name, shared_data):
    votes = Comparisons.read(shared_data / f"{name}.csv")
    laid = Layout.of(votes)
    assert sum(count.sum() for count in laid.edges.counts) == votes.n_votes
    assert laid.n_slots <= 2 * votes.n_votes + votes.n_users
