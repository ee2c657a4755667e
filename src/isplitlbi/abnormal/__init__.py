"""Abnormal users: how surely, in which way, and does it matter.

`flags` tests every user against the consensus, `kinds` says in which way a user departs from it and
how carefully the user votes, `effect` what leaving users out would change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from isplitlbi.abnormal.expectation import TellingVote, find_telling_votes
from isplitlbi.abnormal.influence import N_BOOTSTRAP, Effect, find_effect
from isplitlbi.abnormal.kinds import KINDS, UNTRUSTWORTHY, find_kinds
from isplitlbi.abnormal.tests import find_flags
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Link
from isplitlbi.solvers import Share
from isplitlbi.typing import Floats

__all__ = [
    "KINDS",
    "N_BOOTSTRAP",
    "UNTRUSTWORTHY",
    "Abnormality",
    "Effect",
    "TellingVote",
    "check_fdr",
    "find_abnormal",
    "find_effect",
    "find_telling_votes",
    "joined",
]


@dataclass(frozen=True)
class Abnormality:
    """What is known of every user, in the order of the vocabulary.

    Attributes
    ----------
    fdr : float
        The false discovery rate at which users were flagged.
    consensus : (n_items + 1,)
        What users were compared with: the scores and the threshold of those who agree.
    p_value, q_value : (n_users,)
        Of "votes like the consensus"; nan for users without votes.
    flagged : (n_users,) bool
        Whether the q-value is at most the false discovery rate.
    votes_needed : (n_users,)
        How many votes like theirs it would take to flag users who have too few; 0 for the others.
    kind, explanation : (n_users,) text
        One of `KINDS` and a plain sentence for users who are flagged, empty for the others.
    quality : (n_users,)
        Carefulness from 0 to 1: whether votes depend on the items, whatever the taste.
    slope, side, threshold : (n_users,)
        What the explanation rests on: the user's slope on the consensus margin, preference for the
        left side in logits, and tie threshold; those of the consensus where they explain nothing.
    """

    fdr: float
    consensus: Floats
    p_value: Floats
    q_value: Floats
    flagged: NDArray[np.bool_]
    votes_needed: NDArray[np.int64]
    kind: list[str]
    explanation: list[str]
    quality: Floats
    slope: Floats
    side: Floats
    threshold: Floats


def check_fdr(fdr: float) -> None:
    """Refuse a false discovery rate that is none."""
    if not 0.0 < fdr < 1.0:
        raise ValueError(f"fdr is {fdr}; it must lie between 0 and 1.")


def find_abnormal(
    votes: Comparisons,
    link: Link,
    consensus: Floats,
    *,
    fdr: float = 0.05,
    seed: int = 0,
    n_threads: int = 1,
    delta: float = 1e-3,
    progress: Callable[[float], None] | None = None,
    share: Share | None = None,
) -> Abnormality:
    """Flag users who do not vote like the consensus, and explain how they vote.

    The parameters are those of `flags.find_flags`. With a share of the users, the others are
    taken into account, and told of where they are; `joined` puts all of them together.
    """
    check_fdr(fdr)
    # The matrices are small: threads of the linear algebra would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        flags = find_flags(
            votes, link, consensus, fdr=fdr, seed=seed, n_threads=n_threads, delta=delta,
            progress=progress, share=share,
        )  # fmt: skip
        kinds = find_kinds(votes, link, flags.consensus, flags.flagged, delta, seed, share)
    return Abnormality(fdr, **flags._asdict(), **kinds._asdict())


def joined(parts: Sequence[Abnormality]) -> Abnormality:
    """Put together what shares of the users were found to be, in the order of the users."""
    together: dict[str, Any] = {}
    for name in [field.name for field in fields(Abnormality)]:
        columns = [getattr(part, name) for part in parts]
        if name in ("kind", "explanation"):
            together[name] = list(chain.from_iterable(columns))
        elif name not in ("fdr", "consensus"):  # common to all
            together[name] = np.concatenate(columns)
    return replace(parts[0], **together)
