"""How many camps there are: as many as predict votes that were held out, and no more.

Camps must do better than two other accounts of the same votes: one opinion with tastes that scatter
(the simplest), and people who differ by degrees, along as many axes as camps would need. People are
in camps only where there are gaps between them, and gaps show where people are held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.camps.ballots import Ballots
from isplitlbi.camps.mixture import Mixture, improved, shares_of
from isplitlbi.camps.predicted import loss_of_users
from isplitlbi.camps.told import Told, told_by
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.splits import fold_of_votes
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Account", "Camps", "Trial", "find_camps"]

N_FOLDS, N_FOLDS_OF_USERS = 5, 10
# By how many standard errors camps must predict better than one camp; by how many fewer camps may
# predict worse than more, and camps worse than axes; and by how many camps must tell better than
# axes of people who were held out.
CLEARLY, NEARLY = 2.0, 1.0
LEAST_GAIN = 0.05  # nats per user: what is less matters to nobody
PATIENCE = 2  # how many numbers of camps are tried after the best
LEAST_MEMBERS, LEAST_PART = 3, 0.05  # of a camp: users, and their share
MOST_AXES = 3
N_STARTS, FIRST_STEPS, LLOYD_STEPS = 8, 6, 8
LEAST_VARIANCE = 0.25  # so far apart are users at least when a search begins
USUAL_VARIANCE = 1.0  # of users around the consensus, before anything is known
MOST_NUMBERS = 20_000_000  # readings times items that are worked on


class Account(NamedTuple):
    """How people are said to differ: in how many camps, along how many axes."""

    n_camps: int
    n_axes: int = 0


@dataclass(frozen=True, eq=False)
class Trial:
    """How well an account predicts votes that were held out."""

    account: Account
    loss: Floats  # (n_users,) sums over their votes; zero of who has none

    def gain_over(self, other: Trial) -> tuple[float, float]:
        """Return the mean gain per user who has votes, and its standard error."""
        gain = other.loss - self.loss
        gain = gain[(other.loss != 0.0) | (self.loss != 0.0)]
        return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))


@dataclass(frozen=True, eq=False)
class Camps:
    """What was found."""

    mixture: Mixture
    of_users: Floats  # (n_users, n_camps + 1): how probably each is of each camp, or careless
    trials: tuple[Trial, ...]
    chosen: Trial
    single: Trial  # one opinion
    fitted: Mask  # users whose votes were used to find the camps


def find_camps(
    votes: Comparisons,
    ballots: Ballots,
    centre: Floats,
    most: int,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Camps:
    """Find out how many camps there are, and who is in which.

    Parameters
    ----------
    votes, ballots
        The same votes, in one order.
    centre
        The scores of the consensus.
    most
        How many camps there may be.
    seed
        For the folds, and for where the search begins.
    progress
        Called now and then with the share of the work done.
    """
    # Threads would wait for each other longer than these small matrices take.
    with threadpool_limits(1, user_api="blas"):
        return _Search(votes, ballots, centre, seed).found(most, progress or (lambda _: None))


class Alone(NamedTuple):
    """What votes tell, and the mixture of one camp, which all others begin with."""

    told: Told
    single: Mixture

    @classmethod
    def of(cls, ballots: Ballots, counts: Floats, centre: Floats) -> Alone:
        """Find out how far users are from the consensus, and what votes tell if that is known."""
        told = told_by(ballots, counts, centre, USUAL_VARIANCE)
        single, _ = improved(told, Mixture.starting(centre[None]))
        told = _told_beside(single, told, ballots, counts)
        return cls(told, improved(told, single)[0])

    def told_of(self, others: Ballots) -> Told:
        """Return what the votes of other users tell."""
        told = told_by(others, others.counts, self.single.scores[0], USUAL_VARIANCE)
        return _told_beside(self.single, told, others, others.counts)


def _told_beside(single: Mixture, told: Told, ballots: Ballots, counts: Floats) -> Told:
    """Return what votes tell of users who are as far from the consensus as it seems.

    Whoever seems to be careless may be of another mind, and as far from the consensus as that can
    be. Held to the consensus, the bowl of such a user would be one of scores that nobody has.
    """
    belongs, scores = shares_of(told, single).of_camps[:, 0], single.scores[0]
    size = float(np.mean(scores**2))
    near = max(single.taste + single.scale * size, LEAST_VARIANCE)
    far = max(single.taste + size, near)
    variance = belongs * near + (1.0 - belongs) * far
    return told_by(ballots, counts, scores, variance, part=belongs)


class _Search:
    """Accounts that were tried, on folds that are the same for all."""

    def __init__(self, votes: Comparisons, ballots: Ballots, centre: Floats, seed: int) -> None:
        rng = np.random.default_rng(seed)
        fold = fold_of_votes(votes, N_FOLDS, rng)
        self.ballots, self.centre, self.seed = ballots, centre, seed
        self.parts = _parts(ballots, rng)
        self.fitted = self.parts[0]
        self.used = used = ballots if len(self.parts) == 1 else ballots.only_of(self.fitted)
        self.whole = Alone.of(used, used.counts, centre)
        held_out = [used.counted(votes, fold == each) for each in range(N_FOLDS)]
        # Of very few votes, a fold may be empty on one side.
        self.held_out = [each for each in held_out if 0.0 < each.sum() < used.counts.sum()]
        user_part = rng.permutation(ballots.n_users) % N_FOLDS_OF_USERS
        self.people = [user_part == each for each in range(N_FOLDS_OF_USERS)]
        self.rests = [Alone.of(used, used.counts - each, centre) for each in self.held_out]

    def found(self, most: int, progress: Callable[[float], None]) -> Camps:
        """Try more and more camps, then the accounts without gaps that might do as well."""
        trials, worse = [self.trial(Account(1))], 0
        for n_camps in range(2, most + 1):
            progress(n_camps / (most + 2))
            trials.append(self.trial(Account(n_camps)))
            best = min(trials[:-1], key=lambda each: float(each.loss.sum()))
            gain, error = trials[-1].gain_over(best)
            worse = 0 if gain > max(NEARLY * error, LEAST_GAIN) else worse + 1
            if worse == PATIENCE:
                break
        single, chosen = trials[0], _fewest(trials)
        if chosen is not single and not _clearly(chosen, single):
            chosen = single
        if chosen is not single:
            n_axes = min(chosen.account.n_camps - 1, MOST_AXES)
            rivals = [self.trial(Account(1, 1 + each)) for each in range(n_axes)]
            trials += rivals
            if any(_worse(chosen, each) for each in rivals) or not self.has_gaps(chosen, rivals):
                chosen = single
        mixture = _fitted(self.whole, chosen.account, self.seed)
        of_users = self.placed(mixture)
        if not _is_large_enough(of_users):
            chosen, mixture = single, self.whole.single
            of_users = self.placed(mixture)
        progress(1.0)
        return Camps(mixture, of_users, tuple(trials), chosen, single, self.fitted)

    def placed(self, mixture: Mixture) -> Floats:
        """Return how probably every user is of which camp, a part of the users at a time."""
        found = shares_of(self.whole.told, mixture).of_camps
        if len(self.parts) == 1:
            return found
        every = np.empty((self.ballots.n_users, found.shape[1]))
        every[self.fitted] = found[self.fitted]
        for part in self.parts[1:]:
            some = self.ballots.only_of(part)
            every[part] = shares_of(self.whole.told_of(some), mixture).of_camps[part]
        return every

    def trial(self, account: Account) -> Trial:
        """Fit an account without each fold, and predict the fold."""
        loss = np.zeros(self.ballots.n_users)
        for number, (rest, held_out) in enumerate(zip(self.rests, self.held_out, strict=True)):
            mixture = _fitted(rest, account, self.seed + 1 + number)
            loss += loss_of_users(self.used, rest.told, mixture, held_out)
        return Trial(account, loss)

    def has_gaps(self, camps: Trial, rivals: list[Trial]) -> bool:
        """Say whether camps tell of people they have not seen better than all rivals do.

        People are held out with all their votes. Where most votes of a user are known, they say
        where on an axis that user is, and it is all the same whether there are gaps; but all votes
        of somebody new are improbable if nobody ought to be there.
        """
        trials = [Trial(each.account, np.zeros(self.used.n_users)) for each in (camps, *rivals)]
        for number, part in enumerate(self.people):
            rest, others = self.used.only_of(~part), self.used.only_of(part)
            if not (len(rest.user) and len(others.user)):
                continue
            alone = Alone.of(rest, rest.counts, self.centre)
            told = alone.told_of(others)
            for trial in trials:
                mixture = _fitted(alone, trial.account, self.seed + 1 + number)
                trial.loss[part] = -shares_of(told, mixture).log_density[part]
        return all(_better(trials[0], each) for each in trials[1:])


def _fewest(trials: list[Trial]) -> Trial:
    """Return the fewest camps that predict about as well as the best."""
    best = min(trials, key=lambda each: float(each.loss.sum()))
    for each in trials:
        if each is best:
            break
        gain, error = best.gain_over(each)
        if gain <= max(NEARLY * error, LEAST_GAIN):
            return each
    return best


def _worse(one: Trial, other: Trial) -> bool:
    gain, error = other.gain_over(one)
    return gain > NEARLY * error


def _better(one: Trial, other: Trial) -> bool:
    gain, error = one.gain_over(other)
    return gain > NEARLY * error


def _clearly(one: Trial, other: Trial) -> bool:
    gain, error = one.gain_over(other)
    return gain > max(CLEARLY * error, LEAST_GAIN)


def _is_large_enough(of_users: Floats) -> bool:
    """Say whether every camp has enough members."""
    n_camps = of_users.shape[1] - 1
    members = np.bincount(of_users.argmax(axis=1), minlength=n_camps + 1)[:n_camps]
    return bool(members.min() >= max(LEAST_MEMBERS, LEAST_PART * members.sum()))


def _parts(ballots: Ballots, rng: np.random.Generator) -> list[Mask]:
    """Deal users to parts that can be worked on together; nearly always it is one part."""
    keys = np.concatenate([ballots.user, ballots.user]) * ballots.n_items
    slots = np.unique(keys + np.concatenate([ballots.left, ballots.right]))
    size = np.bincount(slots // ballots.n_items, minlength=ballots.n_users)
    order = rng.permutation(ballots.n_users)
    part = np.empty(ballots.n_users, dtype=np.int64)
    part[order] = np.cumsum(size[order]) * ballots.n_items // MOST_NUMBERS
    return [part == each for each in np.unique(part)]


def _fitted(alone: Alone, account: Account, seed: int) -> Mixture:
    """Fit an account, from several beginnings."""
    if account == Account(1):
        return alone.single
    told, single = alone.told, alone.single
    own = _own_scores(told, single)
    if not len(own):  # as where all votes at hand are ties: nobody tells anything of the items
        return single
    if account.n_axes:
        _, size, axes = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)
        axes = (size[:, None] / np.sqrt(len(own)) * axes)[: account.n_axes]
        nothing = np.zeros((account.n_axes - len(axes), own.shape[1]))
        return improved(told, Mixture.starting(single.scores, np.vstack([axes, nothing])))[0]
    # Whoever seems to be careless may be a camp, or draw one away from people who are not.
    belongs = shares_of(told, single).of_camps[told.present, 0] > 0.5
    caring = own[belongs] if belongs.sum() >= account.n_camps else own
    rng, found = np.random.default_rng(seed), []
    for number in range(N_STARTS):
        points = own if number % 2 else caring
        start = Mixture.starting(single.scores + _centres(points, account.n_camps, rng))
        found.append(improved(told, start, FIRST_STEPS))
    return improved(told, max(found, key=lambda each: each[1])[0])[0]


def _own_scores(told: Told, single: Mixture) -> Floats:
    """Return by how much the scores of users who have voted differ from those of all."""
    found = np.zeros((told.n_users, told.along.shape[1] + 1))
    scores, taste = np.append(single.scores[0], 0.0), max(single.taste, USUAL_VARIANCE)
    for batch, axes, precision, value in told.bowls:
        gain = taste * precision / (1.0 + taste * precision)
        residual = value - np.einsum("usr,us->ur", axes, scores[batch.items])
        own = np.einsum("usr,ur->us", axes, gain * residual)
        np.add.at(found, (batch.users[:, None], batch.items), own)
    return found[told.present, :-1]


def _centres(points: Floats, n_centres: int, rng: np.random.Generator) -> Floats:
    """Return means of clusters of points, from points far from each other on."""
    first = [points[rng.integers(len(points))]]
    for _ in range(n_centres - 1):
        square = np.min([np.sum((points - each) ** 2, axis=1) for each in first], axis=0)
        total = square.sum()
        chance = square / total if total > 0.0 else None
        first.append(points[rng.choice(len(points), p=chance)])
    centres = np.array(first)
    for _ in range(LLOYD_STEPS):
        nearest = _nearest(points, centres)
        for centre in np.unique(nearest):
            centres[centre] = points[nearest == centre].mean(axis=0)
    return centres


def _nearest(points: Floats, centres: Floats) -> Places:
    square = np.sum(centres**2, axis=1) - 2.0 * points @ centres.T
    return np.asarray(np.argmin(square, axis=1))
