"""From a pandas frame of votes with ties to a consensus: how fast, and how good, beside the peers?

All see the same frame with text ids in the same run; time runs from the frame to the scores, the
median of several runs, each method once beforehand so that neither compiling nor importing counts.

    isplitlbi           fit_consensus(Comparisons.from_frame(frame), Logistic()), every check made
    evalica             newman, columns handed over as lists, which it takes faster than as columns
    choix               ilsr_pairwise on (winner, loser); choix knows no ties, which are left out

Stated separately is what their solvers take when we prepare their input; the log-loss, but not the
time, has a target there too:

    evalica, indices    newman given integer indices and winners, ready made
    choix, own matrix   ilsr_pairwise_dense on a matrix of wins that a few lines of pandas and NumPy
                        here count from the frame; a tie is half a win for either side

Then each is judged on votes it has not seen, by the log-loss over left, tie and right. Newman's tie
parameter v gives P(left) : P(tie) : P(right) = a : 2 v sqrt(a b) : b. Scores of choix get the one
threshold that suits the training votes best, outside the time. Votes are drawn from the model of
the paper (logistic noise and a threshold), which is ours; those drawn from Newman's model, in the
last rows, have no target.

    python benchmarks/peers.py                1e4, 1e5 and 1e6 votes
    python benchmarks/peers.py --most 1e4     a trial run
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from isplitlbi import Comparisons
from isplitlbi.model.links import Logistic
from isplitlbi.solvers import fit_consensus

try:
    import choix
    import evalica
    import pandas as pd
except ImportError as error:
    sys.exit(f"{error.name} is not installed. Install the peers with: pip install isplitlbi[bench]")

Floats = NDArray[np.float64]

SIZES = (10_000, 100_000, 1_000_000)
TARGET_FROM = 100_000  # faster from this many votes on
FROM_FRAME = ("evalica", "choix")
N_ITEMS, VOTES_PER_USER, THRESHOLD = 100, 100, 0.5
LINK = Logistic()
WORDS = {1: "left", 0: "tie", -1: "right"}
WINNER = {"left": evalica.Winner.X, "tie": evalica.Winner.Draw, "right": evalica.Winner.Y}


class Votes(NamedTuple):
    """Simulated votes: integer items, and the same as a frame of text."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    outcome: NDArray[np.int64]
    frame: pd.DataFrame


class Fitted(NamedTuple):
    """Log-odds of the items in their order, and what the peer says about ties."""

    scores: Floats
    tie: float | None = None


# --- votes ---------------------------------------------------------------------------------


def threshold_probabilities(margin: Floats, threshold: float) -> Floats:
    return np.exp(LINK.log_probabilities(margin, threshold))


def newman_probabilities(margin: Floats, v: float) -> Floats:
    ratio = np.exp(0.5 * margin)
    shares = np.stack([ratio, np.full_like(ratio, 2.0 * v), 1.0 / ratio], axis=-1)
    return shares / shares.sum(axis=-1, keepdims=True)


