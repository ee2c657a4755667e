"""The figures of the paper's Section 3, from our own fits."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from isplitlbi import ISplitLBI
from isplitlbi.evaluation.protocol import SIDES, Evaluation
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


def deviations(model: ISplitLBI) -> np.ndarray:
    """Return every user's deviation, a row per user; zero for who is not abnormal."""
    everybody = np.zeros((len(model.users_), len(model.items_)))
    consensus = model.scores()
    for user in model.abnormal_users_:
        row = int(np.flatnonzero(model.users_ == user)[0])
        everybody[row] = model.scores(user) - consensus
    return everybody


def supports_and_magnitudes(study: Study, model: ISplitLBI, file: Path) -> None:
    """Draw who deviates from the consensus and by how much: the truth and the estimate."""
    truth = np.where(study.truth.abnormal[:, None], study.truth.deviations, 0.0)
    # Only differences of scores matter: both are shown around their own mean.
    truth = truth - truth.mean(axis=1, keepdims=True)
    found = deviations(model)
    found -= found.mean(axis=1, keepdims=True)
    largest = float(np.abs(truth).max())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.4), layout="constrained", sharex=True)
        for column, (name, values) in enumerate((("truth", truth), ("estimate", found))):
            axes[0, column].imshow((values != 0).T, aspect="auto", cmap="Greys", vmax=1.4)
            axes[0, column].set_title(f"Support, {name}")
            image = axes[1, column].imshow(
                np.abs(values).T, aspect="auto", cmap="magma_r", vmin=0.0, vmax=largest
            )
            axes[1, column].set_title(f"Magnitude, {name}")
            axes[1, column].set_xlabel("user")
            axes[1, column].yaxis.set_major_locator(MaxNLocator(integer=True))
            axes[0, column].yaxis.set_major_locator(MaxNLocator(integer=True))
        for row in axes:
            row[0].set_ylabel("item")
        figure.colorbar(image, ax=axes[1], label="|deviation from the consensus|")
        figure.savefig(file)
        plt.close(figure)


def distances(model: ISplitLBI, file: Path, share: float | None = None) -> None:
    """Draw every user's distance to the consensus, or that of the first and last to leave."""
    plots.distances(model, share=share).figure.savefig(file)


def classes(evaluation: Evaluation, methods: list[str], file: Path, title: str) -> None:
    """Draw precision and recall by class, medians over the repeats, for some methods."""
    metrics = [f"{what}_{side}" for what in ("precision", "recall") for side in SIDES]
    colours = [OUT, IN, "#8fb0cf", "#c9d7e6"]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
        width = 0.8 / len(methods)
        for number, method in enumerate(methods):
            heights = [evaluation.statistics(method, metric)["median"] for metric in metrics]
            place = np.arange(len(metrics)) + (number - (len(methods) - 1) / 2) * width
            axes.bar(place, heights, width, label=method, color=colours[number])
        axes.set_xticks(range(len(metrics)), [metric.replace("_", "\n") for metric in metrics])
        axes.set(title=title, ylim=(0, 1.05))
        axes.legend(frameon=False, ncols=len(methods), loc="upper center")
        figure.savefig(file)
        plt.close(figure)
