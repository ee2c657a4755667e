"""Which users vote differently from the group, how certain that is, and in which way.

Users are compared with `ordinary` ones, who differ among each other, in all `directions`. `tests`
asks whose votes are a `surprise`, by `draws` of ordinary users' votes; `explain` finds out which of
the `kinds` a user is of, by the `evidence` of every explanation, the `sequence` of votes and
`rings`; `quality` rates how carefully users vote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from isplitlbi.abnormal.expectation import Inputs, TellingVote, find_telling_votes
from isplitlbi.abnormal.explain import Explained, Texts, explain, in_numbers
from isplitlbi.abnormal.kinds import DIFFERENT, KINDS, LISTS, UNRELIABLE, UNTRUSTWORTHY, Kind
from isplitlbi.abnormal.quality import find_quality
from isplitlbi.abnormal.tests import LEAST_USERS, Flags, benjamini_hochberg, find_flags
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local
from isplitlbi.typing import Floats, Mask, Places

__all__ = [
    "DIFFERENT",
    "KINDS",
    "LEAST_USERS",
    "LISTS",
    "UNRELIABLE",
    "UNTRUSTWORTHY",
    "Abnormality",
    "Kind",
    "TellingVote",
    "check_fdr",
    "find_abnormal",
    "find_abnormal_in",
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

    def on(self, name: str) -> Mask:
        """Say who is on a list."""
        return np.array([each == name for each in self.list], dtype=np.bool_)


COMMON_TO_ALL = ("fdr", "consensus")
OF_TESTS = ("yardstick", "is_informed")  # what only explanations need

# A p-value of somebody who may belong to a ring of others.
SUSPICIOUS = 0.05


def check_fdr(fdr: float) -> None:
    """Refuse a false discovery rate that is none."""
    if not 0.0 < fdr < 1.0:
        raise InvalidSetting(f"fdr is {fdr}; it must lie between 0 and 1.")


def find_abnormal(
    votes: Comparisons,
    link: Link,
    consensus: Consensus,
    *,
    fdr: float = 0.05,
    seed: int = 0,
    delta: float = 1e-3,
    runtime: Runtime | None = None,
    progress: Callable[[float], None] | None = None,
) -> Abnormality:
    """Find users who are unreliable or different, and explain how they vote.

    Parameters
    ----------
    votes, link
        The votes, and the link of the model.
    consensus
        A first consensus, such as the path's, which abnormal users do not pull much. Users are
        compared with one of the same terms.
    fdr
        Expected share of users flagged wrongly among those flagged.
    seed
        Seed of the draws; every user has draws of their own.
    delta
        Smallest tie threshold.
    runtime
        Where the work is done; the result does not depend on it. Where these are some of the users
        only, the others are taken into account, and told of where they are; `joined` puts all of
        them together.
    progress
        Called now and then with the share of the work done.
    """
    inputs = Inputs.of(
        votes, link, consensus, delta=delta, seed=seed, runtime=runtime or Local(votes)
    )
    return find_abnormal_in(inputs, fdr, progress)


def find_abnormal_in(
    inputs: Inputs, fdr: float, progress: Callable[[float], None] | None = None
) -> Abnormality:
    """Do the same, given all that it rests on."""
    check_fdr(fdr)
    # The matrices are small: threads of the linear algebra would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        flags = find_flags(inputs, fdr, progress)
        inputs = replace(inputs, consensus=flags.consensus)
        is_different = flags.q_value <= fdr
        is_unreliable = (flags.q_unreliable <= fdr) & ~flags.is_informed
        suspects = flags.p_value <= SUSPICIOUS
        found = explain(inputs, flags.yardstick, is_different, is_unreliable, suspects)
        flags, found = _with_lists_apart(inputs, flags, found, fdr)
        quality = find_quality(
            inputs.answers, flags.yardstick.expected, found.log_likelihood, found.kind
        )
        flagged = np.array([bool(name) for name in found.list], dtype=np.bool_)
        slope, side, threshold = in_numbers(inputs, flags.yardstick, flagged)
    tested = {name: value for name, value in flags._asdict().items() if name not in OF_TESTS}
    return Abnormality(
        fdr, **tested, flagged=flagged, list=found.list, kind=found.kind,
        explanation=found.sentence, quality=quality, slope=slope, side=side, threshold=threshold,
    )  # fmt: skip


def _with_lists_apart(
    inputs: Inputs, flags: Flags, found: Explained, fdr: float
) -> tuple[Flags, Explained]:
    """Hold the error rate within the different users, too.

    Unreliable users are different as well. Among so many who are found rightly, the few others on
    their own list might be found by chance: they are tested among each other, unless both tests
    have found them.
    """
    runtime = inputs.runtime
    mine = slice(runtime.first, runtime.first + inputs.answers.n_users)
    unreliable = np.array([name == UNRELIABLE for name in found.list], dtype=np.bool_)
    others = np.where(unreliable, np.nan, flags.p_value)
    q_value = np.fmax(benjamini_hochberg(runtime.everybody(others))[mine], flags.q_value)
    q_value = np.where(unreliable | (flags.q_unreliable <= fdr), flags.q_value, q_value)
    stays = unreliable | (q_value <= fdr) | (flags.q_unreliable <= fdr)

    def kept(texts: Texts) -> Texts:
        return [text if is_kept else "" for text, is_kept in zip(texts, stays, strict=True)]

    listed = found._replace(
        list=kept(found.list), kind=kept(found.kind), sentence=kept(found.sentence)
    )
    return flags._replace(q_value=q_value), listed


def joined(parts: Sequence[Abnormality]) -> Abnormality:
    """Put together what parts of the users were found to be, in the order of the users."""
    together: dict[str, Any] = {}
    for name in [field.name for field in fields(Abnormality) if field.name not in COMMON_TO_ALL]:
        columns = [getattr(part, name) for part in parts]
        is_text = isinstance(columns[0], list)
        together[name] = list(chain.from_iterable(columns)) if is_text else np.concatenate(columns)
    return replace(parts[0], **together)
