"""Every figure exists and holds what it should: elements are counted, pixels are not looked at."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi import Comparisons, ISplitLBI, MarginMLE, compare
from isplitlbi.abnormal import KINDS
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.words import factor, name_of_term, sorted_spreads

pytest.importorskip("matplotlib", reason="figures need matplotlib (pip install .[plots])")

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from isplitlbi.output import plots


@pytest.fixture(scope="module")
def study():
    return simulate(
        n_users=16, n_items=6, votes_per_user=(30, 50), abnormal_share=0.2,
        malicious={"reversed": 0.13}, random_state=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(study):
    return ISplitLBI(n_folds=3).fit(study.votes)


def test_changes_have_a_dot_and_two_intervals_for_every_item(model, study):
    earlier = MarginMLE().fit(study.votes.subset(study.votes.user < 10))
    found = compare(earlier, MarginMLE().fit(study.votes))
    axes = plots.changes(found)
    assert labels_of(axes.yaxis) == found.items.tolist()
    thin, thick, dots = axes.collections
    for lines, low, high in (
        (thin, found.low_of_all, found.high_of_all), (thick, found.low, found.high),
    ):  # fmt: skip
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, np.column_stack([low, high]))
    np.testing.assert_allclose(dots.get_offsets()[:, 0], found.change)


def labels_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


EVERY = {
    "path": plots.path,
    "cross-validation": plots.cross_validation,
    "ladder": plots.consensus_ladder,
    "user": lambda model, axes=None: plots.user_against_consensus(model, model.users_[0], axes),
    "deviations": plots.deviations,
    "distances": plots.distances,
    "graph": plots.comparison_graph,
    "terms": plots.terms,
}


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_every_figure_can_be_saved_without_a_display(draw, model, tmp_path):
    axes = draw(model)
    axes.figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_a_figure_is_drawn_on_the_axes_that_are_given(draw, model):
    axes = Figure().subplots()
    assert draw(model, axes=axes) is axes
    assert axes.has_data()


def test_the_path_has_a_line_and_a_mark_of_leaving_for_every_user(model):
    axes = plots.path(model)
    times = model.path_.times
    lines = [line for line in axes.lines if len(line.get_xdata()) == len(times)]
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    left = (model.entry_times_ >= times[0]) & (model.entry_times_ <= times[-1])
    assert len(lines) == len(model.users_)
    assert len(marks) == left.sum() > 0
    chosen = [line for line in axes.lines if list(line.get_xdata()) == [model.time_] * 2]
    assert len(chosen) == 1
    found = model.abnormality_
    coloured = {line.get_color() for line in lines} - {plots.PALE}
    assert coloured == {KINDS[kind].colour for kind in found.kind if kind}
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"not abnormal ({(~found.flagged).sum()})" in legend
    assert axes.get_xscale() == "log"


def test_the_curves_of_the_cross_validation_have_their_spread(model):
    axes = plots.cross_validation(model, "micro_f1")
    curves = model.selection_.chosen
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), curves.mean("micro_f1"))
    assert len(axes.collections) == 2  # a band for each estimate
    assert "micro-F1" in axes.get_ylabel()


def test_a_given_time_has_no_cross_validation_to_draw(study):
    given = ISplitLBI(time=0.3).fit(study.votes)
    with pytest.raises(ValueError, match="its time was given"):
        plots.cross_validation(given)


def test_the_ladder_names_every_item_from_the_best_down(model):
    axes = plots.consensus_ladder(model)
    labels = labels_of(axes.yaxis)
    assert labels == model.ranking().items.tolist()
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    bar = next(line for line in axes.lines if line.get_linewidth() == 3)
    assert np.ptp(bar.get_xdata()) == pytest.approx(model.threshold_)
    n_odd_tiers = len([tier for tier in np.unique(model.ranking().tier) if tier % 2])
    assert len(axes.patches) == n_odd_tiers


def test_the_ladder_shows_the_tie_habits_of_items(featured):
    axes = plots.consensus_ladder(featured)
    texts = [text.get_text() for text in axes.texts]
    assert texts[:2] == ["  threshold", "ties"]
    assert texts[2:] == [factor(habit) for habit in featured.ranking().habits]


def test_without_ties_the_ladder_has_neither_tiers_nor_a_threshold(forced):
    axes = plots.consensus_ladder(forced)
    assert not axes.patches and not axes.texts
    assert not [line for line in axes.lines if line.get_linewidth() == 3]
    labels = labels_of(axes.yaxis)
    assert labels == forced.ranking().items.tolist()


def test_without_ties_an_item_that_changes_its_rank_has_moved(forced):
    for user in forced.users_[:4]:
        axes = plots.user_against_consensus(forced, user)
        blue = [line.get_color() == "#2166ac" for line in axes.lines]
        own, common = (forced.ranking(who).items.tolist() for who in (user, None))
        compared = forced.parameters_.compared_by(forced.user_index(user))
        moved = [own.index(item) != common.index(item) for item in forced.items_.tolist()]
        assert blue == [a and b for a, b in zip(moved, compared, strict=True)]


def test_terms_stand_in_the_order_in_which_people_differ(featured, forced, papers):
    axes = plots.terms(featured)
    order = [name for name in sorted_spreads(featured.spreads_) if name != "taste"]
    labels = labels_of(axes.yaxis)
    assert labels == [name_of_term(name) for name in order]
    clouds = [line for line in axes.lines if len(line.get_xdata()) == len(featured.users_)]
    sides = featured.parameters_.all_of("side") - featured.side_
    np.testing.assert_allclose(clouds[order.index("side")].get_xdata(), sides)
    assert len(plots.terms(forced).get_yticks()) == 2
    with pytest.raises(InvalidSetting, match="model of the paper"):
        plots.terms(papers)


def test_the_heat_map_tells_the_sharpness(featured):
    axes = plots.deviations(featured, order=False)
    best = np.argsort(-featured.consensus_, kind="stable")
    furthest = sorted(
        (featured.scores(user) - featured.consensus_ for user in featured.users_),
        key=lambda own: -np.linalg.norm(own),
    )
    expected = np.array([own[best] for own in furthest])
    np.testing.assert_allclose(axes.images[0].get_array(), expected.T)
    assert labels_of(axes.yaxis) == featured.ranking().items.tolist()


def test_a_user_stands_beside_the_consensus_and_what_was_never_compared_is_grey(study):
    votes = study.votes
    kept = votes.subset(~((votes.user == 0) & ((votes.left == 0) | (votes.right == 0))))
    X = (votes.users[kept.user], votes.items[kept.left], votes.items[kept.right])
    model = ISplitLBI(time=0.3).fit(Comparisons.from_arrays(*X, kept.outcome))
    axes = plots.user_against_consensus(model, votes.users[0])
    assert len(axes.lines) == votes.n_items
    assert len(axes.texts) == 2 * votes.n_items
    grey = [line for line in axes.lines if line.get_color() == plots.PALE]
    assert len(grey) == 1
    assert labels_of(axes.xaxis) == ["consensus", votes.users[0]]
    with pytest.raises(ValueError, match="nobody"):
        plots.user_against_consensus(model, "nobody")


def test_the_heat_map_holds_all_deviations_alike_users_side_by_side(model):
    (ordered,) = plots.deviations(model).images
    (plain,) = plots.deviations(model, order=False).images
    assert ordered.get_array().shape == (len(model.items_), len(model.users_))
    columns = [sorted(map(tuple, image.get_array().T.tolist())) for image in (ordered, plain)]
    assert columns[0] == columns[1]
    steps = [np.abs(np.diff(image.get_array(), axis=1)).sum() for image in (ordered, plain)]
    assert steps[0] < steps[1]


def test_the_heat_map_of_many_shows_those_who_deviate_most(model):
    axes = plots.deviations(model, order=False, most=5)
    furthest = np.argsort(-model.distance_to_consensus(), kind="stable")[:5]
    assert labels_of(axes.xaxis) == model.users_[furthest].tolist()
    assert axes.get_xlabel() == "users, the furthest first: the furthest 5 of 16"


def test_distances_are_bars_coloured_by_kind_the_largest_first(model):
    axes, distance = plots.distances(model), model.distance_to_consensus()
    order = np.argsort(-distance, kind="stable")
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], distance[order])
    assert labels_of(axes.xaxis) == model.users_[order].tolist()
    few = plots.distances(model, most=3)
    assert labels_of(few.xaxis) == model.users_[order[:3]].tolist()
    assert few.get_xlabel() == "users, the furthest first: the first 3 of 16"
    some = plots.distances(model, share=0.25)
    assert len(some.patches) == 8
    assert {text.get_text() for text in some.texts} == {"first 25 % to leave", "last 25 %"}


def test_the_graph_has_a_line_for_every_pair_that_was_compared(model):
    axes = plots.comparison_graph(model)
    (lines,) = (each for each in axes.collections if isinstance(each, LineCollection))
    votes = model.votes()
    pairs = {
        frozenset(pair) for pair in zip(votes.left.tolist(), votes.right.tolist(), strict=True)
    }
    assert len(lines.get_segments()) == len(pairs)
    assert {text.get_text() for text in axes.texts} == set(model.items_)


def test_many_items_are_a_table_of_votes_in_the_order_of_the_consensus():
    votes = simulate(n_users=6, n_items=30, votes_per_user=(60, 80), random_state=2).votes
    model = ISplitLBI(time=0.2).fit(votes)
    axes = plots.comparison_graph(model)
    order = model.ranking().items.tolist()
    assert labels_of(axes.xaxis) == labels_of(axes.yaxis) == order
    drawn = axes.images[0].get_array().filled(0.0)
    expected = np.zeros((30, 30))
    places = [order.index(item) for item in votes.items.tolist()]
    for left, right in zip(votes.left, votes.right, strict=True):
        expected[places[left], places[right]] += 1
    np.testing.assert_array_equal(drawn, expected + expected.T)


def test_of_many_items_only_those_that_moved_are_named(monkeypatch, model):
    monkeypatch.setattr(plots, "MOST_BESIDE", 5)
    user = model.abnormal_users_[0]
    axes = plots.user_against_consensus(model, user)
    moved = np.abs(model.scores(user) - model.consensus_) > model.threshold_
    assert 0 < moved.sum() < len(model.items_)
    named = sorted(text.get_text() for text in axes.texts)
    assert named == sorted(2 * model.items_[moved].tolist())


def test_figures_are_in_the_words_of_the_study(model, monkeypatch):
    monkeypatch.setattr(model, "call", {"items": "models", "users": "judges"})
    heat, bars = plots.deviations(model), plots.distances(model)
    assert heat.get_xlabel().startswith("judges, ") and heat.get_ylabel().startswith("models, ")
    assert bars.get_xlabel().startswith("judges, ")
    assert plots.terms(model).get_xlabel().startswith("judges ")


def test_ids_of_strangers_are_shown_as_text(tmp_path):
    items = ["$x^2$", "<script>", "a\nb", "x" * 10_000, r"\alpha"]
    rng = np.random.default_rng(0)
    left = rng.integers(5, size=200)
    right = (left + rng.integers(1, 5, size=200)) % 5
    users = [f"${number % 4}_{{" for number in range(200)]
    X = [(u, items[a], items[b]) for u, a, b in zip(users, left, right, strict=True)]
    model = ISplitLBI(time=0.3).fit(X, np.sign(right - left))
    for number, draw in enumerate((plots.consensus_ladder, plots.comparison_graph, EVERY["user"])):
        draw(model).figure.savefig(tmp_path / f"{number}.png")
    labels = [text.get_text() for text in plots.comparison_graph(model).texts]
    assert max(map(len, labels)) < 40
    assert r"\$x^2\$" in labels
    assert r"a\nb" in labels


def test_every_kind_has_a_colour_of_its_own():
    assert len({kind.colour for kind in KINDS.values()}) == len(KINDS)


def test_a_model_without_a_path_has_none_to_draw(study):
    one_for_all = MarginMLE().fit(study.votes)
    one_for_all.test_users()
    for draw in (plots.path, plots.cross_validation):
        with pytest.raises(InvalidSetting, match="path"):
            draw(one_for_all)


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from isplitlbi.output import plots\n"
        "try:\n    plots.new_axes(None, (1, 1))\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'isplitlbi[plots]'" in done.stdout


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=30).map(np.array),
    st.floats(0.01, 1.0),
)
def test_labels_are_spread_apart_in_their_order_and_no_more_than_needed(heights, apart):
    spread = plots._spread(heights, apart)
    order = np.argsort(heights, kind="stable")
    gaps = np.diff(spread[order])
    assert np.all(gaps >= apart - 1e-9)
    assert np.mean(spread) == pytest.approx(np.mean(heights), abs=1e-9)
    if np.all(np.diff(heights[order]) >= apart):
        np.testing.assert_allclose(spread, heights, atol=1e-12)
