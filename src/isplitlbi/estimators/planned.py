"""What an estimator says of votes that are not there yet: which to ask for, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.asking import Aim, Given, NextPairs, Wish, next_pairs
from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.estimators.inputs import pair_columns
from isplitlbi.estimators.measured import MeasuredEstimator
from isplitlbi.estimators.plans import Plan, make_plan

__all__ = ["PlannedEstimator"]


class PlannedEstimator(MeasuredEstimator):
    """One that says which votes would tell most."""

    def next_pairs(
        self,
        n: int,
        users: Sequence[Any] | None = None,
        aim: str = "ranking",
        *,
        per_user: int | None = None,
        new_only: bool = False,
        among: Any = None,
        progress: Callable[[float], None] | None = None,
    ) -> NextPairs:
        """Choose the votes to ask for next: whom, about which two items.

        Each is chosen for what it is expected to tell beside those before it, in bits. As a table:
        user, left, right, gain. Votes that connect parts of a study come first.

        Parameters
        ----------
        n
            How many.
        users
            Whom to ask; by default all but the unreliable, those first who have given few votes.
        aim
            What is to be known: ``ranking``, the order of all items in the consensus; ``top 3``,
            its first three places; or ``person``, every user's own order.
        per_user
            How many votes a user may be asked for; by default, votes are spread over users.
        new_only
            Whether to ask users only about pairs that they have not voted on before. A vote on the
            same pair tells less, and the gain knows it.
        among
            Votes to choose from: users, left and right items, as for `predict`. Sides stay as they
            are there.
        progress
            Called now and then with the share of the work done.
        """
        check_is_fitted(self, "fitted_")
        wish = Wish(
            n, Aim.of(aim, len(self.items_)), users, per_user, new_only,
            None if among is None else self._candidates(among),
        )  # fmt: skip
        return next_pairs(self, wish, progress).framed_as(self._frame_kind)

    def plan(
        self,
        aim: str = "ranking",
        target: float = 0.9,
        progress: Callable[[float], None] | None = None,
    ) -> Plan:
        """Say how certain the order is, and how many more votes a target needs.

        Parameters
        ----------
        aim
            ``ranking``: the target is Kendall's tau with the order that infinitely many votes would
            give. ``top 3``: it is the probability that the first three places are right.
        target
            Between 0 and 1.
        progress
            Called now and then with the share of the work done.
        """
        check_is_fitted(self, "fitted_")
        of = Aim.of(aim, len(self.items_))
        return make_plan(self, of, target, progress).framed_as(self._frame_kind)

    def _candidates(self, among: Any) -> Given:
        """Return candidates by index; refuse users who are not known."""
        user, left, right = self._indices(among)
        if self.has_users and (user < 0).any():
            is_votes = isinstance(among, Comparisons)
            names = among.users[among.user] if is_votes else pair_columns(among)[0]
            if names is None:
                raise InvalidVotes("the votes to choose from need users: whom may be asked which?")
            self.user_index(list(names)[int(np.flatnonzero(user < 0)[0])])
        if (left == right).any():
            row = int(np.flatnonzero(left == right)[0])
            item = show(self.items_[left[row]])
            raise InvalidVotes(f"row {row + 1} of the votes to choose from has {item} twice.")
        return Given(np.asarray(user), np.asarray(left), np.asarray(right))
