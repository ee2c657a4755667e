"""Draw the figures of images/: all of `isplitlbi.output.plots`, of the study of the demo.

The graph of votes is of a small example, made up like the one in the paper's Section 1. The curves
of attacks are those of the table in attacks.md.
"""

import re
from pathlib import Path

import matplotlib as mpl

from isplitlbi import Comparisons, ISplitLBI, compare
from isplitlbi.data.splits import split_within_user
from isplitlbi.evaluation.simulate import paper_study
from isplitlbi.output import plots
from isplitlbi.output.drawing import INK, new_figure

ATTACKS = Path(__file__).parent / "attacks.md"
FOLDER = Path(__file__).parent / "images"

EXAMPLE = [
    ("ann", "V1", "V3", "tie"), ("ann", "V3", "V6", "left"), ("ann", "V2", "V4", "left"),
    ("ann", "V4", "V5", "right"), ("ann", "V5", "V6", "left"), ("bob", "V1", "V3", "left"),
    ("bob", "V3", "V6", "left"), ("bob", "V6", "V5", "tie"), ("bob", "V2", "V1", "left"),
    ("bob", "V4", "V3", "tie"), ("cat", "V3", "V6", "right"), ("cat", "V1", "V2", "right"),
    ("cat", "V5", "V4", "tie"), ("cat", "V6", "V3", "left"),
]  # fmt: skip

STRATEGIES = {"promote": "promote", "duel": "duel", "bury": "bury", "half": "promote in half"}
ACCOUNTS = {1: "1 hostile account", 5: "5 hostile accounts", 25: "25 hostile accounts"}
RANKINGS = {  # as the table calls them
    "one ranking": ("one ranking for all", {"color": "#b2182b", "marker": "o", "lw": 2.2}),
    "ours": ("ours", {"color": "#2166ac", "marker": "o", "lw": 2.2}),
    "no unreliable": ("ours, without the unreliable", {"color": INK, "ls": "--", "lw": 1.2}),
    "no abnormal": ("ours, without all who are listed", {"color": "#1b7837", "ls": ":", "lw": 2.2}),
}


def read_attacks() -> tuple[list[int], dict[tuple[str, int, str], list[float]]]:
    """Read how many votes hostile accounts gave, and the ranks of the item, from the table."""
    table = ATTACKS.read_text(encoding="utf-8").partition("\nattack  ")[2].partition("```")[0]
    header, *lines = table.splitlines()
    doses = [int(dose) for dose in re.findall(r"\d+", header)]
    rows = [re.fullmatch(r"(\w+) +(\d+)  (\w+(?: \w+)?) +([\d. ]+?) +\S+", line) for line in lines]
    return doses, {
        (found[1], int(found[2]), found[3]): [float(rank) for rank in found[4].split()]
        for found in rows
        if found
    }


def attack_curves():
    """Draw the mean rank of the attacked item by the votes of each hostile account."""
    doses, ranks = read_attacks()
    figure = new_figure((9.0, 8.4))
    panels = figure.subplots(len(STRATEGIES), len(ACCOUNTS), sharex=True, sharey=True)
    for row, (strategy, title) in zip(panels, STRATEGIES.items(), strict=True):
        row[0].set_ylabel(f"{title}\nmean rank")
        for axes, (n_accounts, said) in zip(row, ACCOUNTS.items(), strict=True):
            axes.spines[["top", "right"]].set_visible(False)
            axes.axhline(1, color="0.8", lw=1, zorder=0)
            for name, (label, style) in RANKINGS.items():
                axes.plot(ranks[strategy, n_accounts, name], ms=3.5, label=label, **style)
            if strategy == "promote":
                axes.set_title(said, size=10)
    panels[0, 0].set(xticks=range(len(doses)), xticklabels=doses, ylim=(6.2, 0.6))
    for axes in panels[-1]:
        axes.set_xlabel("votes of each hostile account")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return panels[0, 0]


def main() -> None:
    """Fit the study and draw it."""
    mpl.rcParams["svg.hashsalt"] = "isplitlbi"  # the same picture, the same file
    votes, _ = paper_study(0)
    training, _ = split_within_user(votes, 0.2, rng=0)
    model = ISplitLBI(random_state=0).fit(training)
    earlier = ISplitLBI(random_state=0).fit(training.without(users=training.users[30:]))
    papers = ISplitLBI(terms="paper", rule="threshold", random_state=0).fit(training)
    figures = {
        "attack": attack_curves(),
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
