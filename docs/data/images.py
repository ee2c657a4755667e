"""Write images.csv, a small made-up study of pictures that were compressed in twelve ways.

Seventy workers of a crowd compare two pictures at a time. Most look at them, some better than
others. Five click at random, two read the question the wrong way round, two always take the
picture on the left, and a few look carefully but want something else in a picture.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

# From the best picture to the worst one, in truth.
PICTURES = [
    *("avif-high", "heic-high", "webp-high", "jpeg-high"),
    *("avif-medium", "heic-medium", "webp-medium", "jpeg-medium"),
    *("avif-low", "heic-low", "webp-low", "jpeg-low"),
]
N_WORKERS = 70
WINNERS = {1: "left", 0: "tie", -1: "right"}


def main() -> None:
    """Draw the votes and write the rows in a random order; print who is of which kind."""
    votes, truth = simulate(
        n_users=N_WORKERS,
        n_items=len(PICTURES),
        votes_per_user=(30, 60),
        score_sd=1.5,
        threshold=0.6,
        abnormal_share=0.04,
        deviation_sd=2.0,
        malicious={"reversed": 2 / 70, "random": 5 / 70, "always-left": 2 / 70},
        sharpness=0.2,
        side=(0.0, 0.2),
        taste_sd=0.3,
        threshold_sd=0.3,
        random_state=21,
    )
    workers = [f"w{number:02d}" for number in range(1, N_WORKERS + 1)]
    name = dict(zip(np.argsort(-truth.scores).tolist(), PICTURES, strict=True))
    order = np.random.default_rng(21).permutation(len(votes))
    frame = pl.DataFrame(
        {
            "worker": [workers[user] for user in votes.user[order]],
            "left": [name[item] for item in votes.left[order].tolist()],
            "right": [name[item] for item in votes.right[order].tolist()],
            "winner": [WINNERS[outcome] for outcome in votes.outcome[order].tolist()],
        }
    )
    frame.write_csv(Path(__file__).with_name("images.csv"))
    for worker, kind in zip(workers, truth.kind, strict=True):
        if kind != "consensus":
            print(f"{worker}: {kind}")


if __name__ == "__main__":
    main()
