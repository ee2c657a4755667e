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

from isplitlbi.abnormal import (
    N_BOOTSTRAP,
    Abnormality,
    Effect,
    TellingVote,
    check_fdr,
    find_abnormal,
    find_effect,
    find_telling_votes,
)
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.readers import Parts
from isplitlbi.data.summary import Overview
from isplitlbi.data.vocabulary import show
from isplitlbi.errors import InvalidVotes, PathFailed
from isplitlbi.estimators.base import MarginClassifier, as_votes, check_choice
from isplitlbi.model import ranking as rankings
from isplitlbi.model.links import Link, link_named
from isplitlbi.model.ranking import Decomposition, Ranking, Relation
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
    available_threads,
    bootstrap_consensus,
    default_times,
    follow,
)
from isplitlbi.typing import Floats

if TYPE_CHECKING:
    from distributed import Client


SOLVERS: dict[str, type[Scheme]] = {"implicit": Implicit, "explicit": Explicit}


class ISplitLBI(MarginClassifier):
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
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    users_, items_ : arrays of ids, sorted
    consensus_ : (n_items,) scores
    threshold_ : float
    time_, nu_, kappa_ : float
        What was chosen.
    entry_times_ : (n_users,)
        When each user left the consensus, infinite for who did not.
    abnormal_users_ : list of ids
        Users who do not vote like the consensus, flagged at ``fdr``, in order of entry.
    left_consensus_ : list
        Users outside the consensus at the chosen time, in order of entry.
    path_ : RegularizationPath
    selection_ : Selection or None
    parameters_ : Parameters
        Consensus and deviations at the chosen time.
    costs_ : Costs
        What the rounds of a fit on a cluster came to; only after such a fit.

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
        """Fit the path and choose where to stop on it.

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
        candidates = self._candidates()
        check_choice("rule", self.rule)
        check_choice("scoring", self.scoring, tuple(SCORINGS))
        check_fdr(self.fdr)
        folder = None if checkpoints is None else Path(checkpoints)
        if client is not None:
            if folds is not None:
                raise ValueError("folds cannot be given together with a client.")
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
            reporter = Reporter(1 + len(candidates) * n_folds, progress)
            selection, path = self._cross_validate(votes, candidates, folds, reporter, kept)
            dynamics, stop = selection.dynamics, selection.time
        elif len(candidates) > 1:
            raise ValueError("several nu or kappa need cross-validation: leave time unset.")
        else:
            selection, dynamics, stop = None, candidates[0], float(self.time)
            times = np.union1d(self._times(votes, dynamics), [stop])
            path = self._path(votes, dynamics, times, Reporter(1, progress), kept, self._threads())
        if path.ending is not Ending.COMPLETE:
            raise PathFailed(path.ending.value)
        return self._adopt(votes, selection, path, dynamics, stop)

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
            raise ValueError("a fit on a cluster needs a random_state.")
        cluster, kept = cluster_of(client, votes, folder), None
        if folder is not None:
            kept = Checkpoints(folder, self._identity(cluster.overview), checkpoint_every)
            cluster.remember_shards(folder)
        selection, path, dynamics, stop = Fit(
            cluster, link_named(self.link), self._scheme(), candidates,
            None if self.times is None else np.asarray(self.times, dtype=np.float64),
            self.time, self.n_folds, self.scoring, self.rule, self.random_state, kept,
            self.backend, None if self.snapshots is None else Path(self.snapshots), progress,
        ).run()  # fmt: skip
        if isinstance(votes, Comparisons) and not np.array_equal(
            path.slots.coordinate, votes.slots.coordinate
        ):
            raise ValueError(
                "a part of votes cannot be fitted on a cluster; make Comparisons of their own."
            )
        self.costs_ = cluster.costs
        return self._adopt(votes, selection, path, dynamics, stop, cluster.overview)

    def _adopt(
        self,
        votes: Comparisons | Parts,
        selection: Selection | None,
        path: RegularizationPath,
        dynamics: Dynamics,
        stop: float,
        overview: Overview | None = None,
    ) -> Self:
        """Take over what was fitted."""
        self._know(votes, overview)
        self.selection_, self.path_ = selection, path
        self.link_ = link_named(self.link)
        self.time_, self.nu_, self.kappa_ = stop, dynamics.nu, dynamics.kappa
        self.parameters_ = path.at(stop)
        self.consensus_: Floats = self.parameters_.consensus[:-1]
        self.threshold_ = float(self.parameters_.consensus[-1])
        self.entry_times_ = path.entry_times
        self.left_consensus_ = self.users_[path.support_at(stop)].tolist()
        self._abnormality: dict[float, Abnormality] = {}
        self._drawn: Floats | None = None
        return self

    def _cross_validate(
        self,
        votes: Comparisons,
        candidates: list[Dynamics],
        folds: ArrayLike | None,
        reporter: Reporter,
        kept: Checkpoints | None,
    ) -> tuple[Selection, RegularizationPath]:
        """Choose the time and, among several candidates, nu and kappa; follow the whole path."""
        n_threads = self._threads()
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
            link, n_threads = link_named(self.link), self._threads()
            return default_times(votes, link, dynamics, n_threads=n_threads, backend=self.backend)
        return np.asarray(self.times, dtype=np.float64)

    def _identity(self, votes: Overview, folds: ArrayLike | None = None) -> dict[str, Any]:
        """Return all that decides the result."""
        if self.random_state is None:
            raise ValueError("checkpoints need a random_state, or the folds would be others.")
        settings = {
            name: np.asarray(value).tolist() if name in ("nu", "kappa", "times") else value
            for name, value in self.get_params().items()
            if name not in ("n_jobs", "snapshots")
        }
        settings |= {"link": link_named(self.link).name, "solver": repr(self._scheme())}
        given = None if folds is None else np.asarray(folds).tolist()
        return {"votes": votes.fingerprint, "settings": settings, "folds": given}

    def _scheme(self) -> Scheme:
        if isinstance(self.solver, str) and self.solver in SOLVERS:
            return SOLVERS[self.solver]()
        if isinstance(self.solver, str | type) or not hasattr(self.solver, "prepare"):
            raise ValueError(
                f"solver {self.solver!r} is not one of {', '.join(SOLVERS)}, nor a scheme."
            )
        return self.solver

    def _threads(self) -> int:
        if self.n_jobs is None or self.n_jobs == -1:
            return available_threads()
        if self.n_jobs < 1:
            raise ValueError(f"n_jobs is {self.n_jobs}; it must be at least 1, or -1 for all.")
        return int(self.n_jobs)

    def _candidates(self) -> list[Dynamics]:
        nus, kappas = np.atleast_1d(self.nu), np.atleast_1d(self.kappa)
        if nus.size == 0 or kappas.size == 0:
            raise ValueError("nu and kappa need at least one value each.")
        return [Dynamics(float(n), float(k), self.delta) for n, k in product(nus, kappas)]

    # --- rankings --------------------------------------------------------------------------

    def scores(self, user: Any = None) -> Floats:
        """Return a user's score for every one of ``items_``; the consensus without a user."""
        index = self._user_index(user)
        return self.parameters_.scores_of(index)

    def threshold(self, user: Any = None) -> float:
        """Return a user's tie threshold; the consensus's without a user."""
        index = self._user_index(user)
        return self.parameters_.threshold_of(index)

    def ranking(self, user: Any = None) -> Ranking:
        """Return the partial ranking of the consensus, or of one user, in tiers."""
        index = self._user_index(user)
        everywhere = np.ones(len(self.items_), dtype=np.bool_)
        return Ranking.of(
            self.items_,
            self.parameters_.scores_of(index),
            self.parameters_.threshold_of(index),
            everywhere if index < 0 else self.parameters_.compared_by(index),
        )

    def consensus_intervals(self) -> tuple[Floats, Floats]:
        """Return between what scores of the consensus lie, in 95 % of draws of other users.

        Users are drawn anew with replacement. The spread is that of the plain maximum likelihood,
        put around the scores of the path.
        """
        check_is_fitted(self)
        drawn = self._drawn_anew()[:, :-1]
        low, high = np.quantile(drawn - np.median(drawn, axis=0), (0.025, 0.975), axis=0)
        return self.consensus_ + low, self.consensus_ + high

    def _drawn_anew(self) -> Floats:
        """Return the consensus of many other draws of users; found on first use."""
        if self._drawn is None:
            seed = self.random_state or 0
            self._drawn = bootstrap_consensus(
                self.votes_, self.link_, N_BOOTSTRAP, seed, self.delta
            )
        return self._drawn

    def relation(self, a: Any, b: Any, user: Any = None) -> Relation:
        """Say how item a stands to item b for a user: better, tied or worse."""
        first, second = self._known_items([a, b])
        return rankings.relation(self.scores(user), self.threshold(user), first, second)

    def recommend(
        self, user: Any = None, *, same_as: Any = None, better_than: Any = None
    ) -> list[Any]:
        """Recommend items as good as one, or slightly better than one; nearest first."""
        if (same_as is None) == (better_than is None):
            raise ValueError("give exactly one of same_as and better_than.")
        choose = rankings.as_good_as if better_than is None else rankings.better_than
        (item,) = self._known_items([same_as if better_than is None else better_than])
        found = choose(self.scores(user), self.threshold(user), item)
        return list(self.items_[found].tolist())

    # --- users -----------------------------------------------------------------------------

    @property
    def abnormal_users_(self) -> list[Any]:
        """The users who do not vote like the consensus, flagged at ``fdr``, in order of entry."""
        check_is_fitted(self)
        flagged = self.abnormality().flagged
        order = np.lexsort((-self.distance_to_consensus(), self.entry_times_))
        return list(self.users_[order[flagged[order]]].tolist())

    def abnormality(
        self,
        fdr: float | None = None,
        progress: Callable[[float], None] | None = None,
        client: Client | None = None,
    ) -> Abnormality:
        """Test every user, and say how and how carefully they vote; found on first use.

        Parameters
        ----------
        fdr
            False discovery rate, where it is not to be the model's own.
        progress
            Called now and then with the share of the work done.
        client
            Of Dask: users are tested on its workers, which get the votes as for a fit.
        """
        check_is_fitted(self)
        fdr = self.fdr if fdr is None else fdr
        if fdr not in self._abnormality:
            check_fdr(fdr)
            common: dict[str, Any] = {
                "fdr": fdr, "seed": self.random_state or 0, "delta": self.delta,
                "progress": progress,
            }  # fmt: skip
            if client is None:
                found = find_abnormal(
                    self.votes_, self.link_, self.parameters_.consensus,
                    n_threads=self._threads(), **common,
                )  # fmt: skip
            else:
                found = self._abnormality_on(client, common)
            self._abnormality[fdr] = found
        return self._abnormality[fdr]

    def _abnormality_on(self, client: Client, common: dict[str, Any]) -> Abnormality:
        from isplitlbi.runtime.dask import abnormality_on, cluster_of

        cluster = cluster_of(client, self._votes, again=True)
        self._refuse_others(cluster.overview)
        return abnormality_on(cluster, self.link_, self.parameters_.consensus, **common)

    def telling_votes(self, user: Any, most: int = 10) -> list[TellingVote]:
        """Return the votes of a user that the consensus least expected, the least likely first."""
        index = self._user_index(user)
        if index < 0:
            raise InvalidVotes(f"user {show(user)} has no votes in this model.")
        own = self.votes_.subset(self.votes_.user == index)
        found = find_telling_votes(own, self.link_, self.abnormality().consensus, most)
        return [
            TellingVote(self.items_[left], self.items_[right], *vote)
            for _, left, right, *vote in zip(*(column.tolist() for column in found), strict=True)
        ]

    def effect_of_leaving_out(
        self, kinds: Sequence[str] | None = None, fdr: float | None = None
    ) -> Effect:
        """Compare the consensus with and without the users who are flagged.

        Parameters
        ----------
        kinds
            Only those of some kinds, such as `isplitlbi.abnormal.UNTRUSTWORTHY`.
        fdr
            False discovery rate, where it is not to be the model's own.
        """
        found = self.abnormality(fdr)
        of_kind = [kinds is None or kind in kinds for kind in found.kind]
        return find_effect(
            self.votes_,
            self.link_,
            found.flagged & of_kind,
            delta=self.delta,
            drawn=self._drawn_anew(),
        )

    def distance_to_consensus(self) -> Floats:
        """Return the Euclidean distance of every user's scores to the consensus."""
        check_is_fitted(self)
        return self.parameters_.distance_to_consensus()

    def decompose(self, noise_level: float = 2.0) -> Decomposition:
        """Split the users' deviations into abnormal, personal and noise parts (Sec. 2.3).

        An entry counts as personal above ``noise_level`` standard deviations of what noise alone
        would give.
        """
        check_is_fitted(self)
        out = self.path_.support_at(self.time_)
        return rankings.decompose(
            self.votes_, self.parameters_, out, self.link_, self.nu_, noise_level
        )
