"""Simulated votes of known truth: the paper's generator (Sec. 3.1) and harder variants.

Everybody shares the consensus scores and threshold except the abnormal users. These are of two
sorts: honest users with a different taste, who vote by scores of their own (the paper's), and
malicious ones, who reverse the consensus, answer at random, or always give the same answer. Beyond
the paper, honest users may also differ in sharpness, side, threshold and in what features mean to
them, and items in how often they invite a tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.evaluation.design import MALICIOUS_KINDS, NOISES, Design, Effect, Side, Slopes
from isplitlbi.evaluation.truth import TrueFeatures, Truth
from isplitlbi.typing import Floats, Mask, Places

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


class Study(NamedTuple):
    """Simulated votes, and the truth they were drawn from."""

    votes: Comparisons
    truth: Truth


_ONE_ANSWER = {"always-left": 1, "always-tie": 0}


def simulate(
    *, n_users: int = 50, n_items: int = 20, votes_per_user: tuple[int, int] = (200, 400),
    score_sd: float = 5.0, threshold: float | None = 1.5, abnormal_share: float = 0.2,
    deviation_sd: float = 5.0, threshold_spread: float = 0.5,
    malicious: Mapping[str, float] | None = None,
    noise: Literal["logistic", "normal", "uniform"] = "logistic",
    sharpness: Slopes = 0.0, side: Side = 0.0, taste_sd: float = 0.0, threshold_sd: float = 0.0,
    tie_habit: float = 0.0, features: Mapping[str, Effect] | None = None, random_state: RandomState,
) -> Study:  # fmt: skip
    """Draw users, items and votes; the defaults are the paper's simulated study (Sec. 3.1).

    A vote on a random pair of distinct items is "left" when margin + noise > threshold, "right"
    when it is <= -threshold, else a tie; `truth` has both. Ids are ``user-01``, ``item-01`` and so
    on, zero-padded.

    Parameters
    ----------
    n_users, n_items : int
        How many. Items that happen to get no vote are left out of votes and truth alike.
    votes_per_user : (int, int)
        Each user's number of votes is uniform between these two, both included.
    score_sd, threshold : float
        Standard deviation of the consensus scores, normal around zero; consensus tie threshold.
        With None for a threshold there are no ties.
    abnormal_share : float
        Probability of each user to have a different taste, as in the paper: their number is random.
    deviation_sd, threshold_spread : float
        Of such users: standard deviation of the score deviations; by which share of it at most the
        threshold differs from the consensus, uniformly.
    malicious : mapping of str to float, optional
        Share of the users (rounded to whole users) of each malicious kind: "reversed" (votes by the
        consensus upside down), "random" (each outcome equally probable), "always-left",
        "always-tie". They have no sharpness, side, taste or threshold of their own.
    noise : {"logistic", "normal", "uniform"}
        Standard logistic (Bradley-Terry) or normal (Thurstone-Mosteller), or uniform on [-1, 1].
    sharpness : float or list of float
        Standard deviation of the users' slopes around 1, or slopes to deal to them evenly.
    side : float or (float, float)
        Standard deviation of the users' sides; or the common side, and that.
    taste_sd, threshold_sd, tie_habit : float
        Standard deviations: of everybody's own taste, of the users' log thresholds, of the items'
        tie habits.
    features : mapping of str to float or (float, float), optional
        Effect of each in logits per unit; or that, and the standard deviation of the users' own.
    random_state : int, numpy.random.Generator or None
        The same number gives the same study; None gives a new one each time.

    Examples
    --------
    >>> votes, truth = simulate(n_users=4, malicious={"reversed": 0.25}, random_state=0)
    >>> votes.n_users, votes.n_items, truth.kind.count("reversed")
    (4, 20, 1)
    """
    return _drawn(Design(
        n_users, n_items, votes_per_user, score_sd, threshold, abnormal_share, deviation_sd,
        threshold_spread, malicious or {}, noise, sharpness, side, taste_sd, threshold_sd,
        tie_habit, features or {},
    ), np.random.default_rng(random_state))  # fmt: skip


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


def _drawn(design: Design, rng: np.random.Generator) -> Study:
    # What the paper's study does not have is drawn from streams of its own, one for each term: the
    # numbers of the others stay as they are.
    streams = rng.spawn(6)
    truth = _with_terms(design, _draw_truth(design, rng), streams)
    user, left, right = _draw_pairs(design, rng)
    noise = NOISES[design.noise].draw(rng, len(user))
    values = [streams[-1].normal(size=len(user)) for _ in design.features]
    outcome = _answers(truth, (user, left, right), values, noise)
    users, items = _ids("user", design.n_users), _ids("item", design.n_items)
    columns: dict[str, Any] = {}
    if values:
        columns["features"] = dict(zip(design.features, values, strict=True))
    votes = Comparisons.from_arrays(users[user], items[left], items[right], outcome, **columns)
    return Study(votes, truth.of_items(np.union1d(left, right)))


def _draw_truth(design: Design, rng: np.random.Generator) -> Truth:
    """Draw the consensus, and who deviates from it by what."""
    shape = (design.n_users, design.n_items)
    scores = rng.normal(0, design.score_sd, design.n_items)
    kind = _draw_kinds(rng, design.n_users, design.abnormal_share, design.malicious)

    # Drawn for everybody, so that who is abnormal does not shift the numbers of the others.
    taste = rng.normal(0, design.deviation_sd, shape)
    spread = design.threshold_spread
    threshold = design.threshold or 0.0
    taste_threshold = threshold * rng.uniform(-spread, spread, design.n_users)

    deviations = np.zeros(shape)
    threshold_deviations = np.zeros(design.n_users)
    different, random = kind == "different taste", kind == "random"
    deviations[different] = taste[different]
    threshold_deviations[different] = taste_threshold[different]
    deviations[kind == "reversed"] = -2 * scores
    deviations[random] = -scores
    if not design.is_forced:
        indifferent = NOISES[design.noise].indifferent_threshold
        threshold_deviations[random] = indifferent - threshold
    one_answer = np.isin(kind, list(_ONE_ANSWER))
    deviations[one_answer] = np.nan
    threshold_deviations[one_answer] = np.nan
    return Truth(
        scores=scores,
        threshold=float(threshold),
        deviations=deviations,
        threshold_deviations=threshold_deviations,
        abnormal=kind != "consensus",
        kind=tuple(kind.tolist()),
    )


def _with_terms(design: Design, truth: Truth, streams: Sequence[np.random.Generator]) -> Truth:
    """Add the terms in which honest users and items differ beyond the paper's study."""
    n_users, n_items = design.n_users, design.n_items
    of_slopes, of_sides, of_taste, of_thresholds, of_items, of_features = streams
    kind = np.array(truth.kind)
    honest = ~np.isin(kind, MALICIOUS_KINDS)
    random, one_answer = kind == "random", np.isin(kind, list(_ONE_ANSWER))

    def own(drawn: Floats, common: float | Floats) -> Floats:
        """Return the users' own part; nobody at random knows even the common one."""
        drawn[~honest] = 0.0
        drawn[random] = -np.asarray(common)
        drawn[one_answer] = np.nan
        return drawn

    common_side, side_sd = design.sides
    effects = np.array([effect for effect, _ in design.effects.values()])
    effect_sds = np.array([sd for _, sd in design.effects.values()])
    taste = of_taste.normal(0, design.taste_sd, (n_users, n_items)) * honest[:, None]
    factor = np.exp(of_thresholds.normal(0, design.threshold_sd, n_users) * honest)
    own_effects = own(of_features.normal(size=(n_users, len(effects))) * effect_sds, effects)
    return replace(
        truth,
        deviations=truth.deviations + taste,
        threshold_deviations=truth.threshold_deviations + (factor - 1) * truth.user_thresholds(),
        sharpness=_draw_slopes(design, of_slopes, honest),
        side=own(side_sd * of_sides.normal(size=n_users), common_side),
        common_side=float(common_side),
        habits=design.tie_habit * of_items.normal(size=n_items),
        features=TrueFeatures(tuple(design.features), effects, own_effects),
    )


