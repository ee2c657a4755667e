"""Draw the figures of images/: all of `isplitlbi.output.plots`, of the study of the demo.

The graph of votes is of a small example, made up like the one in the paper's Section 1.
"""

from pathlib import Path

import matplotlib as mpl

from isplitlbi import Comparisons, ISplitLBI, compare
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import paper_study
from isplitlbi.output import plots

FOLDER = Path(__file__).parent / "images"

EXAMPLE = [
    ("ann", "V1", "V3", "tie"), ("ann", "V3", "V6", "left"), ("ann", "V2", "V4", "left"),
    ("ann", "V4", "V5", "right"), ("ann", "V5", "V6", "left"), ("bob", "V1", "V3", "left"),
    ("bob", "V3", "V6", "left"), ("bob", "V6", "V5", "tie"), ("bob", "V2", "V1", "left"),
    ("bob", "V4", "V3", "tie"), ("cat", "V3", "V6", "right"), ("cat", "V1", "V2", "right"),
    ("cat", "V5", "V4", "tie"), ("cat", "V6", "V3", "left"),
]  # fmt: skip


def main() -> None:
    """Fit the study and draw it."""
    mpl.rcParams["svg.hashsalt"] = "isplitlbi"  # the same picture, the same file
    votes, _ = paper_study(0)
    training, _ = split_within_user(votes, 0.2, rng=0)
    model = ISplitLBI(random_state=0).fit(training)
    earlier = ISplitLBI(random_state=0).fit(training.without(users=training.users[30:]))
    papers = ISplitLBI(terms="paper", rule="threshold", random_state=0).fit(training)
    figures = {
        "changes": plots.changes(compare(earlier, model)),
        "path": plots.path(model),
        "paper-simulation": plots.path(papers),
        "cross-validation": plots.cross_validation(model),
        "consensus-ladder": plots.consensus_ladder(model),
        "user": plots.user_against_consensus(model, model.abnormal_users_[0]),
        "deviations": plots.deviations(model),
        "distances": plots.distances(model),
        "comparison-graph": plots.comparison_graph(model),
        "terms": plots.terms(model),
        "decomposition": plots.decomposition(model)[0, 0],
        "votes-graph": plots.votes_graph(Comparisons.from_arrays(*zip(*EXAMPLE, strict=True))),
    }
    for name, axes in figures.items():
        axes.figure.savefig(FOLDER / f"{name}.svg", facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
