"""Write arena.csv, the small made-up study of language models that the tutorial reads.

Thirty annotators compare the answers of eight models. Twenty-three share one taste, more or less;
three have a taste of their own. One turns the common taste upside down, two answer at random,
and one always takes the first answer.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

MODELS = ["aster", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron"]
N_ANNOTATORS = 30
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


if __name__ == "__main__":
    main()
