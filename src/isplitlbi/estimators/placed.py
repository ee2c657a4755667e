"""People who came after a fit: everything that a fitted user has, and nothing is fitted again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.features import Features
from isplitlbi.data.frames import Tabular
from isplitlbi.data.layout import Shown
from isplitlbi.data.vocabulary import Vocabulary, as_series, first_of, show
from isplitlbi.errors import InvalidVotes
from isplitlbi.estimators.cards import OwnScores, UserCard, own_scores_table
from isplitlbi.estimators.certainty import Seen
from isplitlbi.estimators.contract import clone
from isplitlbi.estimators.inputs import check_choice, threads_of
from isplitlbi.estimators.lists import Recommendations, UserCards
from isplitlbi.estimators.tested import TestedUsers
from isplitlbi.fitting import fit_beside
from isplitlbi.lazy import pl
from isplitlbi.model.population import VOTES_OF_OTHERS, rows_of
from isplitlbi.model.ranking import Ranking, Relation
from isplitlbi.runtime.local import Local
from isplitlbi.selection import Rule
from isplitlbi.typing import Floats, Indices, Labels

if TYPE_CHECKING:
    from isplitlbi.estimators.isplitlbi import ISplitLBI

__all__ = ["PlacedUsers", "beside", "place"]

PEOPLE_AT_ONCE = 1 << 12  # who are predicted together


def place(
    model: ISplitLBI,
    votes: Comparisons,
    users: Sequence[Any] | None,
    with_tests: bool,
    progress: Callable[[float], None] | None,
) -> PlacedUsers:
    """Place everybody who has given some of the votes; see `ISplitLBI.place`."""
    votes = beside(model, votes)
    if users is not None:
        users = [users] if isinstance(users, str | int) else users
        everybody = Vocabulary.merged(
            Vocabulary(votes.users, "user"), Vocabulary.of(as_series(users, "user", "users"))
        )
        votes = votes.renumbered(everybody, Vocabulary(votes.items, "item"))
    local = Local(votes, threads_of(model.n_jobs), model.backend)
    fitted = fit_beside(model.fitted_, model.scheme, local)
    people = clone(model).adopt(fitted, labels=model.outcome_labels_)
    people._knows_others = False  # the users of the model do
    return PlacedUsers(model, people, with_tests=with_tests, progress=progress)


def beside(model: ISplitLBI, votes: Comparisons) -> Comparisons:
    """Return votes with the items of a model, in its units; refuse what has no place.

    The units are those of features and of weights: newcomers' weights are taken to have been given
    as those of the model were.

    Users stay who they are: they are placed by these votes alone.
    """
    if votes.is_anonymous:
        raise InvalidVotes("these votes have no users, so there is nobody to place.")
    items = Vocabulary(model.items_, "item")
    unknown = np.flatnonzero(items.encode(votes.items) < 0)
    if len(unknown):
        raise InvalidVotes(
            *items.unknown(votes.items[unknown[0]], "this model").args,
            " Nobody can be placed by votes on new items: update the model with these votes.",
        )
    if not model.terms_.has_ties and (row := first_of(votes.outcome == 0)):
        user = show(votes.users[votes.user[row - 1]])
        raise InvalidVotes(
            f"these votes have ties, such as one of user {user}, and the votes of this model have "
            "none. Leave out the ties, or update the model with these votes."
        )
    if votes.weight is not None and model.has_votes() and model.votes().weight is None:
        raise InvalidVotes(
            "these votes have weights, and those of this model have none, so that nobody knows "
            "their unit. Leave out the weights."
        )
    features, units = None, model.summary_.units
    if units is not None:
        given = (
            {}
            if votes.features is None
            else dict(zip(votes.features.names, votes.features.columns, strict=True))
        )
        if missing := [name for name in units.names if name not in given]:
            raise InvalidVotes(
                f"these votes have no feature {missing[0]}, which this model knows. Give it as for "
                "the fit."
            )
        columns = np.column_stack([given[name] for name in units.names])
        features = Features(units.names, columns, units.scale)
    known = votes.renumbered(Vocabulary(votes.users, "user"), items)
    return replace(known.in_weight_unit(model.summary_.weight_unit), features=features)


class PlacedUsers(Tabular):
    """People placed beside a fitted model, each by their own votes: see `ISplitLBI.place`.

    Whatever the model says of its own users, this says of those who were placed, under the same
    names. Nobody depends on who else was placed.

    Attributes
    ----------
    users_ : array of ids, sorted
    entry_times_ : (n_users,)
        When each would have left the consensus; infinite for who would not.
    abnormality_ : TestedUsers
        What the tests say of everybody, among the users of the model; where they were asked for.
    abnormal_users_, unreliable_users_, different_users_ : list of ids
    """

    abnormality_: TestedUsers

    def __init__(
        self,
        study: ISplitLBI,
        people: ISplitLBI,
        *,
        with_tests: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._study, self._people = study, people
        people.call, self.frame_kind = study.call, study._frame_kind
        self.users_: Labels = people.users_
        self.entry_times_: Floats = people.entry_times_
        if with_tests:
            from isplitlbi.abnormal import find_abnormal_beside

            people._remember(
                find_abnormal_beside(
                    people.votes(), people.link_, study.test_users(),
                    seed=study.random_state or 0, delta=study.delta,
                    runtime=Local(people.votes(), threads_of(study.n_jobs)), progress=progress,
                )
            )  # fmt: skip
            for name in (
                "abnormality_",
                "abnormal_users_",
                "unreliable_users_",
                "different_users_",
            ):
                setattr(self, name, getattr(people, name))

    def __repr__(self) -> str:
        """Say who was placed."""
        n_votes = self._people.summary_.n_votes
        return f"PlacedUsers: {len(self.users_)} users by {n_votes} votes"

    # --- one person --------------------------------------------------------------------------

    def scores(self, user: Any) -> Floats:
        """Return a user's score for every item of the model."""
        return self._people.scores(user)

    def threshold(self, user: Any) -> float | None:
        """Return a user's tie threshold; None without ties."""
        return self._people.threshold(user)

    def ranking(self, user: Any) -> Ranking:
        """Return a user's own partial ranking, in tiers."""
        return self._people.ranking(user)

    def own_scores(self, user: Any) -> OwnScores:
        """Return the scores of a user with 95 % intervals, and which differ from the consensus."""
        self._know_how_surely()
        return self._people.own_scores(user)

    def user_card(self, user: Any) -> UserCard:
        """Say in which ways a user differs from the group, with 95 % intervals and in words."""
        self._know_how_surely()
        return self._people.user_card(user)

    def user_cards(self) -> UserCards:
        """Write the cards of all who have votes."""
        self._know_how_surely()
        return self._people.user_cards()

    def relation(self, a: Any, b: Any, user: Any) -> Relation:
        """Say how item a stands to item b for a user: better, tied or worse."""
        return self._people.relation(a, b, user)

    def recommend(
        self, user: Any, *, same_as: Any = None, better_than: Any = None
    ) -> Recommendations:
        """Recommend items as good as one, or slightly better than one; nearest first."""
        return self._people.recommend(user, same_as=same_as, better_than=better_than)

    def predict(self, X: Any, rule: Rule | None = None) -> NDArray[Any]:
        """Predict the outcome of each (user, left, right), as the model does.

        Who was not placed is predicted by the model: as one of its users, or as somebody unknown.
        """
        rule = self._study.rule if rule is None else rule
        check_choice("rule", rule)
        if rule == "map":
            likeliest = np.argmax(self.predict_log_proba(X), axis=1)
            return np.asarray(self._study.classes_[likeliest])
        placed, own = self._places(X) >= 0, self._people.predict(X, rule)
        return own if placed.all() else np.where(placed, own, self._study.predict(X, rule))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, in the order of ``classes_`` of the model.

        Of a person with n votes, that is n parts by the person's own scores and ten parts by the
        users of the model, of whom those count for more who would have voted like the person.
        Without votes, it is the average over users that `ISplitLBI.predict_proba` has for somebody
        unknown.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return their logarithms, which stay finite where the probabilities vanish."""
        user, shown = self._people.asked(X)
        outcomes = self._study.outcome_labels_.outcomes
        found = np.empty((len(user), len(outcomes)))
        columns = [1 - outcome for outcome in outcomes]
        placed = np.unique(user[user >= 0])
        for begin in range(0, len(placed), PEOPLE_AT_ONCE):
            some = placed[begin : begin + PEOPLE_AT_ONCE]
            rows = np.flatnonzero(np.isin(user, some))
            found[rows] = self._of_people(some, user[rows], rows_of(shown, rows))[:, columns]
        if len(rows := np.flatnonzero(user < 0)):
            user, shown = self._study.asked(X)
            others = self._study.log_probabilities(user[rows], rows_of(shown, rows))
            found[rows] = others[:, columns]
        return found

    def _of_people(self, people: Indices, user: Indices, shown: Shown) -> Floats:
        """Return log-probabilities of left, tie and right for some of the people placed."""
        population = self._study.population()
        own = self._people.log_probabilities(user, shown)
        if population is None:
            return own
        votes = self._people.votes()
        log_weights = population.log_weights_after(votes, people)
        of_others = population.log_probabilities(shown, np.searchsorted(people, user), log_weights)
        n_votes = votes.votes_per_user
        if votes.weight is not None:
            n_votes = np.bincount(votes.user, votes.weight, votes.n_users)
        share = (n_votes / (n_votes + VOTES_OF_OTHERS))[user, None]
        with np.errstate(divide="ignore"):  # where nothing is a person's own
            return np.asarray(np.logaddexp(np.log(share) + own, np.log1p(-share) + of_others))

    def _places(self, X: Any) -> Any:
        """Return which of the placed people each pair is about; -1 for others."""
        return self._people._indices(X)[0]

    # --- everybody ---------------------------------------------------------------------------

    def _know_how_surely(self) -> None:
        """Take over how surely the model knows its consensus; its votes are looked at once."""
        if self._people._certainty is None:
            of_study = self._study.certainty()
            seen = Seen.of(self._people.votes(), self._people.fitted_)
            self._people._certainty = of_study.beside(seen)

    def _table(self) -> pl.DataFrame:
        """Return one row per user, in order of ``users_``.

        First there are the columns of ``model.abnormality_`` and of ``model.user_cards()``. The
        rank of the entry is that among the users of the model. Then there are the columns of
        ``model.own_scores(user)``, of which every cell is a list, the best item first.
        """
        people, study = self._people, self._study
        table = people.everybody().table(getattr(people, "abnormality_", None))
        order = pl.DataFrame({"user": pl.Series(self.users_.tolist(), dtype=table["user"].dtype)})
        table = order.join(table, on="user", how="left", maintain_order="left")
        entry = table["entry_time"].to_numpy()
        rank = 1 + np.searchsorted(np.sort(study.entry_times_), entry)
        ranks = pl.Series(rank).set(table["entry_time"].is_null(), None)
        table = table.with_columns(ranks.alias("entry_rank"))
        if study.has_votes():
            self._know_how_surely()
            if study.terms_.ties != "bounded":
                cards: pl.DataFrame = self.user_cards().to_frame("polars")
                table = table.join(cards, on="user", how="left", maintain_order="left")
        rankings = self._rankings()
        # Users and items both have a tie factor.
        both = {name: f"item_{name}" for name in set(rankings.columns) & set(table.columns)}
        return pl.concat([table, rankings.rename(both)], how="horizontal")

    def _rankings(self) -> pl.DataFrame:
        rows = []
        for user in self.users_.tolist():
            found = self.own_scores(user) if self._study.has_votes() else None
            own = own_scores_table(self.ranking(user), found)
            rows.append({name: own[name].to_list() for name in own.columns})
        kinds = {name: pl.List(kind) for name, kind in own.schema.items()}
        return pl.DataFrame(rows, schema=kinds)
