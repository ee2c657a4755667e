"""A model of more votes, by what was chosen for the model before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isplitlbi.abnormal import Abnormality
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import TASTE
from isplitlbi.data.vocabulary import Vocabulary
from isplitlbi.estimators.contract import clone
from isplitlbi.estimators.inputs import threads_of
from isplitlbi.estimators.placed import beside
from isplitlbi.runtime.local import Local

if TYPE_CHECKING:
    from isplitlbi.estimators.isplitlbi import ISplitLBI

__all__ = ["Prepared", "prepared"]

MANY_MORE = 1.1  # times as many votes: tests are then repeated
# From so many votes on, the path is followed no further than to the chosen time. What comes later
# is most of the work; who will leave when is then told by where everybody is at that time.
MANY_VOTES = 100_000

M = TypeVar("M", bound="ISplitLBI")


@dataclass(frozen=True)
class Prepared:
    """A model that is to be fitted to more votes, and what need not be found again."""

    model: Any  # of the class of the model before
    tests: Abnormality | None
    keeps_choices: bool

    def finished(self, before: M) -> M:
        """Return the model, which is fitted by now, with the settings of that before.

        What was not given to one is not given to the other: it may be chosen anew later.
        """
        model: M = self.model
        model._stops_at_time = False
        if self.keeps_choices:  # how much users differ is then not estimated, either
            model.fitted_ = replace(model.fitted_, spreads=before.fitted_.spreads)
            model.spreads_ = {**before.spreads_}
        if self.tests is not None:
            model._remember(self.tests)
        for name, value in before.get_params().items():
            setattr(model, name, value)
        return model


def prepared(model: ISplitLBI, votes: Comparisons, *, reselect: bool, retest: bool) -> Prepared:
    """Return a model like this one, to be fitted to more votes; see `ISplitLBI.update`."""
    again, tests = clone(model), None
    if not reselect:
        for name, value in _chosen(model, votes).items():
            setattr(again, name, value)
        if model.with_tests and model.has_users and not retest:
            tests = tests_that_stay(model, votes)
        again.with_tests = model.with_tests and tests is None
        again._stops_at_time = len(votes) >= MANY_VOTES
    return Prepared(again, tests, not reselect and model.has_users)


def _chosen(model: ISplitLBI, votes: Comparisons) -> dict[str, Any]:
    """Return what a fit of other votes takes over from a model, as settings.

    For an anonymous crowd, nothing was chosen.
    """
    if not model.has_users:
        return {}
    chosen: dict[str, Any] = {"nu": model.nu_, "kappa": model.kappa_, "time": model.time_}
    terms = model.terms_for(votes)
    if terms.ties != "bounded":
        sizes = zip(model.terms_.names, model.terms_.scales, strict=True)
        chosen["scales"] = {
            name: scale for name, scale in sizes if name != TASTE and name in terms.names
        }
    return chosen


def tests_that_stay(model: ISplitLBI, votes: Comparisons) -> Abnormality | None:
    """Return the tests of users of more votes, where not everybody must be tested anew.

    Whoever has more than a tenth more votes than when they were tested is tested anew, beside all
    others, who keep what was found. Nothing is returned where all votes together have grown by as
    much since all users were tested, and where there are new items, other terms, or features: what
    is ordinary may then be something else.
    """
    from isplitlbi.abnormal import find_abnormal_beside, joined

    before: Abnormality | None = getattr(model, "abnormality_", None)
    if before is None or before.ordinary is None or len(votes.items) != len(model.items_):
        return None
    before_terms, terms = model.terms_, model.terms_for(votes)
    if (terms.names, terms.ties) != (before_terms.names, before_terms.ties):
        return None
    if model.summary_.units is not None:  # the units of features are others by now
        return None
    if len(votes) > MANY_MORE * before.ordinary.n_votes:
        return None
    known = Vocabulary(model.users_, "user").encode(votes.users)
    n_tested = np.where(known >= 0, before.n_votes[known], 0)
    is_new = votes.votes_per_user > MANY_MORE * n_tested
    kept = before.those(known[~is_new].astype(np.int64))
    if not is_new.any():
        return kept
    theirs = beside(model, votes.alone(is_new[votes.user]))
    anew = find_abnormal_beside(
        theirs, model.link_, kept, seed=model.random_state or 0, delta=model.delta,
        runtime=Local(theirs, threads_of(model.n_jobs)),
    )  # fmt: skip
    order = np.argsort(np.concatenate([np.flatnonzero(~is_new), np.flatnonzero(is_new)]))
    return replace(joined([kept, anew]).those(order), ordinary=before.ordinary)
