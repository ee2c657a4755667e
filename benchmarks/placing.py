"""Life after the fit: how well people are placed who came later, and what an update costs.

    python benchmarks/placing.py --only study     every user placed beside a path without them
    python benchmarks/placing.py --only cold      whole users held out, few votes of each given
    python benchmarks/placing.py --only speed     many new people, from a file to a file
    python benchmarks/placing.py --only update    one per cent new votes beside a million

study: a user's own votes are placed beside the path of all others, fitted by the settings of the
model of everybody, without a single number of that user. The order of leaving and the log-loss of
held-out votes (fixed splits) are compared with those of the model of everybody. Besides, everybody
is placed beside the path that they had a part in.
cold: a fifth of the users is held out, five times; nothing of them is seen by the fit. Of everybody
with at least 25 votes, in an order drawn by a seed, the first 0 to 20 are given and those after the
twentieth are predicted.
speed: 10 votes each, by the command `isplitlbi place`, in a process of its own, of which the peak
of memory is told (on Linux).
update: the votes of benchmarks/scale.py (with all terms); a fit with its cross-validation, and an
update of the model of 99 % of the votes, with and without tests of the users, in the same run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
import scipy
from scale import draw

from data import load, load_fixed_split
from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.estimators.updated import prepared
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.storage import save_model

STUDIES = ("simulation", "age", "llmfao")
GIVEN, LAST = (0, 1, 2, 5, 10, 20), 20
LEAST_VOTES, N_PARTS, SEED = 25, 5, 7
LEAST_SPEARMAN, MOST_LOSS, MOST_OFF, MOST_ABOVE = 0.99, 0.003, 0.01, 0.005
# The last two are larger than what is read at a time, so that memory must not grow between them.
N_PEOPLE, VOTES_EACH = (1_000, 30_000, 100_000), 10
N_UPDATED, LEAST_RATIO, MOST_APART = 1_000_000, 5.0, 1e-6


def log_losses(model, votes: Comparisons) -> np.ndarray:
    """Return minus the log-probability of every vote."""
    chances = model.predict_log_proba(votes)
    return -chances[np.arange(len(votes)), votes.outcome + 1]


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """Return how alike two orders of leaving are; who never leaves is last."""
    return float(scipy.stats.spearmanr(np.minimum(one, 1e9), np.minimum(other, 1e9))[0])


def fitted_again(model: ISplitLBI, votes: Comparisons) -> ISplitLBI:
    """Fit other votes by what was chosen for a model, and follow the whole path."""
    again = prepared(model, votes, reselect=False, retest=True).model
    again._stops_at_time = again.with_tests = False
    return again.fit(votes)


# --- every user of a study ---------------------------------------------------------------------


def place_everybody() -> bool:
    print("study         entry order  log-loss placed    with all  difference      P off  largest")
    all_met = True
    for name in STUDIES:
        split = load_fixed_split(name)
        if split is None:
            continue
        training, test = (part.alone(np.ones(len(part), dtype=bool)) for part in split)
        model = ISplitLBI(with_tests=False).fit(training)
        entry, placed_loss = np.empty(training.n_users), []
        for user, who in enumerate(training.users):
            others = fitted_again(model, training.without(users=[who]))
            own = training.alone(training.user == user)
            people = others.place(own, with_tests=False)
            (entry[user],) = people.entry_times_
            if who in test.users:
                theirs = test.alone(test.users[test.user] == who)
                placed_loss.append(log_losses(people, theirs))
        found = np.concatenate(placed_loss)
        of_all = log_losses(model, test)
        rank = spearman(entry, model.entry_times_)
        apart = float(found.mean() - of_all.mean())
        here = model.place(training, with_tests=False)._people.parameters_
        off, size = here.deviation - model.parameters_.deviation, model.parameters_.deviation
        total = float(np.linalg.norm(off) / np.linalg.norm(size))
        start = here.slots.start[:-1]
        of_users = np.sqrt(np.add.reduceat(off**2, start) / np.add.reduceat(size**2, start))
        met = rank >= LEAST_SPEARMAN and abs(apart) <= MOST_LOSS and total <= MOST_OFF
        all_met &= bool(met)
        print(
            f"{name:<14}{rank:>10.4f}{found.mean():>17.4f}{of_all.mean():>12.4f}{apart:>12.4f}"
            f"{total:>11.2%}{of_users.max():>9.2%}   {'met' if met else 'NOT MET'}",
            flush=True,
        )
    return all_met


# --- cold start --------------------------------------------------------------------------------


def cold_start(figure: Path | None) -> bool:
    print("log-loss of the votes after the twentieth, by how many votes were given (s.e. of the")
    print("difference to none, over users)")
    print(f"{'study':<14}{'users':>6}" + "".join(f"{given:>16}" for given in GIVEN))
    all_met, results = True, {}
    for name in STUDIES:
        votes = load(name)
        if votes is None:
            continue
        rng = np.random.default_rng(SEED)
        part = rng.permutation(votes.n_users) % N_PARTS
        order = rng.permutation(len(votes))
        order = order[np.argsort(votes.user[order], kind="stable")]
        start = np.searchsorted(votes.user[order], np.arange(votes.n_users + 1))
        rows = []
        for number in range(N_PARTS):
            others = votes.alone(part[votes.user] != number)
            model = ISplitLBI(with_tests=False).fit(others)
            known = np.isin(votes.items, others.items)
            for user in np.flatnonzero(part == number):
                mine = order[start[user] : start[user + 1]]
                mine = mine[known[votes.left[mine]] & known[votes.right[mine]]]
                if len(mine) < LEAST_VOTES:
                    continue
                rest = _some(votes, mine[LAST:])
                losses = [log_losses(model, rest).sum()]
                for given in GIVEN[1:]:
                    people = model.place(_some(votes, mine[:given]), with_tests=False)
                    losses.append(log_losses(people, rest).sum())
                rows.append([len(rest), *losses])
        table = np.array(rows)
        n, losses = table[:, :1], table[:, 1:]
        mean = losses.sum(axis=0) / n.sum()
        apart = (losses - losses[:, :1]) / n.mean()
        errors = apart.std(axis=0, ddof=1) / np.sqrt(len(table))
        steps = np.diff(losses, axis=1) / n.mean()
        rises = np.diff(mean) > 2.0 * steps.std(axis=0, ddof=1) / np.sqrt(len(table))
        met = not rises.any() and np.all(mean - mean[0] <= MOST_ABOVE)
        all_met &= bool(met)
        results[name] = {"given": GIVEN, "log_loss": mean.tolist(), "error": errors.tolist()}
        cells = "".join(f"{m:>9.4f} ({e:.3f})" for m, e in zip(mean, errors, strict=True))
        print(f"{name:<14}{len(table):>6}{cells}   {'met' if met else 'NOT MET'}", flush=True)
    if figure is not None:
        draw_cold_start(results, figure)
    return all_met


def draw_cold_start(results: dict, file: Path) -> None:
    """Draw the log-loss by the votes that were given, with the error of its difference to none."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "isplitlbi"  # the same picture, the same file
    figure, panels = plt.subplots(1, len(results), figsize=(9, 2.8), layout="constrained")
    for axes, (name, found) in zip(np.atleast_1d(panels), results.items(), strict=True):
        place, loss = np.arange(len(GIVEN)), np.array(found["log_loss"])
        axes.axhline(loss[0], color="0.6", lw=1, ls="--", label="the average over users")
        axes.errorbar(place, loss, found["error"], marker="o", ms=4, lw=1.5, capsize=2)
        axes.set(title=name, xticks=place, xticklabels=GIVEN, xlabel="votes given")
    panels[0].set_ylabel("log-loss of later votes")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(file, facecolor="white", metadata={"Date": None})


