"""Which users vote differently from the group, how certain that is, and in which way.

Users are compared with `ordinary` ones, who differ among each other, in all `directions`. `tests`
asks whose votes are a `surprise`, by `draws` of ordinary users' votes; `explain` finds out which of
the `kinds` a user is of, by the `evidence` of every explanation, the `sequence` of votes and
`rings`; `quality` rates how carefully users vote. `found` is what comes out, and `finding` goes
through all of it.

Names are loaded on first use: a stored model knows its users already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isplitlbi.lazy import lazily

if TYPE_CHECKING:
    from isplitlbi.abnormal.company import Ordinary as Ordinary
    from isplitlbi.abnormal.expectation import TellingVote as TellingVote
    from isplitlbi.abnormal.expectation import find_telling_votes as find_telling_votes
    from isplitlbi.abnormal.finding import find_abnormal as find_abnormal
    from isplitlbi.abnormal.finding import find_abnormal_beside as find_abnormal_beside
    from isplitlbi.abnormal.finding import find_abnormal_in as find_abnormal_in
    from isplitlbi.abnormal.found import DIFFERENT as DIFFERENT
    from isplitlbi.abnormal.found import LEAST_USERS as LEAST_USERS
    from isplitlbi.abnormal.found import LISTS as LISTS
    from isplitlbi.abnormal.found import UNRELIABLE as UNRELIABLE
    from isplitlbi.abnormal.found import Abnormality as Abnormality
    from isplitlbi.abnormal.found import check_fdr as check_fdr
    from isplitlbi.abnormal.found import joined as joined
    from isplitlbi.abnormal.kinds import KINDS as KINDS
    from isplitlbi.abnormal.kinds import UNTRUSTWORTHY as UNTRUSTWORTHY
    from isplitlbi.abnormal.kinds import Kind as Kind

_HOMES = {
    "DIFFERENT": "found",
    "KINDS": "kinds",
    "LEAST_USERS": "found",
    "LISTS": "found",
    "Ordinary": "company",
    "UNRELIABLE": "found",
    "UNTRUSTWORTHY": "kinds",
    "Abnormality": "found",
    "Kind": "kinds",
    "TellingVote": "expectation",
    "check_fdr": "found",
    "find_abnormal": "finding",
    "find_abnormal_beside": "finding",
    "find_abnormal_in": "finding",
    "find_telling_votes": "expectation",
    "joined": "found",
}

__all__ = [
    "DIFFERENT",
    "KINDS",
    "LEAST_USERS",
    "LISTS",
    "UNRELIABLE",
    "UNTRUSTWORTHY",
    "Abnormality",
    "Kind",
    "Ordinary",
    "TellingVote",
    "check_fdr",
    "find_abnormal",
    "find_abnormal_beside",
    "find_abnormal_in",
    "find_telling_votes",
    "joined",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
