"""The graph of every vote of a small example; that of pairs is in test_plots.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons
from isplitlbi.errors import InvalidVotes
from isplitlbi.output import graphs

pytest.importorskip("matplotlib", reason="figures need matplotlib (pip install .[plots])")

from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from isplitlbi.output import plots

ROWS = [
    ("ann", "V1", "V3", 0), ("ann", "V3", "V6", 1), ("bob", "V6", "V3", -1),
    ("bob", "V6", "V3", 1), ("cat", "V3", "V6", 1), ("cat", "V2", "V1", -1),
]  # fmt: skip
VOTES = Comparisons.from_arrays(*zip(*ROWS, strict=True))


def lines_of(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def test_every_vote_is_a_line_from_the_better_item_in_the_colour_of_its_user(tmp_path):
    axes = plots.votes_graph(VOTES)
    lines = lines_of(axes)
    assert len(lines) == VOTES.n_votes
    place = dict(zip(["V1", "V2", "V3", "V6"], axes.collections[0].get_offsets(), strict=True))
    for (user, left, right, outcome), line in zip(ROWS, lines, strict=True):
        better, worse = (right, left) if outcome < 0 else (left, right)
        begin, end = line._posA_posB
        np.testing.assert_allclose(begin, place[better])
        np.testing.assert_allclose(end, place[worse])
        is_tie = outcome == 0
        assert (type(line.get_arrowstyle()).__name__ == "Curve") == is_tie
        assert (line.get_linestyle() not in ("-", "solid")) == is_tie
        assert to_hex(line.get_edgecolor()) == graphs.COLOURS[["ann", "bob", "cat"].index(user)]
    named = [text.get_text() for text in axes.texts]
    assert named == ["V1", "V2", "V3", "V6"]
    axes.figure.savefig(tmp_path / "graph.png")


pairs = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1, max_size=60,
)  # fmt: skip


@given(pairs)
def test_lines_of_the_same_pair_lie_apart_whichever_item_is_on_the_left(pairs):
    left, right = np.array(pairs).T
    bends = graphs._bends(left, right)
    # As seen from the first item of a pair, which a line from the other side bends away from.
    seen = np.where(left < right, bends, -bends)
    for pair in {tuple(sorted(pair)) for pair in pairs}:
        same = [seen[vote] for vote, each in enumerate(pairs) if tuple(sorted(each)) == pair]
        assert len(set(np.round(same, 9))) == len(same)
        assert np.mean(same) == pytest.approx(0.0, abs=1e-12)
        assert np.max(np.abs(same)) < 0.7


def test_it_is_drawn_on_the_axes_that_are_given():
    axes = Figure().subplots()
    assert plots.votes_graph(VOTES, axes) is axes
    assert len(lines_of(axes)) == VOTES.n_votes


@pytest.mark.parametrize(("n_votes", "n_users", "n_items"), [(61, 2, 3), (30, 11, 3), (60, 2, 25)])
def test_too_many_votes_users_or_items_are_refused_in_one_sentence(n_votes, n_users, n_items):
    number = np.arange(n_votes)
    votes = Comparisons.from_arrays(
        number % n_users, number % n_items, (number + 1) % n_items, number % 3 - 1
    )
    expected = rf"room for 60 votes of 10 users on 24 items, but .* {n_votes} of {n_users} on "
    with pytest.raises(InvalidVotes, match=expected):
        plots.votes_graph(votes)
    assert lines_of(plots.votes_graph(votes.subset((number < 12) & (votes.user < 10))))


def test_ids_of_strangers_are_shown_as_text(tmp_path):
    votes = Comparisons.from_arrays(["$x_{", "b"], ["$y^2$", "a\nb"], ["<b>", "$y^2$"], [1, 0])
    axes = plots.votes_graph(votes)
    axes.figure.savefig(tmp_path / "graph.svg")
    assert r"\$y^2\$" in [text.get_text() for text in axes.texts]
