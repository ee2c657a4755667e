"""Write arena.csv and arena-next-week.csv, the small made-up study that the tutorials read.

Thirty annotators compare the answers of eight models. Twenty-three share one taste, more or less;
three have a taste of their own. One turns the common taste upside down, two answer at random,
and one always takes the first answer.

A week later, three new annotators vote: one like most others, one at random, one upside down. Five
annotators of the first week go on, and a new model is in the arena, a little better than birch.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

MODELS = ["aster", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
N_ANNOTATORS = 30
NEW_MODEL = "ivory"
# How the annotators of the second week follow the common taste, how often they vote, and on how
# many of the models: the new one is the last.
SECOND_WEEK = {
    "ann-31": (1.0, 40, 8),
    "ann-32": (0.0, 40, 8),
    "ann-33": (-1.0, 40, 8),
    **dict.fromkeys(["ann-02", "ann-05", "ann-08", "ann-14", "ann-23"], (1.0, 24, 9)),
}
WINNERS = {1: "model_a", 0: "tie", -1: "model_b"}


def main() -> None:
    """Draw the votes and write the rows in a random order; print who is of which kind."""
    votes, truth = simulate(
        n_users=N_ANNOTATORS,
        n_items=len(MODELS),
        votes_per_user=(30, 70),
        score_sd=1.0,
        threshold=0.5,
        abnormal_share=0.1,
        deviation_sd=2.0,
        taste_sd=0.3,
        malicious={"reversed": 0.034, "random": 0.067, "always-left": 0.034},
        random_state=6,
    )
    annotators = [f"ann-{number:02d}" for number in range(1, N_ANNOTATORS + 1)]
    order = np.random.default_rng(6).permutation(len(votes))
    frame = pl.DataFrame(
        {
            "judge": [annotators[user] for user in votes.user[order]],
            "model_a": [MODELS[item] for item in votes.left[order]],
            "model_b": [MODELS[item] for item in votes.right[order]],
            "winner": [WINNERS[outcome] for outcome in votes.outcome[order].tolist()],
        }
    )
    frame.write_csv(Path(__file__).with_name("arena.csv"))
    for annotator, kind in zip(annotators, truth.kind, strict=True):
        if kind != "consensus":
            print(f"{annotator}: {kind}")
    next_week(truth.scores, truth.threshold)


def next_week(scores: np.ndarray, threshold: float) -> None:
    """Draw the votes of the second week, one annotator after another, and write them."""
    rng = np.random.default_rng(7)
    everything, rows = [*MODELS, NEW_MODEL], []
    known = np.append(scores, scores[MODELS.index("birch")] + 0.3)
    for annotator, (slope, n_votes, n_models) in SECOND_WEEK.items():
        for _ in range(n_votes):
            left, right = rng.choice(n_models, size=2, replace=False)
            lead = slope * (known[left] - known[right]) + rng.logistic()
            outcome = 0 if abs(lead) <= threshold else int(np.sign(lead))
            rows.append([annotator, everything[left], everything[right], WINNERS[outcome]])
    columns = ["judge", "model_a", "model_b", "winner"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    frame.write_csv(Path(__file__).with_name("arena-next-week.csv"))


if __name__ == "__main__":
    main()