def _some(votes: Comparisons, rows: np.ndarray) -> Comparisons:
    kept = np.zeros(len(votes), dtype=bool)
    kept[rows] = True
    return votes.alone(kept)


# --- speed -------------------------------------------------------------------------------------

# Not getrusage: there a process counts the memory of its parent, who drew the votes, as its own.
PEAK = """
import sys
from pathlib import Path
from isplitlbi.cli import main
sys.argv = ["isplitlbi", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024, file=sys.stderr)
"""


def place_many() -> bool:
    study = simulate(random_state=0)
    truth = ISplitLBI().fit(study.votes)
    print("people     votes      seconds  users a second  peak memory, MB")
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(truth, folder / "model")
        for n_people in N_PEOPLE:
            people = draw_people(truth, n_people)
            people.write_csv(folder / "votes.csv")
            begun = perf_counter()
            command = ["place", folder / "model", folder / "votes.csv", "-o", folder / "out.csv"]
            done = subprocess.run(
                [sys.executable, "-c", PEAK, *map(str, command), "--force", "--quiet"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            seconds = perf_counter() - begun
            peaks.append(int(done.stderr.split()[-1]))
            assert pl.scan_csv(folder / "out.csv").select(pl.len()).collect().item() == n_people
            print(
                f"{n_people:>7,}{n_people * VOTES_EACH:>10,}{seconds:>12.1f}"
                f"{n_people / seconds:>16.0f}{peaks[-1]:>17}",
                flush=True,
            )
    met = peaks[-1] <= 1.15 * peaks[-2]
    print(f"memory does not grow with the people: {'met' if met else 'NOT MET'}")
    return met


def draw_people(model: ISplitLBI, n_people: int) -> pl.DataFrame:
    """Draw votes of people who vote like the consensus, ten each, one person after another."""
    rng = np.random.default_rng(n_people)
    n_votes, n_items = n_people * VOTES_EACH, len(model.items_)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    margin = model.consensus_[left] - model.consensus_[right] + rng.logistic(size=n_votes)
    winner = np.where(margin > model.threshold_, "left", "right")
    winner[np.abs(margin) <= model.threshold_] = "tie"
    user = [f"person-{number:07}" for number in range(n_people)]
    return pl.DataFrame(
        {
            "user": np.repeat(user, VOTES_EACH),
            "left": model.items_[left].tolist(),
            "right": model.items_[right].tolist(),
            "winner": winner,
        }
    )


# --- update ------------------------------------------------------------------------------------


def update_many(n_votes: int, *, tests_too: bool) -> bool:
    columns = draw(n_votes)
    votes = Comparisons.from_arrays(*(each.astype(np.int64) for each in columns))
    is_new = np.random.default_rng(0).random(n_votes) < 0.01
    old, new = votes.alone(~is_new), votes.alone(is_new)
    together = Comparisons.joined(old, new)
    ISplitLBI(with_tests=False).fit(simulate(random_state=0).votes)  # compiles
    print(f"{votes!r}; {len(new):,} of them new")
    model = ISplitLBI(with_tests=False).fit(old)
    seconds, whole = timed(lambda: ISplitLBI(with_tests=False).fit(together))
    tested = timed(whole.test_users)[0] if tests_too else 0.0
    again = fitted_again(model, together)
    all_met = True
    for with_tests in (False, True) if tests_too else (False,):
        if with_tests:
            model.test_users()
            model.with_tests, seconds = True, seconds + tested
        mine, updated = timed(lambda: model.update(new))
        apart = float(np.abs(again.consensus_ - updated.consensus_).max())
        order = spearman(again.entry_times_, updated.entry_times_)
        met = seconds >= LEAST_RATIO * mine and apart <= MOST_APART
        all_met &= bool(met)
        print(
            f"{'with' if with_tests else 'without'} tests: fit {seconds:.1f} s, update "
            f"{mine:.1f} s, {seconds / mine:.1f} times faster; consensus off by {apart:.1e}, "
            f"order of leaving {order:.4f}: {'met' if met else 'NOT MET'}",
            flush=True,
        )
    return all_met


def timed(work):
    """Return how many seconds something takes, and what it returns."""
    begun = perf_counter()
    found = work()
    return perf_counter() - begun, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("study", "cold", "speed", "update"))
    parser.add_argument("--votes", type=float, default=N_UPDATED, help="votes of the update")
    parser.add_argument("--without-tests", action="store_true", help="of users, in the update")
    parser.add_argument("--figure", type=Path, help="where to draw the cold start")
    asked = parser.parse_args()
    parts = {
        "study": place_everybody,
        "cold": lambda: cold_start(asked.figure),
        "speed": place_many,
        "update": lambda: update_many(int(asked.votes), tests_too=not asked.without_tests),
    }
    return int(not all([parts[asked.only]()] if asked.only else [run() for run in parts.values()]))


if __name__ == "__main__":
    sys.exit(main())
