"""Users who leave the consensus wholly or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from isplitlbi.estimators.isplitlbi import ISplitLBI, Sides
from isplitlbi.model.links import Link
from isplitlbi.selection import Estimate, Rule, Scoring

__all__ = ["LBI"]


class LBI(ISplitLBI):
    """The limit of iSplit LBI for small nu: users who have not left have no deviation at all.

    The parameters are those of `ISplitLBI` of the same names, the terms those of the paper. P and
    Gamma become one, and both carry kappa, so that this is LBI with half of it.
    """

    def __init__(
        self,
        nu: float = 3e-3,
        kappa: float | Sequence[float] = 60.0,
        link: str | Link = "logistic",
        rule: Rule = "map",
        estimate: Estimate = "dense",
        n_folds: int = 5,
        scoring: Scoring = "log_loss",
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: int | None = 0,
        fdr: float = 0.05,
        with_tests: bool = True,
        sides: Sides = "known",
    ) -> None:
        super().__init__(
            nu=nu,
            kappa=kappa,
            terms="paper",
            link=link,
            rule=rule,
            estimate=estimate,
            n_folds=n_folds,
            scoring=scoring,
            n_jobs=n_jobs,
            backend=backend,
            random_state=random_state,
            fdr=fdr,
            with_tests=with_tests,
            sides=sides,
        )
