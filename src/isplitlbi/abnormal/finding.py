"""Find users who are unreliable or different: all steps, one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from isplitlbi.abnormal.company import Newcomers
from isplitlbi.abnormal.expectation import Inputs
from isplitlbi.abnormal.explain import Explained, explain, in_numbers
from isplitlbi.abnormal.found import UNRELIABLE, Abnormality, Texts, check_fdr
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.quality import find_quality
from isplitlbi.abnormal.tests import Flags, find_flags, flags_by
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.errors import InvalidSetting
from isplitlbi.model.links import Link
from isplitlbi.model.parameters import Consensus
from isplitlbi.runtime.base import Runtime
from isplitlbi.runtime.local import Local

__all__ = ["find_abnormal", "find_abnormal_beside", "find_abnormal_in"]

OF_TESTS = ("yardstick", "is_informed")  # what only explanations need

# A p-value of somebody who may belong to a ring of others.
SUSPICIOUS = 0.05


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
    with _libraries().limit(limits=1, user_api="blas"):
        return _explained(inputs, find_flags(inputs, fdr, progress), fdr)


def find_abnormal_beside(
    votes: Comparisons,
    link: Link,
    study: Abnormality,
    *,
    seed: int = 0,
    delta: float = 1e-3,
    runtime: Runtime | None = None,
    progress: Callable[[float], None] | None = None,
) -> Abnormality:
    """Find out the same of newcomers, by what was found ordinary in a study, and among its users.

    Votes have the items of the study. Each newcomer is tested as if nobody else had come. Nobody is
    said to belong to a ring.
    """
    ordinary = study.ordinary
    if ordinary is None:
        raise InvalidSetting(
            "what is ordinary in this study is not known: its model is from an older release. Fit "
            "it again."
        )
    p_values = (study.p_value, study.p_unreliable)
    company = Newcomers(votes.users, ordinary, p_values, study.on(UNRELIABLE), study.fdr)
    inputs = Inputs.beside(
        votes, link, study.consensus, ordinary, company, delta=delta, seed=seed,
        runtime=runtime or Local(votes),
    )  # fmt: skip
    with _libraries().limit(limits=1, user_api="blas"):
        yardstick, tell = Yardstick.beside(inputs, ordinary), progress or (lambda done: None)
        return _explained(inputs, flags_by(inputs, yardstick, study.fdr, tell), study.fdr)


def _explained(inputs: Inputs, flags: Flags, fdr: float) -> Abnormality:
    """Find out how users vote who were flagged."""
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
        n_votes=inputs.votes.votes_per_user, ordinary=flags.yardstick.in_short(inputs),
    )  # fmt: skip


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries that have threads of their own, once."""
    return ThreadpoolController()


def _with_lists_apart(
    inputs: Inputs, flags: Flags, found: Explained, fdr: float
) -> tuple[Flags, Explained]:
    """Hold the error rate within the different users, too.

    Unreliable users are different as well. Among so many who are found rightly, the few others on
    their own list might be found by chance: they are tested among each other, unless both tests
    have found them.
    """
    unreliable = np.array([name == UNRELIABLE for name in found.list], dtype=np.bool_)
    others = np.where(unreliable, np.nan, flags.p_value)
    q_value = np.fmax(inputs.among.q_value(0, others, of_different=True), flags.q_value)
    q_value = np.where(unreliable | (flags.q_unreliable <= fdr), flags.q_value, q_value)
    stays = unreliable | (q_value <= fdr) | (flags.q_unreliable <= fdr)

    def kept(texts: Texts) -> Texts:
        return [text if is_kept else "" for text, is_kept in zip(texts, stays, strict=True)]

    listed = found._replace(
        list=kept(found.list), kind=kept(found.kind), sentence=kept(found.sentence)
    )
    return flags._replace(q_value=q_value), listed
