"""What is known of users once they were tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from isplitlbi.abnormal.company import Ordinary
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.parameters import Consensus
from isplitlbi.typing import Floats, Mask, Places

__all__ = [
    "COMMON_TO_ALL",
    "DIFFERENT",
    "LEAST_USERS",
    "LISTS",
    "UNRELIABLE",
    "Abnormality",
    "Texts",
    "check_fdr",
    "joined",
]

UNRELIABLE, DIFFERENT = "unreliable", "different"
LISTS = (UNRELIABLE, DIFFERENT)
LEAST_USERS = 3  # who make a group that somebody may be unlike

Texts = list[str]  # under this name, since a field is called list

COMMON_TO_ALL = ("fdr", "consensus", "ordinary")


@dataclass(frozen=True)
class Abnormality:
    """What is known of every user, in the order of the vocabulary.

    Attributes
    ----------
    fdr : float
        The false discovery rate at which users were flagged.
    consensus : Consensus
        What users were compared with: the scores and the threshold of those who agree, and the
        side, the effects of features and the tie habits of items, as far as the model has these.
        There is no threshold where no vote is a tie.
    p_value, q_value : (n_users,)
        Of "deviates from the consensus no more than an ordinary user"; nan for users without votes.
    p_unreliable, q_unreliable : (n_users,)
        Of "tells as much about the items as an ordinary user".
    flagged : (n_users,) bool
        Whether a user is on either list.
    list : (n_users,) text
        ``unreliable`` where the votes tell little about the items, ``different`` where they are
        only unlike the group's, each at the false discovery rate; else empty.
    effect, effect_low, effect_high : (n_users,)
        How far the votes are from the consensus, with a 95 % interval: in standard deviations of a
        vote, whatever the number of votes. Zero for who votes like the consensus.
    votes_needed : (n_users,)
        How many votes like theirs it would take to flag users who have too few; 0 for the others.
    kind, explanation : (n_users,) text
        One of `KINDS` and a plain sentence for users who are flagged, empty for the others.
    quality : (n_users,)
        Carefulness between 0 and 1: whether votes depend on the items, whatever the taste.
    slope, side, threshold : (n_users,)
        The user's slope on the consensus scores, preference for the left side in logits, and tie
        threshold (0 without ties); those of the consensus for users who are not flagged.
    n_votes : (n_users,)
        How many votes everybody had when they were tested.
    ordinary : Ordinary or None
        What it takes to test others later; None of a model that was stored without it.
    """

    fdr: float
    consensus: Consensus
    p_value: Floats
    q_value: Floats
    p_unreliable: Floats
    q_unreliable: Floats
    flagged: Mask
    list: Texts
    effect: Floats
    effect_low: Floats
    effect_high: Floats
    votes_needed: Places
    kind: Texts
    explanation: Texts
    quality: Floats
    slope: Floats
    side: Floats
    threshold: Floats
    n_votes: Places
    ordinary: Ordinary | None

    def on(self, name: str) -> Mask:
        """Say who is on a list."""
        return np.array([each == name for each in self.list], dtype=np.bool_)

    def those(self, users: Places) -> Abnormality:
        """Return what is known of some users, in this order."""
        theirs: dict[str, Any] = {
            name: [each[user] for user in users] if isinstance(each, list) else each[users]
            for name, each in self._by_user().items()
        }
        return replace(self, **theirs)

    def _by_user(self) -> dict[str, Any]:
        """Return what there is one of for every user."""
        names = [field.name for field in fields(Abnormality) if field.name not in COMMON_TO_ALL]
        return {name: getattr(self, name) for name in names}


def check_fdr(fdr: float) -> None:
    """Refuse a false discovery rate that is none."""
    if not 0.0 < fdr < 1.0:
        raise InvalidSetting(f"fdr is {fdr}; it must lie between 0 and 1.")


def joined(parts: Sequence[Abnormality]) -> Abnormality:
    """Put together what parts of the users were found to be, in the order of the users."""
    together: dict[str, Any] = {}
    for name, first in parts[0]._by_user().items():
        columns = [getattr(part, name) for part in parts]
        is_text = isinstance(first, list)
        together[name] = list(chain.from_iterable(columns)) if is_text else np.concatenate(columns)
    return replace(parts[0], **together)
