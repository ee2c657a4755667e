"""Simulated votes of known truth: the paper's generator (Sec. 3.1) and harder variants.

Everybody shares the consensus scores and threshold except the abnormal users. These are of two
sorts: honest users with a different taste, who vote by scores of their own (the paper's), and
malicious ones, who reverse the consensus, answer at random, or always give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidSetting
from isplitlbi.typing import Floats, Indices, Mask, Places

__all__ = [
    "MALICIOUS_KINDS",
    "Study",
    "Truth",
    "few_votes_study",
    "malicious_study",
    "paper_study",
    "simulate",
    "small_deviations_study",
]

RandomState = int | np.random.Generator | None

MALICIOUS_KINDS = ("reversed", "random", "always-left", "always-tie")


@dataclass(frozen=True, eq=False)
class Truth:
    """What the votes were drawn from; rows and columns as in ``votes.users``, ``votes.items``.

    Parameters
    ----------
    scores : array of shape (n_items,)
        Consensus scores. Only their differences matter.
    threshold : float
        Consensus tie threshold.
    deviations : array of shape (n_users, n_items)
        What each user adds to the consensus scores: zero for consensus users. The malicious are
        put in the same terms where these can say it: a reversed user's own scores are minus the
        consensus, those of a random one are all zero. The rows of users who always give one
        answer are nan, since no scores describe them.
    threshold_deviations : array of shape (n_users,)
        What each user adds to the consensus threshold; nan as above.
    abnormal : array of bool, shape (n_users,)
        Whether the user is anything but a consensus user.
    kind : tuple of str
        Per user: consensus, different taste, reversed, random, always-left or always-tie.
    """

    scores: Floats
    threshold: float
    deviations: Floats
    threshold_deviations: Floats
    abnormal: Mask
    kind: tuple[str, ...]

    def user_scores(self) -> Floats:
        """Return the scores each user votes by, shape (n_users, n_items)."""
        return self.scores + self.deviations

    def user_thresholds(self) -> Floats:
        """Return the tie threshold of each user, shape (n_users,)."""
        return self.threshold + self.threshold_deviations

    def of_items(self, items: Indices) -> Truth:
        """Return the truth about some of the items."""
        return replace(self, scores=self.scores[items], deviations=self.deviations[:, items])


class Study(NamedTuple):
    """Simulated votes, and the truth they were drawn from."""

    votes: Comparisons
    truth: Truth


_ONE_ANSWER = {"always-left": 1, "always-tie": 0}


class _Noise(NamedTuple):
    draw: Callable[[np.random.Generator, int], Floats]
    # The threshold that makes the three outcomes of two equal items equally probable: F^-1(2/3).
    indifferent_threshold: float


_NOISES = {
    "logistic": _Noise(lambda rng, size: rng.logistic(size=size), math.log(2)),
    "normal": _Noise(lambda rng, size: rng.normal(size=size), NormalDist().inv_cdf(2 / 3)),
    "uniform": _Noise(lambda rng, size: rng.uniform(-1, 1, size=size), 1 / 3),
}


@dataclass(frozen=True)
class _Design:
    """The settings of `simulate`."""

    n_users: int
    n_items: int
    votes_per_user: tuple[int, int]
    score_sd: float
    threshold: float
    abnormal_share: float
    deviation_sd: float
    threshold_spread: float
    malicious: Mapping[str, float]
    noise: str

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        self._check_sizes()
        self._check_spreads()
        self._check_shares()
        if self.noise not in _NOISES:
            raise InvalidSetting(f"noise must be one of {', '.join(_NOISES)}, not {self.noise!r}.")

    def _check_sizes(self) -> None:
        if self.n_users < 1:
            raise InvalidSetting(f"n_users must be at least 1, not {self.n_users}.")
        if self.n_items < 2:
            raise InvalidSetting(
                f"n_items must be at least 2, since a vote compares two, not {self.n_items}."
            )
        low, high = self.votes_per_user
        if not 1 <= low <= high:
            raise InvalidSetting(
                "votes_per_user must be two numbers, least and most, with 1 <= least <= most, "
                f"not {self.votes_per_user}."
            )

    def _check_spreads(self) -> None:
        for name in ("score_sd", "threshold", "deviation_sd"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InvalidSetting(f"{name} must be positive and finite, not {value}.")
        if not 0 <= self.threshold_spread < 1:
            raise InvalidSetting(
                "threshold_spread must be at least 0 and below 1, so that every threshold stays "
                f"positive, not {self.threshold_spread}."
            )

    def _check_shares(self) -> None:
        unknown = [kind for kind in self.malicious if kind not in MALICIOUS_KINDS]
        if unknown:
            raise InvalidSetting(
                f"malicious kind {unknown[0]!r} is not one of {', '.join(MALICIOUS_KINDS)}."
            )
        for name, share in {"abnormal_share": self.abnormal_share, **self.malicious}.items():
            if not 0 <= share <= 1:
                raise InvalidSetting(f"The share {name!r} must be between 0 and 1, not {share}.")
        total = self.abnormal_share + sum(self.malicious.values())
        if total > 1 + 1e-9:  # ten times 0.1 may exceed 1 by rounding
            raise InvalidSetting(
                "abnormal_share and the shares of the malicious must sum to at most 1, "
                f"not {total:g}; lower one of them."
            )


def simulate(
    *,
    n_users: int = 50,
    n_items: int = 20,
    votes_per_user: tuple[int, int] = (200, 400),
    score_sd: float = 5.0,
    threshold: float = 1.5,
    abnormal_share: float = 0.2,
    deviation_sd: float = 5.0,
    threshold_spread: float = 0.5,
    malicious: Mapping[str, float] | None = None,
    noise: Literal["logistic", "normal", "uniform"] = "logistic",
    random_state: RandomState,
) -> Study:
    """Draw users, items and votes; the defaults are the paper's simulated study (Sec. 3.1).

    A vote on a random pair of distinct items is "left" when margin + noise > threshold, "right"
    when it is <= -threshold, else a tie; margin and threshold are the user's own. Ids are
    ``user-01``, ``item-01`` and so on, zero-padded.

    Parameters
    ----------
    n_users, n_items : int
        How many. Items that happen to get no vote are left out of votes and truth alike.
    votes_per_user : (int, int)
        Each user's number of votes is uniform between these two, both included.
    score_sd, threshold : float
        Standard deviation of the consensus scores, normal around zero; consensus tie threshold.
    abnormal_share : float
        Probability of each user to have a different taste, as in the paper: their number is random.
    deviation_sd, threshold_spread : float
        Of such users: standard deviation of the score deviations; by which share of it at most the
        threshold differs from the consensus, uniformly.
    malicious : mapping of str to float, optional
        Share of the users (rounded to whole users, who are picked at random) of each malicious
        kind, in addition to `abnormal_share`. Kinds: "reversed" (votes by the consensus upside
        down), "random" (each outcome with probability 1/3, whatever the items), "always-left",
        "always-tie".
    noise : {"logistic", "normal", "uniform"}
        Standard logistic (Bradley-Terry) or normal (Thurstone-Mosteller), or uniform on [-1, 1].
    random_state : int, numpy.random.Generator or None
        The same number gives the same study; None gives a new one each time.

    Examples
    --------
    >>> votes, truth = simulate(n_users=4, malicious={"reversed": 0.25}, random_state=0)
    >>> votes.n_users, votes.n_items, truth.kind.count("reversed")
    (4, 20, 1)
    """
    design = _Design(
        n_users, n_items, votes_per_user, score_sd, threshold, abnormal_share, deviation_sd,
        threshold_spread, {} if malicious is None else malicious, noise,
    )  # fmt: skip
    rng = np.random.default_rng(random_state)
    truth = _draw_truth(design, rng)
    user, left, right = _draw_pairs(design, rng)
    outcome = _draw_outcomes(truth, user, left, right, _NOISES[noise].draw(rng, len(user)))
    users, items = _ids("user", n_users), _ids("item", n_items)
    votes = Comparisons.from_arrays(users[user], items[left], items[right], outcome)
    return Study(votes, truth.of_items(np.union1d(left, right)))


def paper_study(random_state: RandomState) -> Study:
    """Draw the paper's simulated study: 50 users, 20 items, 200 to 400 votes per user.

    Examples
    --------
    >>> study = paper_study(0)
    >>> study.votes.n_users, study.votes.n_items
    (50, 20)
    """
    return simulate(random_state=random_state)


def few_votes_study(random_state: RandomState) -> Study:
    """Draw 200 users with only 5 to 40 votes each, as in most real data; else as the paper's.

    Examples
    --------
    >>> votes, _ = few_votes_study(0)
    >>> votes.n_users
    200
    """
    return simulate(n_users=200, votes_per_user=(5, 40), random_state=random_state)


def small_deviations_study(random_state: RandomState) -> Study:
    """Draw the paper's study with deviations of standard deviation 1 instead of 5.

    Examples
    --------
    >>> _, truth = small_deviations_study(0)
    >>> bool(truth.deviations[truth.abnormal].std() < 1.2)
    True
    """
    return simulate(deviation_sd=1.0, random_state=random_state)


def malicious_study(kind: str, random_state: RandomState) -> Study:
    """Draw 100 users with 60 votes each, ten of them of one malicious kind, the others normal.

    Parameters
    ----------
    kind : {"reversed", "random", "always-left", "always-tie"}
        How the malicious users vote, see `simulate`.
    random_state
        As in `simulate`.

    Examples
    --------
    >>> votes, truth = malicious_study("random", 0)
    >>> votes.n_votes, int(truth.abnormal.sum())
    (6000, 10)
    """
    return simulate(
        n_users=100,
        votes_per_user=(60, 60),
        abnormal_share=0.0,
        malicious={kind: 0.1},
        random_state=random_state,
    )


def _draw_truth(design: _Design, rng: np.random.Generator) -> Truth:
    """Draw the consensus, and who deviates from it by what."""
    shape = (design.n_users, design.n_items)
    scores = rng.normal(0, design.score_sd, design.n_items)
    kind = _draw_kinds(rng, design.n_users, design.abnormal_share, design.malicious)

    # Drawn for everybody, so that who is abnormal does not shift the numbers of the others.
    taste = rng.normal(0, design.deviation_sd, shape)
    spread = design.threshold_spread
    taste_threshold = design.threshold * rng.uniform(-spread, spread, design.n_users)

    deviations = np.zeros(shape)
    threshold_deviations = np.zeros(design.n_users)
    different, random = kind == "different taste", kind == "random"
    deviations[different] = taste[different]
    threshold_deviations[different] = taste_threshold[different]
    deviations[kind == "reversed"] = -2 * scores
    deviations[random] = -scores
    indifferent = _NOISES[design.noise].indifferent_threshold
    threshold_deviations[random] = indifferent - design.threshold
    one_answer = np.isin(kind, list(_ONE_ANSWER))
    deviations[one_answer] = np.nan
    threshold_deviations[one_answer] = np.nan
    return Truth(
        scores=scores,
        threshold=float(design.threshold),
        deviations=deviations,
        threshold_deviations=threshold_deviations,
        abnormal=kind != "consensus",
        kind=tuple(kind.tolist()),
    )


def _draw_pairs(design: _Design, rng: np.random.Generator) -> tuple[Places, Places, Places]:
    """Draw who compares what: users, left and right items."""
    low, high = design.votes_per_user
    n_votes = rng.integers(low, high, design.n_users, endpoint=True)
    user = np.repeat(np.arange(design.n_users), n_votes)
    left = rng.integers(design.n_items, size=user.size)
    right = (left + rng.integers(1, design.n_items, size=user.size)) % design.n_items
    return user, left, right


def _draw_outcomes(
    truth: Truth, user: Places, left: Places, right: Places, noise: Floats
) -> NDArray[np.int8]:
    """Let users answer."""
    scores, deviations = truth.scores, truth.deviations
    margin = scores[left] - scores[right] + deviations[user, left] - deviations[user, right]
    threshold = truth.user_thresholds()[user]
    perceived = margin + noise
    outcome = np.zeros(user.size, dtype=np.int8)
    outcome[perceived > threshold] = 1
    outcome[perceived <= -threshold] = -1
    for kind, answer in _ONE_ANSWER.items():
        outcome[(np.array(truth.kind) == kind)[user]] = answer
    return outcome


def _draw_kinds(
    rng: np.random.Generator, n_users: int, abnormal_share: float, malicious: Mapping[str, float]
) -> NDArray[np.str_]:
    """Draw the kind of each user."""
    shares = np.array([malicious.get(kind, 0.0) for kind in MALICIOUS_KINDS])
    # A different taste can only fall on users who are not malicious, hence the division.
    left_over = 1 - shares.sum()
    probability = abnormal_share / left_over if left_over > 0 else 0.0
    kinds = np.where(rng.random(n_users) < probability, "different taste", "consensus")
    # Rounding the running total, not each share, never asks for more users than there are.
    ends = np.rint(np.cumsum(shares) * n_users).astype(int)
    groups = np.split(rng.permutation(n_users), ends)
    # One group more than there are kinds: the users left over, who keep what they have.
    for kind, members in zip(MALICIOUS_KINDS, groups, strict=False):
        kinds[members] = kind
    return kinds


def _ids(prefix: str, count: int) -> NDArray[np.str_]:
    """Return ids numbered from 1, with enough zeros that they sort as the numbers do."""
    digits = max(2, len(str(count)))
    return np.array([f"{prefix}-{number:0{digits}d}" for number in range(1, count + 1)])
