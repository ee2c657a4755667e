"""`ISplitLBI`: the whole of it behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isplitlbi.abnormal import check_fdr
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Overview
from isplitlbi.errors import InvalidSetting, InvalidVotes, PathFailed
from isplitlbi.estimators.base import ScoreEstimator
from isplitlbi.estimators.inputs import as_votes, check_choice, check_seed, threads_of
from isplitlbi.fitting import Fitted
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.ranking import Decomposition, decompose
from isplitlbi.path import Ending, RegularizationPath
from isplitlbi.selection import SCORINGS, Rule, Scoring, Selection, select
from isplitlbi.solvers import (
    Checkpoints,
    Dynamics,
    Explicit,
    Implicit,
    Progress,
    Reporter,
    Scheme,
    default_times,
    follow,
)
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from distributed import Client


SOLVERS: dict[str, type[Scheme]] = {"implicit": Implicit, "explicit": Explicit}

# Of the work of a fit that also tests its users, about as much is fitting.
SHARE_OF_FITTING = 0.75


class ISplitLBI(ScoreEstimator):
    """Consensus, individual rankings and abnormal users from votes with ties.

    Parameters
    ----------
    nu, kappa : float or list of float, default 0.3 and 30
        Variance of the weak deviations and damping of the path (see `Dynamics`). Given lists, the
        best pair is chosen by the same cross-validation as the time.
    link : {"logistic", "probit", "uniform"} or Link, default "logistic"
        Bradley-Terry, Thurstone-Mosteller or uniform noise.
    rule : {"map", "threshold"}, default "map"
        Predict the most probable outcome, or, as the paper does, a tie whenever the margin is
        within the threshold.
    times : list of float, optional
        Times of the path; by default found from the votes.
    time : float, optional
        Where to stop. By default chosen by cross-validation.
    n_folds : int, default 5
        Folds of the cross-validation, within users.
    scoring : {"log_loss", "micro_f1", "macro_f1"}, default "log_loss"
        What the cross-validation optimises.
    delta : float, default 1e-3
        Smallest tie threshold.
    fdr : float, default 0.05
        Expected share of users named wrongly among ``abnormal_users_``.
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
    ``threshold_``, ``entry_times_``, ``left_consensus_``, ``parameters_``, ``summary_`` and, once
    users are tested, ``abnormal_users_`` and ``abnormality_``.

    Examples
    --------
    >>> from isplitlbi import ISplitLBI
    >>> from isplitlbi.evaluation.simulate import simulate
    >>> votes, truth = simulate(n_users=8, n_items=4, votes_per_user=(30, 40), random_state=1)
    >>> model = ISplitLBI(kappa=10, n_folds=2).fit(votes)
    >>> print(model.ranking())
    1  item-02
    2  item-01, item-03
    3  item-04
    """

    path_: RegularizationPath
    time_: float

    def __init__(
        self,
        *,
        nu: float | Sequence[float] = 0.3,
        kappa: float | Sequence[float] = 30.0,
        link: str | Link = "logistic",
        rule: Rule = "map",
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
    ) -> None:
        self.nu = nu
        self.kappa = kappa
        self.link = link
        self.rule = rule
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

    def decompose(self, noise_level: float = 2.0) -> Decomposition:
        """Split the users' deviations into abnormal, personal and noise parts (Sec. 2.3).

        Abnormal is all of a user outside the consensus at the chosen time. Elsewhere, an entry
        counts as personal above ``noise_level`` standard deviations of what noise alone would give.
        """
        check_is_fitted(self, "fitted_")
        out = self.path_.support_at(self.time_)
        return decompose(self.votes(), self.parameters_, out, self.link_, self.nu_, noise_level)

    def _adopt_and_test(
        self,
        fitted: Fitted,
        progress: Callable[[Progress], None] | None,
        client: Client | None = None,
    ) -> Self:
        """Take over what was fitted, and test the users unless this is turned off."""
        self.adopt(fitted)
        if self.with_tests:
            n_out = int(np.isfinite(self.entry_times_).sum())

            def tell(share: float) -> None:
                if progress is not None:
                    done = SHARE_OF_FITTING + (1.0 - SHARE_OF_FITTING) * share
                    progress(Progress(done, self.time_, n_out, "testing users"))

            tell(0.0)
            self.test_users(progress=tell, client=client)
            tell(1.0)
        return self

    def _of_fitting(
        self, progress: Callable[[Progress], None] | None
    ) -> Callable[[Progress], None] | None:
        """Tell of the paths as of a part of the work, where users are tested after them."""
        if progress is None or not self.with_tests:
            return progress
        return lambda told: progress(told._replace(done=SHARE_OF_FITTING * told.done))

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
            `Comparisons`; the path of a file of votes or of a folder of them, or `Parts` of such
            a folder; or a frame with the columns user, left, right (or three columns in that order)
            together with y.
        y
            Outcomes: 1 left wins, 0 tie, -1 right wins.
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
        check_seed(self.random_state)
        candidates = self._candidates()
        check_choice("rule", self.rule)
        check_choice("scoring", self.scoring, tuple(SCORINGS))
        check_fdr(self.fdr)
        folder = None if checkpoints is None else Path(checkpoints)
        if client is not None:
            if folds is not None:
                raise InvalidSetting("folds cannot be given together with a client.")
            if isinstance(X, str | Path) and Path(X).is_dir():
                X = Parts.of(X)
            where = X if isinstance(X, Parts) else as_votes(X, y, sample_weight)
            return self._fit_on(client, where, candidates, progress, folder, checkpoint_every)
        votes = as_votes(X, y, sample_weight)
        kept = None
        if folder is not None:
            identity = self._identity(Overview.of(votes), folds)
            kept = Checkpoints(folder, identity, checkpoint_every)
        if self.time is None:
            n_folds = self.n_folds if folds is None else len(np.unique(np.asarray(folds)))
            reporter = Reporter(1 + len(candidates) * n_folds, self._of_fitting(progress))
            selection, path = self._cross_validate(votes, candidates, folds, reporter, kept)
            dynamics, stop = selection.dynamics, selection.time
        elif len(candidates) > 1:
            raise InvalidSetting("several nu or kappa need cross-validation: leave time unset.")
        else:
            selection, dynamics, stop = None, candidates[0], float(self.time)
            times = np.union1d(self._times(votes, dynamics), [stop])
            reporter = Reporter(1, self._of_fitting(progress))
            path = self._path(votes, dynamics, times, reporter, kept, threads_of(self.n_jobs))
        if path.ending is not Ending.COMPLETE:
            raise PathFailed(path.ending.value)
        fitted = Fitted(
            votes, Overview.of(votes), link_named(self.link), dynamics, stop, path.at(stop), path,
            selection,
        )  # fmt: skip
        return self._adopt_and_test(fitted, progress)

    def _fit_on(
        self,
        client: Client,
        votes: Comparisons | Parts,
        candidates: list[Dynamics],
        progress: Callable[[Progress], None] | None,
        folder: Path | None,
        checkpoint_every: float,
    ) -> Self:
        """Fit on the workers of a cluster."""
        from isplitlbi.runtime.dask import Fit, cluster_of

        if self.random_state is None:
            raise InvalidSetting("a fit on a cluster needs a random_state.")
        cluster, kept = cluster_of(client, votes, folder), None
        if folder is not None:
            kept = Checkpoints(folder, self._identity(cluster.overview), checkpoint_every)
            cluster.remember_shards(folder)
        selection, path, dynamics, stop = Fit(
            cluster, link_named(self.link), self._scheme(), candidates,
            None if self.times is None else np.asarray(self.times, dtype=np.float64),
            self.time, self.n_folds, self.scoring, self.rule, self.random_state, kept,
            self.backend, None if self.snapshots is None else Path(self.snapshots),
            self._of_fitting(progress),
        ).run()  # fmt: skip
        if isinstance(votes, Comparisons) and not np.array_equal(
            path.slots.coordinate, votes.slots.coordinate
        ):
            raise InvalidVotes(
                "a part of votes cannot be fitted on a cluster; make Comparisons of their own."
            )
        fitted = Fitted(
            votes, cluster.overview, link_named(self.link), dynamics, stop, path.at(stop), path,
            selection, cluster.costs,
        )  # fmt: skip
        return self._adopt_and_test(fitted, progress, client)

    def _cross_validate(
        self,
        votes: Comparisons,
        candidates: list[Dynamics],
        folds: ArrayLike | None,
        reporter: Reporter,
        kept: Checkpoints | None,
    ) -> tuple[Selection, RegularizationPath]:
        """Choose the time and, among several candidates, nu and kappa; follow the whole path."""
        n_threads = threads_of(self.n_jobs)
        choose = partial(
            select,
            votes,
            link_named(self.link),
            candidates,
            self._scheme(),
            n_folds=self.n_folds,
            fold=folds,
            scoring=self.scoring,
            rule=self.rule,
            rng=self.random_state,
            n_jobs=n_threads,
            checkpoints=kept,
            reporter=reporter,
            backend=self.backend,
        )
        if len(candidates) > 1:
            selection = choose(times=self.times)
            dynamics, times = selection.dynamics, selection.chosen.times
            return selection, self._path(votes, dynamics, times, reporter, kept, n_threads)
        # The time will be one of these, so that the whole path need not wait for the folds.
        times = self._times(votes, candidates[0])
        paths: list[RegularizationPath] = []

        def follow_whole() -> None:
            paths.append(self._path(votes, candidates[0], times, reporter, kept, n_threads=1))

        return choose(times=times, alongside=[follow_whole]), paths[0]

    def _path(
        self,
        votes: Comparisons,
        dynamics: Dynamics,
        times: Floats,
        reporter: Reporter,
        kept: Checkpoints | None,
        n_threads: int,
    ) -> RegularizationPath:
        return follow(
            votes,
            link_named(self.link),
            dynamics,
            self._scheme(),
            times,
            keep=True if self.snapshots is None else self.snapshots,
            checkpoint=None if kept is None else kept.of("path"),
            reporter=reporter,
            n_threads=n_threads,
            backend=self.backend,
        )

    def _times(self, votes: Comparisons, dynamics: Dynamics) -> Floats:
        if self.times is None:
            link, n_threads = link_named(self.link), threads_of(self.n_jobs)
            return default_times(votes, link, dynamics, n_threads=n_threads, backend=self.backend)
        return np.asarray(self.times, dtype=np.float64)

    def _identity(self, votes: Overview, folds: ArrayLike | None = None) -> dict[str, Any]:
        """Return all that decides the result."""
        if self.random_state is None:
            raise InvalidSetting("checkpoints need a random_state, or the folds would be others.")
        settings = {
            name: np.asarray(value).tolist() if name in ("nu", "kappa", "times") else value
            for name, value in self.get_params().items()
            if name not in ("n_jobs", "snapshots", "fdr", "with_tests")
        }
        settings |= {"link": link_named(self.link).name, "solver": repr(self._scheme())}
        given = None if folds is None else np.asarray(folds).tolist()
        return {"votes": votes.fingerprint, "settings": settings, "folds": given}

    def _scheme(self) -> Scheme:
        if isinstance(self.solver, str) and self.solver in SOLVERS:
            return SOLVERS[self.solver]()
        if isinstance(self.solver, str | type) or not hasattr(self.solver, "prepare"):
            raise InvalidSetting(
                f"solver {self.solver!r} is not one of {', '.join(SOLVERS)}, nor a scheme."
            )
        return self.solver

    def _candidates(self) -> list[Dynamics]:
        nus, kappas = np.atleast_1d(self.nu), np.atleast_1d(self.kappa)
        if nus.size == 0 or kappas.size == 0:
            raise InvalidSetting("nu and kappa need at least one value each.")
        return [Dynamics(float(n), float(k), self.delta) for n, k in product(nus, kappas)]