def draw(n_votes: int, scores: Floats, model: Callable[..., Floats], seed: int) -> Votes:
    rng = np.random.default_rng(seed)
    user = rng.integers(max(n_votes // VOTES_PER_USER, 1), size=n_votes)
    left = rng.integers(N_ITEMS, size=n_votes)
    right = (left + rng.integers(1, N_ITEMS, size=n_votes)) % N_ITEMS
    chances = model(scores[left] - scores[right], THRESHOLD)
    drawn = rng.random(n_votes)
    outcome = 1 - (drawn > chances[:, 0]) - (drawn > chances[:, 0] + chances[:, 1]).astype(np.int64)
    names = np.array([f"system-{item:03d}" for item in range(N_ITEMS)])
    words = np.array([WORDS[0], WORDS[1], WORDS[-1]])
    frame = pd.DataFrame(
        {
            "user": pd.Series(user).map("worker-{:06d}".format),
            "left": names[left],
            "right": names[right],
            "winner": words[outcome],
        }
    )
    return Votes(left, right, outcome, frame)


# --- the methods, from a frame to scores ---------------------------------------------------


def of_isplitlbi(frame: pd.DataFrame) -> Fitted:
    consensus = fit_consensus(Comparisons.from_frame(frame), LINK)
    return Fitted(consensus.scores, consensus.threshold)


def of_evalica(frame: pd.DataFrame) -> Fitted:
    winners = frame["winner"].map(WINNER).tolist()
    result = evalica.newman(frame["left"].tolist(), frame["right"].tolist(), winners)
    return Fitted(np.log(result.scores.sort_index().to_numpy()), result.v)


def of_choix_pairs(frame: pd.DataFrame) -> Fitted:
    codes, n_items = coded(frame)
    left, right = codes.reshape(2, -1)
    won, lost = (frame["winner"] == word for word in ("left", "right"))
    pairs = [*zip(left[won], right[won], strict=True), *zip(right[lost], left[lost], strict=True)]
    return Fitted(choix.ilsr_pairwise(n_items, pairs))


def of_choix_matrix(frame: pd.DataFrame) -> Fitted:
    codes, n_items = coded(frame)
    left, right = codes.reshape(2, -1)
    share = np.full(len(frame), 0.5)
    share[frame["winner"] == "left"] = 1.0
    share[frame["winner"] == "right"] = 0.0
    wins = np.bincount(left * n_items + right, share, n_items**2)
    wins += np.bincount(right * n_items + left, 1.0 - share, n_items**2)
    return Fitted(choix.ilsr_pairwise_dense(wins.reshape(n_items, n_items)))


def coded(frame: pd.DataFrame) -> tuple[NDArray[np.int64], int]:
    both = pd.concat([frame["left"], frame["right"]], ignore_index=True)
    codes, items = pd.factorize(both, sort=True)
    return codes, len(items)


def of_evalica_indices(votes: Votes) -> Callable[[], Fitted]:
    index, winners = pd.RangeIndex(N_ITEMS), votes.frame["winner"].map(WINNER).tolist()

    def fit() -> Fitted:
        result = evalica.newman(votes.left, votes.right, winners, index=index)
        return Fitted(np.log(result.scores.sort_index().to_numpy()), result.v)

    return fit


# --- measuring -----------------------------------------------------------------------------


def timed(fit: Callable[[], Fitted], n_runs: int) -> tuple[float, Fitted]:
    """Return the median time; a method that takes seconds is not run as often."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < n_runs and sum(seconds) < 20.0):
        begun = perf_counter()
        fitted = fit()
        seconds.append(perf_counter() - begun)
    return median(seconds), fitted


def losses(chances: Floats, outcome: NDArray[np.int64]) -> Floats:
    return -np.log(chances[np.arange(len(outcome)), 1 - outcome])


def held_out_loss(name: str, fitted: Fitted, votes: Votes, held_out: Votes) -> float:
    def margin(of: Votes) -> Floats:
        return fitted.scores[of.left] - fitted.scores[of.right]

    if name.startswith("evalica"):
        chances = newman_probabilities(margin(held_out), fitted.tie)
        return float(losses(chances, held_out.outcome).mean())
    threshold = fitted.tie
    if threshold is None:
        known = margin(votes)[:100_000], votes.outcome[:100_000]  # plenty for one number
        threshold = minimize_scalar(
            lambda t: losses(threshold_probabilities(known[0], t), known[1]).mean(),
            bounds=(1e-3, 5.0),
            method="bounded",
        ).x
    return float(
        losses(threshold_probabilities(margin(held_out), threshold), held_out.outcome).mean()
    )


class Row(NamedTuple):
    n_votes: int
    name: str
    seconds: float
    loss: float


def measure(n_votes: int, model: Callable[..., Floats], n_runs: int) -> list[Row]:
    scores = np.random.default_rng(n_votes).normal(size=N_ITEMS)
    votes, held_out = draw(n_votes, scores, model, 1), draw(200_000, scores, model, 2)
    methods: dict[str, Callable[[], Fitted]] = {
        "isplitlbi": lambda: of_isplitlbi(votes.frame),
        "evalica": lambda: of_evalica(votes.frame),
        "choix": lambda: of_choix_pairs(votes.frame),
        "evalica, indices": of_evalica_indices(votes),
        "choix, own matrix": lambda: of_choix_matrix(votes.frame),
    }
    rows = []
    for name, fit in methods.items():
        seconds, fitted = timed(fit, n_runs)
        rows.append(Row(n_votes, name, seconds, held_out_loss(name, fitted, votes, held_out)))
        ours = rows[0]
        print(
            f"{n_votes:>9,}  {name:<17} {seconds:>9.4f} {seconds / n_votes * 1e6:>9.3f} "
            f"{seconds / ours.seconds:>7.1f} {rows[-1].loss:>10.5f} "
            f"{rows[-1].loss - ours.loss:>+9.5f}",
            flush=True,
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e6, help="largest number of votes")
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median is taken")
    asked = parser.parse_args()
    if asked.most < SIZES[0] or asked.runs < 1:
        parser.error(f"--most must be at least {SIZES[0]}, --runs at least 1.")

    small = draw(1000, np.zeros(N_ITEMS), threshold_probabilities, 0).frame
    for warm_up in (of_isplitlbi, of_evalica, of_choix_matrix):
        warm_up(small)
    print(
        f"{N_ITEMS} items, {VOTES_PER_USER} votes per user, text ids; median of {asked.runs} runs "
        "(fewer where one takes seconds), after a run that compiles and is not counted"
    )
    print(
        f"{'votes':>9}  {'from a frame':<17} {'seconds':>9} {'us/vote':>9} {'x ours':>7} "
        f"{'log-loss':>10} {'- ours':>9}"
    )
    rows = []
    for n_votes in SIZES:
        if n_votes <= asked.most:
            rows += measure(n_votes, threshold_probabilities, asked.runs)
    print("votes drawn from Newman's model, for the log-loss of who does not share it:")
    measure(min(int(asked.most), TARGET_FROM), newman_probabilities, 1)

    missed, figures = [], []
    for n_votes in sorted({row.n_votes for row in rows}):
        ours, *peers = (row for row in rows if row.n_votes == n_votes)
        from_frame = [row for row in peers if row.name in FROM_FRAME]
        best = min(from_frame, key=lambda row: row.seconds)
        margin = min(row.loss for row in peers) - ours.loss
        figures.append(
            f"{n_votes:.0e} votes {ours.seconds:.3f} s, {best.seconds / ours.seconds:.1f} times "
            f"faster than {best.name}, log-loss {margin:.5f} below the best peer"
        )
        if n_votes >= TARGET_FROM:
            missed += [f"{row.name} is faster at {n_votes:,}" for row in from_frame
                       if row.seconds <= ours.seconds]  # fmt: skip
            missed += [f"{row.name} predicts better at {n_votes:,}" for row in peers
                       if row.loss < ours.loss]  # fmt: skip
    if missed:
        print(f"Target missed: {'; '.join(missed)}.")
    print(f"peers: {'; '.join(figures)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
