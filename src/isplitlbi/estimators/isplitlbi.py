"""`ISplitLBI`: the whole of it behind scikit-learn's interface."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from isplitlbi.abnormal import check_fdr
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.labels import OutcomeLabels, labels_of
from isplitlbi.data.layout import TASTE
from isplitlbi.data.merging import Repeated, with_new_votes
from isplitlbi.data.outcomes import Sides, all_on_one_side
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Summary
from isplitlbi.data.vocabulary import counted
from isplitlbi.errors import InvalidSetting, InvalidVotes
from isplitlbi.estimators.base import ScoreEstimator
from isplitlbi.estimators.contract import check_is_fitted
from isplitlbi.estimators.inputs import as_given, as_votes, check_choice, check_seed, threads_of
from isplitlbi.estimators.placed import PlacedUsers, place
from isplitlbi.estimators.updated import prepared
from isplitlbi.fitting import FitSettings, Fitted, fit, fit_again, fit_crowd
from isplitlbi.model.decomposition import Decomposition, decompose
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.terms import Terms
from isplitlbi.nouns import Nouns
from isplitlbi.path import RegularizationPath
from isplitlbi.runtime.base import Workforce
from isplitlbi.runtime.choice import runtime_for
from isplitlbi.runtime.local import Local
from isplitlbi.runtime.progress import Progress, Reporter
from isplitlbi.selection import ESTIMATES, Estimate, Rule, Scoring, check_scoring
from isplitlbi.solvers import Dynamics, Scheme, scheme_named
from isplitlbi.solvers.scales import Given

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["ISplitLBI", "Sides", "Ties"]

Ties = Literal["auto", "allowed", "none"]

# Where nothing else is said, and nothing is chosen from the votes.
NU, KAPPA = 0.3, 30.0
# How much larger than that of others the prior variance of users outside the consensus is: weak,
# but no votes make anybody infinite. Where nu is given, which may be next to nothing on purpose, it
# is at least the second number.
REACH, STRONG = 1000.0, 25.0


log = logging.getLogger("isplitlbi")

# Of the work of a fit that also tests its users, about as much is fitting.
SHARE_OF_FITTING = 0.75


class ISplitLBI(ScoreEstimator):
    """Consensus, individual rankings and abnormal users from votes with ties.

    Parameters
    ----------
    nu, kappa : float or list of float, optional
        Variance of the weak deviations and damping of the path (see `Dynamics`). By default chosen
        from the votes; 0.3 and 30 with the paper's terms. There, given lists, the best pair is
        chosen by the same cross-validation as the time.
    terms : str or list of str, default "all"
        In which ways users may differ: names from `model.terms.NAMES`, or ``paper`` for the model
        of the paper, taste and a tie threshold that adds up as it is.
    scales : mapping, optional
        How large the units of terms are, by name, beside taste; chosen from the votes by default.
    ties : {"auto", "allowed", "none"}, default "auto"
        Whether there may be ties. Without any, there is no tie threshold, and no tie is predicted;
        by default that is so where no vote is a tie.
    sides : {"known", "unknown"}, default "known"
        Whether left and right mean something. Otherwise nobody has a side, no test of users looks
        at sides, and folds do not depend on them.
    link : {"logistic", "probit", "uniform"} or Link, default "logistic"
        Bradley-Terry, Thurstone-Mosteller or uniform noise.
    rule : {"map", "threshold"}, default "map"
        Predict the most probable outcome, or, as the paper does, a tie whenever the margin is
        within the threshold.
    estimate : {"dense", "sparse"}, default "dense"
        By what to predict, also in choosing the time: all deviations of users or, as far as users
        have left the consensus, theirs alone.
    times : list of float, optional
        Times of the path; by default found from the votes.
    time : float, optional
        Where to stop. By default chosen by cross-validation.
    n_folds : int, default 5
        Folds of the cross-validation, within users. With fewer than five votes, or where none can
        be held out, no time is chosen: it is the first, at which nobody has left the consensus.
    scoring : {"log_loss", "micro_f1", "macro_f1", ...}, default "log_loss"
        What the cross-validation optimises. With ``rule="threshold"`` it may also be
        "paper_micro_f1" or "paper_macro_f1": the F1s of the published program (`metrics.paper_f1`).
    delta : float, default 1e-3
        Smallest tie threshold.
    fdr : float, default 0.05
        Expected share of users named wrongly among ``unreliable_users_``, and among
        ``different_users_``.
    solver : {"implicit", "explicit"} or a scheme, default "implicit"
        How the path is followed: fast, or by the paper's own scheme. A scheme carries its own
        settings.
    snapshots : path, optional
        Folder for the path's snapshots of the users, memory-mapped; in memory by default.
    n_jobs : int, optional
        Threads to use; by default (or with -1) all that the process may use. The result is the
        same for any number.
    backend : {"numba", "numpy"}, optional
        Compiled loops or plain ones.
    random_state : int or None, default 0
        Seed of the folds and of the tests.
    with_tests : bool, default True
        Whether a fit also tests its users. Without, `test_users` does so when it is called.
    call : mapping, optional
        What items and users are called in tables, sentences and figures, such as ``{"items":
        "models", "users": "person/people"}``. It changes no number, and no name of a column.

    Attributes
    ----------
    time_, nu_, kappa_ : float
        What was chosen.
    path_ : RegularizationPath
    selection_ : Selection or None
        The cross-validation, where there was one.
    costs_ : Costs
        What the rounds of a fit on a cluster came to; only after such a fit.

    All others are those of `ScoreEstimator`: ``users_``, ``items_``, ``consensus_``,
    ``threshold_``, ``habits_``, ``side_``, ``terms_``, ``spreads_``, ``entry_times_``,
    ``left_consensus_``, ``parameters_``, ``summary_`` and, once users are tested,
    ``abnormality_``, ``abnormal_users_``, ``unreliable_users_`` and ``different_users_``.

    Examples
    --------
    >>> from isplitlbi import ISplitLBI
    >>> from isplitlbi.evaluation.simulate import simulate
    >>> votes, truth = simulate(n_users=8, n_items=4, votes_per_user=(30, 40), random_state=1)
    >>> model = ISplitLBI(kappa=10, n_folds=2).fit(votes)
    >>> print(model.ranking())
    1  item-02
    2  item-03, item-01
    3  item-04
    """

    # Of an anonymous crowd, which follows no path, there is neither.
    path_: RegularizationPath
    time_: float
    _stops_at_time = False  # see `FitSettings`

    def __init__(
        self,
        *,
        nu: float | Sequence[float] | None = None,
        kappa: float | Sequence[float] | None = None,
        terms: str | Sequence[str] = "all",
        scales: Mapping[str, float] | None = None,
        ties: Ties = "auto",
        sides: Sides = "known",
        link: str | Link = "logistic",
        rule: Rule = "map",
        estimate: Estimate = "dense",
        times: Sequence[float] | None = None,
        time: float | None = None,
        n_folds: int = 5,
        scoring: Scoring = "log_loss",
        delta: float = 1e-3,
        fdr: float = 0.05,
        solver: str | Scheme = "implicit",
        snapshots: str | Path | None = None,
        n_jobs: int | None = None,
        backend: str | None = None,
        random_state: int | None = 0,
        with_tests: bool = True,
        call: Mapping[str, str] | None = None,
    ) -> None:
        self.nu = nu
        self.kappa = kappa
        self.terms = terms
        self.scales = scales
        self.ties = ties
        self.sides = sides
        self.link = link
        self.rule = rule
        self.estimate = estimate
        self.times = times
        self.time = time
        self.n_folds = n_folds
        self.scoring = scoring
        self.delta = delta
        self.fdr = fdr
        self.solver = solver
        self.snapshots = snapshots
        self.n_jobs = n_jobs
        self.backend = backend
        self.random_state = random_state
        self.with_tests = with_tests
        self.call = call

    def decompose(self, noise_level: float = 2.0) -> Decomposition:
        """Split the users' deviations into strong, personal and noise parts (Sec. 2.3).

        Strong is all of a user outside the consensus at the chosen time. Elsewhere, an entry counts
        as personal above ``noise_level`` standard deviations of what noise alone would give.
        """
        check_is_fitted(self, "fitted_")
        self.refuse_without_users("nobody whose deviations could be split")
        out = self.path_.support_at(self.time_)
        found = decompose(self.votes(), self.parameters_, out, self.link_, self.nu_, noise_level)
        return found.framed_as(self._frame_kind)

    # --- after the fit ---------------------------------------------------------------------

    def place(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        users: Sequence[Any] | None = None,
        with_tests: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> PlacedUsers:
        """Place people who came after the fit, by their votes; nothing is fitted again.

        Each is followed alone along the consensus of the path, by the equations and at the chosen
        time of the fit, and tested by what is ordinary among the users of the model. Votes are on
        items of the model. Somebody whom the model knows is placed by these votes alone, too.

        Parameters
        ----------
        X, y, sample_weight
            Votes, as for `fit`.
        users
            Others who are to be placed, though they have given no votes: they have the consensus.
        with_tests, progress
            Whether to test them, and what is called now and then with the share of that.
        """
        check_is_fitted(self, "fitted_")
        self.refuse_without_users("no path to place anybody beside")
        return place(self, as_votes(X, y, sample_weight), users, with_tests, progress)

    def update(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        reselect: bool = False,
        repeated: Repeated = "keep",
        retest: bool = False,
        progress: Callable[[Progress], None] | None = None,
        checkpoints: str | Path | None = None,
    ) -> Self:
        """Return a model of the votes of this one and new ones together; this one stays as it is.

        What was chosen for this model stays: nu, kappa, the scales of the terms, and the time. The
        result is that of a fit of all votes with these settings. There may be new users and items.

        Parameters
        ----------
        X, y, sample_weight
            The new votes, as for `fit`.
        reselect
            Whether to choose everything anew, as a new fit would.
        repeated
            What becomes of a new vote that the model has already, by its id or, without ids, the
            same in everything that is known of it: ``keep`` or ``drop``. How many is logged.
        retest
            Whether to test everybody anew. By default, where there are few new votes and no new
            items, those are who have a tenth more votes than when they were tested.
        progress, checkpoints
            As for `fit`.
        """
        check_is_fitted(self, "fitted_")
        check_choice("repeated", repeated, get_args(Repeated))
        votes = with_new_votes(self.votes(), as_votes(X, y, sample_weight), repeated)
        again = prepared(self, votes, reselect=reselect, retest=retest)
        again.model.snapshots = None if checkpoints is None else Path(checkpoints) / "snapshots"
        labels = self.outcome_labels_.with_ties()
        again.model._fit(votes, labels, progress=progress, checkpoints=checkpoints)
        return again.finished(self)

    def terms_for(self, votes: Comparisons) -> Terms:
        """Return the terms that some votes call for, by the settings of this model."""
        return self._terms(Summary.of(votes), _is_winner_first(votes))

    @property
    def scheme(self) -> Scheme:
        """How the path is followed."""
        return scheme_named(self.solver)

    # --- fitting ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        folds: ArrayLike | None = None,
        progress: Callable[[Progress], None] | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: float = 10.0,
        client: Client | None = None,
    ) -> Self:
        """Fit the path, choose where to stop on it, and test the users.

        Parameters
        ----------
        X
            `Comparisons`; a data frame with outcomes in any layout that files may have; the path of
            a file of votes or of a folder of them, a list of such paths, or `Parts` of a folder; or
            a frame with the columns user, left, right (or three columns in that order) and y.
        y
            Outcomes: 1 left wins, 0 tie, -1 right wins. Or words, such as left, tie and right,
            which are then what is predicted.
        folds
            The fold of every vote, where it is not to be drawn at random within users.
        progress
            Called now and then with the share of the work done, the time on the path, and the
            number of users who have left the consensus.
        checkpoints
            Folder in which the state of a long fit is kept. A fit of the same votes with the same
            settings that was interrupted goes on from there, and gives the same model.
        checkpoint_every
            Seconds between two writings, at least.
        client
            Of Dask: the users are shared out to its workers, and the model is the same. The parts
            of a folder are read by the workers. Folders must then be such that all workers reach
            them.
        """
        self._check_settings()
        votes = as_votes(X, y, sample_weight) if client is None else as_given(X, y, sample_weight)
        return self._fit(
            votes, labels_of(y), folds, progress=progress, checkpoints=checkpoints,
            checkpoint_every=checkpoint_every, client=client,
        )  # fmt: skip

    def _fit(
        self,
        votes: Comparisons | Parts,
        labels: OutcomeLabels,
        folds: ArrayLike | None = None,
        *,
        progress: Callable[[Progress], None] | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: float = 10.0,
        client: Client | None = None,
    ) -> Self:
        """Fit votes as they are; see `fit`."""
        folder = None if checkpoints is None else Path(checkpoints)
        runtime = runtime_for(
            votes, client, n_threads=threads_of(self.n_jobs), backend=self.backend,
            checkpoints=folder,
        )  # fmt: skip
        runtime.summary.tell_if_uneven(votes)
        settings = self._fit_settings(runtime.summary, folds, _is_winner_first(votes))
        if runtime.summary.is_anonymous:
            return self._fit_crowd(settings, runtime, progress, labels)
        reporter, share = Reporter(progress), SHARE_OF_FITTING if self.with_tests else 1.0
        of_fit, of_tests = reporter.part(share), reporter.part(1.0 - share, "testing users")
        fitted = fit(
            votes, settings, runtime, progress=of_fit.reach if of_fit.is_heard else None,
            checkpoints=folder, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        self.adopt(fitted, labels=labels)
        if self.with_tests:
            self._test_after_fit(runtime, of_tests)
        return self

    def _fit_crowd(
        self,
        settings: FitSettings,
        runtime: Workforce,
        progress: Callable[[Progress], None] | None,
        labels: OutcomeLabels,
    ) -> Self:
        """Fit one ranking for all: there are no users to follow, to choose for, or to test."""
        assert isinstance(runtime, Local)  # a cluster refuses such votes
        self.adopt(fit_crowd(runtime.votes, settings, runtime), labels=labels)
        Reporter(progress).reach(Progress(1.0, 0.0, 0))
        return self

    def _test_after_fit(self, runtime: Workforce, reporter: Reporter) -> None:
        n_out = int(np.isfinite(self.entry_times_).sum())

        def tell(share: float) -> None:
            reporter.reach(Progress(share, self.time_, n_out))

        self._test_on(runtime, self.fdr, tell)
        tell(1.0)

    def _fit_again(self, votes: Comparisons) -> Fitted:
        local = Local(votes, threads_of(self.n_jobs), self.backend)
        if votes.is_anonymous:
            winner_first = _is_winner_first(votes)
            return fit_crowd(votes, self._fit_settings(local.summary, None, winner_first), local)
        return fit_again(self.fitted_, self.scheme, local)

    def _terms(self, votes: Summary, winner_first: bool) -> Terms:
        """Return the terms that these votes call for.

        Where the winner is always on the same side, somebody has put it there: a side would then
        explain all votes, and the items none.
        """
        if winner_first and self.sides == "known":
            log.warning(
                "every winner is on the same side, so sides mean nothing here: no side is fitted."
            )
        if self.ties == "none" and votes.n_ties:
            raise InvalidVotes(
                f"ties is 'none', but {counted(votes.n_ties, 'vote')} "
                f"{'is a tie' if votes.n_ties == 1 else 'are ties'}. Leave "
                f"{'it' if votes.n_ties == 1 else 'these'} out, or allow ties."
            )
        return Terms.named(
            self.terms,
            features=() if votes.units is None else votes.units.names,
            has_ties=self.ties == "allowed" or votes.n_ties > 0,
            has_sides=self.sides == "known" and not winner_first,
        )

    def _check_settings(self) -> None:
        """Refuse what cannot be, whatever the votes are."""
        check_seed(self.random_state)
        check_choice("rule", self.rule)
        check_scoring(self.scoring, self.rule)
        check_choice("estimate", self.estimate, ESTIMATES)
        check_choice("ties", self.ties, get_args(Ties))
        check_choice("sides", self.sides, get_args(Sides))
        check_fdr(self.fdr)
        Nouns.of(self.call)
        Terms.named(self.terms)

    def _reach(self, nu: float, sizing: Given | None) -> float:
        if sizing is None:  # the paper's terms
            return np.inf
        return max(REACH, STRONG / nu) if self.nu is not None and nu > 0.0 else REACH

    def _check_scales(self, terms: Terms) -> None:
        """Refuse scales of what is no term, or of no size."""
        known = [name for name in terms.names if name != TASTE]
        for name, scale in (self.scales or {}).items():
            if terms.ties == "bounded" or name not in known:
                those = "there are none" if terms.ties == "bounded" else ", ".join(known)
                raise InvalidSetting(f"there is no scale of {name!r} in this model: {those}.")
            if not (np.isfinite(scale) and scale >= 0.0):
                raise InvalidSetting(
                    f"the scale of {name} is {scale}; it must be from 0 on, finite."
                )

    def _fit_settings(
        self, votes: Summary, folds: ArrayLike | None, winner_first: bool
    ) -> FitSettings:
        """Return everything that decides the fit; refuse what cannot be."""
        nus, kappas = (np.atleast_1d(() if x is None else x) for x in (self.nu, self.kappa))
        for given, values in ((self.nu, nus), (self.kappa, kappas)):
            if given is not None and values.size == 0:
                raise InvalidSetting("nu and kappa need at least one value each.")
        terms = self._terms(votes, winner_first)
        self._check_scales(terms)
        sizing = None
        if terms.ties != "bounded":
            sizing = Given(float(nus[0]) if nus.size else None, dict(self.scales or {}))
        return FitSettings(
            link=link_named(self.link),
            candidates=tuple(
                Dynamics(float(n), float(k), self.delta, self._reach(float(n), sizing))
                for n, k in product(nus if nus.size else [NU], kappas if kappas.size else [KAPPA])
            ),
            sizing=sizing,
            keeps_kappa=self.kappa is not None,
            stops_at_time=self._stops_at_time,
            scheme=self.scheme,
            terms=terms,
            times=None if self.times is None else np.asarray(self.times, dtype=np.float64),
            time=self.time,
            n_folds=self.n_folds,
            folds=None if folds is None else np.asarray(folds),
            scoring=self.scoring,
            rule=self.rule,
            estimate=self.estimate,
            seed=self.random_state,
            has_sides=self.sides == "known",
            snapshots=None if self.snapshots is None else Path(self.snapshots),
        )


def _is_winner_first(votes: Comparisons | Parts) -> bool:
    """Say whether all winners are on one side, of so many votes that it cannot be chance."""
    if isinstance(votes, Parts):
        return False  # nobody has looked at all of them
    n_left, n_right = np.count_nonzero(votes.outcome > 0), np.count_nonzero(votes.outcome < 0)
    return all_on_one_side(int(n_left), int(n_right))
