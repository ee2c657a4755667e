"""The figures of the paper, from our own fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.protocol import Evaluation
from isplitlbi.evaluation.simulate import Study
from isplitlbi.output import plots

mpl.use("agg")

OUT, IN = "#c2185b", "#5b7ea3"  # who left the consensus, who stayed
STYLE = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
}


def example_graph(file: Path) -> None:
    """Draw the paper's Figure 1: who of three users prefers which of six colleges."""
    votes = [
        ("Ann", "V3", "V6", 1), ("Ann", "V1", "V3", 0), ("Ann", "V2", "V5", 1),
        ("Ben", "V1", "V2", 1), ("Ben", "V4", "V6", 0), ("Ben", "V3", "V6", -1),
        ("Eve", "V5", "V4", 1), ("Eve", "V2", "V3", 1), ("Eve", "V1", "V2", -1),
    ]  # fmt: skip
    axes = plots.votes_graph(Comparisons.from_arrays(*zip(*votes, strict=True)))
    axes.figure.savefig(file)


def decomposition(model: ISplitLBI, file: Path) -> None:
    """Draw the paper's Figure 2: what deviations are made of."""
    plots.decomposition(model).ravel()[0].figure.savefig(file)


def deviations(model: ISplitLBI, users: list[Any]) -> np.ndarray:
    """Return the deviations of some users, a row per user; nothing of the others.

    Only differences of scores matter: all are shown around their own mean.
    """
    dense = np.array([model.scores(user) for user in model.users_]) - model.scores()
    some = np.where(np.isin(model.users_, users)[:, None], dense, 0.0)
    return some - some.mean(axis=1, keepdims=True)


def true_deviations(study: Study) -> np.ndarray:
    """Return the same of the truth."""
    truth = np.where(study.truth.abnormal[:, None], study.truth.deviations, 0.0)
    return truth - truth.mean(axis=1, keepdims=True)


def magnitude(study: Study, model: ISplitLBI) -> float:
    """Return how large deviations on the support of Gamma are beside the true ones."""
    truth, found = true_deviations(study), deviations(model, model.left_consensus_)
    return float(np.sum(truth * found) / np.sum(truth**2))


def supports_and_magnitudes(study: Study, model: ISplitLBI, file: Path) -> None:
    """Draw the paper's Figure 3: who deviates from the consensus and by how much.

    The truth; P on the support of Gamma at the chosen time, as in the paper; and P of the users
    whom the tests name.
    """
    truth = true_deviations(study)
    panels = {
        "Truth": truth,
        "Gamma, chosen time": deviations(model, model.left_consensus_),
        "Tests": deviations(model, model.abnormal_users_),
    }
    largest = float(np.abs(truth).max())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            2, 3, figsize=(9.6, 5.4), layout="constrained", sharex=True, sharey=True
        )
        for column, (name, values) in enumerate(panels.items()):
            n_users = int(np.any(values != 0.0, axis=1).sum())
            axes[0, column].imshow((values != 0).T, aspect="auto", cmap="Greys", vmax=1.4)
            axes[0, column].set_title(f"{name}: {n_users} users")
            image = axes[1, column].imshow(
                np.abs(values).T, aspect="auto", cmap="magma_r", vmin=0.0, vmax=largest
            )
            axes[1, column].set_xlabel("user")
        for row, what in zip(axes, ("support", "magnitude"), strict=True):
            row[0].set_ylabel(f"{what}: item")
            row[0].yaxis.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(image, ax=axes[1], label="|deviation from the consensus|")
        figure.savefig(file)
        plt.close(figure)


def entries(model: ISplitLBI, file: Path) -> None:
    """Draw when each user leaves the consensus, and whom the tests name."""
    voted = np.flatnonzero(model.summary_.votes_per_user > 0)
    order = voted[np.argsort(model.entry_times_[voted], kind="stable")]
    times = model.entry_times_[order]
    named = np.isin(model.users_[order], model.abnormal_users_)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
        place = np.arange(1, len(order) + 1)
        for which, colour, above, label in (  # few are named: they stand above the others
            (named, OUT, 3, f"named by the tests ({named.sum()})"),
            (~named, IN, 2, f"not named ({(~named).sum()})"),
        ):
            axes.plot(
                place[which], times[which], "o", ms=4, color=colour, label=label, zorder=above
            )
        n_left = len(model.left_consensus_)
        axes.axhline(model.time_, color="black", lw=1, ls=(0, (4, 3)))
        # Points rise from left to right: where most are below the line, there is room above it on
        # the left; where most are above it, on the right.
        is_high = 2 * n_left > len(order)
        axes.text(
            1 if is_high else len(order), model.time_, f"chosen time: {n_left} have left",
            va="bottom", ha="left" if is_high else "right", size=8,
        )  # fmt: skip
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="users, in the order in which they leave",
                 ylabel="time of leaving", xlim=(0, len(order) + 1))  # fmt: skip
        axes.legend(frameon=False, loc="lower right" if is_high else "upper left")
        figure.savefig(file)
        plt.close(figure)


def distances(model: ISplitLBI, file: Path, share: float | None = None) -> None:
    """Draw the paper's Figures 4 and 5 (a, b): users' distances to the consensus.

    Of everybody, or of the first and the last to leave.
    """
    plots.distances(model, share=share).figure.savefig(file)


def classes(evaluations: dict[str, Evaluation], file: Path, program: str) -> None:
    """Draw the paper's Figure 5 (c): precision and recall by class, medians over the repeats.

    One panel for each rule; P1, P2 and P3 of the paper are those of right, tie and left.
    """
    metrics = [f"{what}_{side}" for what in ("precision", "recall")
               for side in ("right", "tie", "left")]  # fmt: skip
    colours = [OUT, IN, "#8fb0cf", "#c9d7e6"]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(evaluations), 1, figsize=(7.2, 2.6 * len(evaluations)), layout="constrained",
            sharex=True,
        )  # fmt: skip
        for axes, (rule, found) in zip(panels, evaluations.items(), strict=True):
            methods = [m for m in found.methods
                       if m in ("isplitlbi", program) or m.startswith("margin-mle")]  # fmt: skip
            width = 0.8 / len(methods)
            for number, method in enumerate(methods):
                heights = [found.statistics(method, metric)["median"] for metric in metrics]
                place = np.arange(len(metrics)) + (number - (len(methods) - 1) / 2) * width
                axes.bar(place, heights, width, label=method, color=colours[number])
            axes.set(title=f"Predicted {rule}", ylim=(0, 1.2))
            axes.legend(frameon=False, ncols=len(methods), loc="upper center", fontsize=7)
        panels[-1].set_xticks(
            range(len(metrics)), [metric.replace("_", "\n") for metric in metrics]
        )
        figure.savefig(file)
        plt.close(figure)
