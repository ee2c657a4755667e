"""Write essays.csv, a small made-up class of essays that teachers judged two at a time.

Sixteen judges compare the essays of twenty pupils. Every judgement names the better essay, and no
judgement is a tie. Most judges agree but for chance and a little taste. One judges without reading,
and two reward something else in an essay than the other judges do.
"""

from pathlib import Path

import numpy as np
import polars as pl

from isplitlbi.evaluation.simulate import simulate

JUDGES = [
    *("ana", "bea", "cem", "dov", "eli", "fay", "gil", "hal"),
    *("ida", "jan", "kai", "lea", "moa", "nat", "oda", "pat"),
]
N_ESSAYS = 20


def main() -> None:
    """Draw the judgements and write the rows in a random order; print who is of which kind."""
    votes, truth = simulate(
        n_users=len(JUDGES),
        n_items=N_ESSAYS,
        votes_per_user=(35, 45),
        score_sd=1.2,
        threshold=None,
        abnormal_share=0.06,
        deviation_sd=3.0,
        malicious={"random": 0.06},
        taste_sd=0.3,
        random_state=7,
    )
    essays = [f"essay-{number:02d}" for number in range(1, N_ESSAYS + 1)]
    order = np.random.default_rng(7).permutation(len(votes))
    left_won = votes.outcome[order] == 1
    left, right = votes.left[order], votes.right[order]
    frame = pl.DataFrame(
        {
            "judge": [JUDGES[user] for user in votes.user[order]],
            "candidate_chosen": [essays[item] for item in np.where(left_won, left, right)],
            "candidate_not_chosen": [essays[item] for item in np.where(left_won, right, left)],
        }
    )
    frame.write_csv(Path(__file__).with_name("essays.csv"))
    for judge, kind in zip(JUDGES, truth.kind, strict=True):
        if kind != "consensus":
            print(f"{judge}: {kind}")
    print("from the best essay:", *[essays[item] for item in np.argsort(-truth.scores)])


if __name__ == "__main__":
    main()
