"""Draw images/path.svg: the path of the demo's study (`isplitlbi demo`), user by user."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from isplitlbi import ISplitLBI
from isplitlbi.simulate import paper_study

ABNORMAL, OTHERS, INK = "#c8553d", "#a9b4c2", "#2f3640"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "isplitlbi",  # the same picture, the same file
    "path.simplify_threshold": 0.5,
}


def main() -> None:
    """Fit the study and draw every user's distance to the consensus along the path."""
    votes, truth = paper_study(0)
    training, _ = votes.split_within_user(0.2, rng=0)
    path = (model := ISplitLBI(random_state=0).fit(training)).path_
    distance = np.array([path.at(time).distance_to_consensus() for time in path.times])
    mpl.rcParams.update(STYLE)
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for user in np.argsort(truth.abnormal, kind="stable"):
        colour = ABNORMAL if truth.abnormal[user] else OTHERS
        axes.plot(path.times, distance[:, user], color=colour, lw=1.3, zorder=2)
        entry = path.entry_times[user]
        if entry <= path.times[-1]:
            height = np.interp(np.log(entry), np.log(path.times), distance[:, user])
            axes.plot(entry, height, "o", ms=4, mfc="white", mec=colour, mew=1.3, zorder=3)

    top = 1.08 * distance.max()
    axes.axvline(model.time_, color=INK, lw=1, ls=(0, (4, 3)), zorder=1)
    axes.annotate(
        "chosen by cross-validation", (model.time_, top), (6, -2), textcoords="offset points",
        va="top", fontsize=9,
    )  # fmt: skip
    n_abnormal = int(truth.abnormal.sum())
    labels = [
        (f"{n_abnormal} users with\nanother taste", ABNORMAL, distance[0].max()),
        (
            f"{votes.n_users - n_abnormal} users who share one taste",
            "#74808f",
            distance[0].min() + 1.4,
        ),
    ]
    for text, colour, height in labels:
        axes.annotate(
            text, (path.times[0], height), (8, 4), textcoords="offset points", color=colour,
            weight="bold",
        )  # fmt: skip
    first = float(path.entry_times.min())
    axes.annotate(
        "a circle: the user\nleaves the consensus", (first, 1.06 * distance[0].max()), (0, 58),
        textcoords="offset points", ha="center", fontsize=9,
        arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8, "shrinkB": 3},
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(path.times[0], path.times[-1])
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(FixedLocator([0.05, 0.1, 0.2, 0.5, 1, 2, 5]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: f"{time:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(path.times[0], path.times[-1])
    axes.set_xlabel("time t on the path (log scale)")
    axes.set_ylabel("distance to the consensus scores")
    axes.set_title(
        "Users leave the consensus one after another, the strongest first", loc="left", fontsize=11
    )
    target = Path(__file__).parent / "images" / "path.svg"
    target.parent.mkdir(exist_ok=True)
    figure.savefig(target, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
