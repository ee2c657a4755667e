"""What an estimator says of its users together: whether they fall into groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.estimators.planned import PlannedEstimator

if TYPE_CHECKING:
    from isplitlbi.estimators.groups import Groups

__all__ = ["GroupedEstimator"]


class GroupedEstimator(PlannedEstimator):
    """One that says into which groups people fall."""

    random_state: int | None

    def groups(self, most: int = 5, progress: Callable[[float], None] | None = None) -> Groups:
        """Find out whether people fall into groups that want the same, and into which.

        Groups are said to be there only if they predict held-out votes clearly better than one
        group in which everybody's taste differs a little, and better than people who differ by
        degrees. So the usual answer is one group. People whose votes fit no ranking are in none.

        Parameters
        ----------
        most
            How many groups there may be, from 1 to 8.
        progress
            Called now and then with the share of the work done.
        """
        from isplitlbi.estimators.groups import groups_of

        check_is_fitted(self, "fitted_")
        self.refuse_without_users("nobody who could be in a group")
        found = groups_of(self, most, self.random_state or 0, progress)
        return found.framed_as(self._frame_kind)
