"""The heat map of P as the sum of its parts; the one of all deviations is in test_plots.py."""

import numpy as np
import pytest

from isplitlbi import ISplitLBI, MarginMLE
from isplitlbi.errors import InvalidSetting
from isplitlbi.evaluation.simulate import simulate

pytest.importorskip("matplotlib", reason="figures need matplotlib (pip install .[plots])")

from matplotlib.figure import Figure

from isplitlbi.output import plots


def tables_of(axes):
    return [panel.images[0].get_array().filled(0.0) for panel in axes.flat]


@pytest.mark.parametrize("name", ["featured", "leaving", "papers", "forced"])
def test_the_panels_are_p_and_its_three_parts_on_one_scale(name, request, tmp_path):
    model = request.getfixturevalue(name)
    axes = plots.decomposition(model)
    assert axes.shape == (2, 2)
    everything, strong, personal, noise = tables_of(axes)
    np.testing.assert_array_equal(strong + personal + noise, everything)
    n_left = len(model.left_consensus_)
    assert not strong[:, n_left:].any() and not (personal + noise)[:, :n_left].any()
    limits = {image.get_clim() for panel in axes.flat for image in panel.images}
    assert len(limits) == 1
    names = [label.get_text() for label in axes[1, 0].get_yticklabels()]
    assert names[: len(model.items_)] == model.ranking().items.tolist()
    assert ("threshold" in names) == (model.threshold_ is not None)
    axes[0, 0].figure.savefig(tmp_path / "figure.png")


def test_titles_say_how_many_numbers_each_part_has_and_what_the_paper_calls_it(leaving):
    titles = [panel.get_title(loc="left") for panel in plots.decomposition(leaving).flat]
    parts = leaving.decompose()
    for title, part in zip(titles[1:], parts, strict=True):
        assert f" {part.nnz:,}" in title
    assert "the paper's abnormal part" in titles[1]
    assert f"all of {len(leaving.left_consensus_)} users who have left" in titles[1]


def test_of_many_users_some_are_shown_and_the_axis_says_so(leaving):
    axes = plots.decomposition(leaving, most=6)
    assert tables_of(axes)[0].shape[1] == 6
    n_left, n_users = len(leaving.left_consensus_), len(leaving.users_)
    told = axes[0, 0].figure.get_supxlabel()
    assert f"3 of {n_left} who have left" in told
    assert f"3 of {n_users - n_left} who have not" in told
    everybody = plots.decomposition(leaving, most=None)
    assert tables_of(everybody)[0].shape[1] == n_users


def test_it_is_drawn_on_four_axes_that_are_given(leaving):
    axes = Figure().subplots(1, 4)
    assert plots.decomposition(leaving, axes) is axes
    assert all(panel.has_data() for panel in axes)
    with pytest.raises(InvalidSetting, match="four panels, but 1 axes"):
        plots.decomposition(leaving, Figure().subplots())


def test_a_higher_noise_level_leaves_fewer_personal_cells(leaving):
    none, few, many = (
        np.count_nonzero(tables_of(plots.decomposition(leaving, noise_level=level))[2])
        for level in (np.inf, 2.0, 0.5)
    )
    assert 0 == none <= few < many


def test_nobody_may_have_left():
    votes = simulate(n_users=4, n_items=4, votes_per_user=(10, 12), random_state=3).votes
    model = ISplitLBI(times=[1e-4, 2e-4], time=1e-4, with_tests=False).fit(votes)
    assert not model.left_consensus_
    assert not tables_of(plots.decomposition(model))[1].any()


def test_a_model_without_a_path_is_refused(leaving):
    model = MarginMLE().fit(leaving.votes())
    with pytest.raises(InvalidSetting, match="a model of MarginMLE has no path"):
        plots.decomposition(model)
