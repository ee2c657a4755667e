"""Draw the figures of images/: all of `isplitlbi.output.plots`, of the study of the demo."""

from pathlib import Path

import matplotlib as mpl

from isplitlbi import ISplitLBI, compare
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import paper_study
from isplitlbi.output import plots

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    """Fit the study and draw it."""
    mpl.rcParams["svg.hashsalt"] = "isplitlbi"  # the same picture, the same file
    votes, _ = paper_study(0)
    training, _ = split_within_user(votes, 0.2, rng=0)
    model = ISplitLBI(random_state=0).fit(training)
    earlier = ISplitLBI(random_state=0).fit(training.without(users=training.users[30:]))
    figures = {
        "changes": plots.changes(compare(earlier, model)),
        "path": plots.path(model),
        "cross-validation": plots.cross_validation(model),
        "consensus-ladder": plots.consensus_ladder(model),
        "user": plots.user_against_consensus(model, model.abnormal_users_[0]),
        "deviations": plots.deviations(model),
        "distances": plots.distances(model),
        "comparison-graph": plots.comparison_graph(model),
        "terms": plots.terms(model),
    }
    for name, axes in figures.items():
        axes.figure.savefig(FOLDER / f"{name}.svg", facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