def _draw_slopes(design: Design, rng: np.random.Generator, honest: Mask) -> Floats:
    """Draw the users' slopes around 1, or deal those that are given evenly."""
    slopes = np.ones(len(honest))
    n_honest = int(honest.sum())
    if design.slopes:
        slopes[honest] = rng.permutation(np.resize(design.slopes, n_honest))
    else:
        slopes[honest] += rng.normal(0, design.slope_sd, n_honest)
    return slopes


def _draw_pairs(design: Design, rng: np.random.Generator) -> tuple[Places, Places, Places]:
    """Draw who compares what: users, left and right items."""
    low, high = design.votes_per_user
    n_votes = rng.integers(low, high, design.n_users, endpoint=True)
    user = np.repeat(np.arange(design.n_users), n_votes)
    left = rng.integers(design.n_items, size=user.size)
    right = (left + rng.integers(1, design.n_items, size=user.size)) % design.n_items
    return user, left, right


def _answers(
    truth: Truth, pairs: tuple[Places, Places, Places], values: Sequence[Floats], noise: Floats
) -> NDArray[np.int8]:
    """Let users answer."""
    user, kind = pairs[0], np.array(truth.kind)
    perceived = truth.margins(*pairs, values) + noise
    random = (kind == "random")[user]
    threshold = np.where(random, truth.user_thresholds()[user], truth.thresholds(*pairs))
    outcome = np.zeros(user.size, dtype=np.int8)
    outcome[perceived > threshold] = 1
    outcome[perceived <= -threshold] = -1
    for each, answer in _ONE_ANSWER.items():
        outcome[(kind == each)[user]] = answer
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
