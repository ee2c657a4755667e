"""Write lengths.csv, a small made-up study in which long answers win more often.

Thirty people compare the answers of eight language models. They differ in how sharply they tell
answers apart, in the side they lean to, in taste and in how readily they call a tie. Everybody
prefers the longer answer, some more than others.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

WINNERS = {1: "left", 0: "tie", -1: "right"}


def main() -> None:
    """Draw the votes and write the rows in a random order."""
    votes, _ = simulate(
        n_users=30,
        n_items=8,
        votes_per_user=(30, 50),
        score_sd=1.2,
        threshold=0.6,
        abnormal_share=0.0,
        sharpness=0.5,
        side=(0.1, 0.3),
        taste_sd=0.5,
        threshold_sd=0.5,
        features={"length": (0.8, 0.2)},
        random_state=11,
    )
    assert votes.features is not None
    rng = np.random.default_rng(11)
    order = rng.permutation(len(votes))
    difference = 100.0 * votes.features.values[order, 0]
    shorter = rng.integers(40, 400, len(votes))
    frame = pl.DataFrame(
        {
            "user": votes.users[votes.user[order]],
            "left": votes.items[votes.left[order]],
            "right": votes.items[votes.right[order]],
            "winner": [WINNERS[outcome] for outcome in votes.outcome[order].tolist()],
            "length_left": shorter + np.maximum(difference, 0.0).round().astype(int),
            "length_right": shorter + np.maximum(-difference, 0.0).round().astype(int),
        }
    )
    frame.write_csv(Path(__file__).with_name("lengths.csv"))


if __name__ == "__main__":
    main()
