"""Write votes.csv, the small made-up study that the README reads.

Twenty people compare six drinks. Fifteen share one taste, four have their own, and one, eva,
turns the common one upside down.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

PEOPLE = [
    *("ada", "ben", "cleo", "dan", "eva", "finn", "gus", "hana", "ivo", "jon"),
    *("kim", "leo", "mia", "noah", "olga", "pia", "quinn", "rosa", "sam", "tess"),
]
DRINKS = ["decaf", "cocoa", "tea", "juice", "coffee", "milk"]
NEWCOMERS = {"uma": 1.0, "vic": -1.0}  # how they follow the common taste
WINNERS = {1: "left", 0: "tie", -1: "right"}


def write_newcomers(scores: np.ndarray, threshold: float) -> None:
    """Draw the votes of two people who come later: one like most others, one upside down."""
    rng, rows = np.random.default_rng(40), []
    for person, slope in NEWCOMERS.items():
        for _ in range(30):
            left, right = rng.choice(len(DRINKS), size=2, replace=False)
            lead = slope * (scores[left] - scores[right]) + rng.logistic()
            outcome = 0 if abs(lead) <= threshold else int(np.sign(lead))
            rows.append([person, DRINKS[left], DRINKS[right], WINNERS[outcome]])
    frame = pl.DataFrame(rows, schema=["user", "left", "right", "winner"], orient="row")
    frame.write_csv(Path(__file__).with_name("newcomers.csv"))


def main() -> None:
    """Draw the votes, give everybody a name, and write the rows in a random order."""
    votes, truth = simulate(
        n_users=len(PEOPLE),
        n_items=len(DRINKS),
        votes_per_user=(50, 70),
        score_sd=2.0,
        threshold=0.8,
        abnormal_share=0.1,
        deviation_sd=3.0,
        malicious={"reversed": 0.05},
        random_state=35,
    )
    order = np.random.default_rng(39).permutation(len(votes))
    frame = pl.DataFrame(
        {
            "user": [PEOPLE[user] for user in votes.user[order]],
            "left": [DRINKS[item] for item in votes.left[order]],
            "right": [DRINKS[item] for item in votes.right[order]],
            "winner": [WINNERS[outcome] for outcome in votes.outcome[order].tolist()],
        }
    )
    frame.write_csv(Path(__file__).with_name("votes.csv"))
    write_newcomers(truth.scores, truth.threshold)
    for person, kind in zip(PEOPLE, truth.kind, strict=True):
        if kind != "consensus":
            print(f"{person}: {kind}")


if __name__ == "__main__":
    main()
