"""What the report says in words and tables: the page as it is read without its script."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

import isplitlbi
from isplitlbi.abnormal import DIFFERENT, KINDS, UNRELIABLE
from isplitlbi.data.vocabulary import counted
from isplitlbi.diagnostics import individual
from isplitlbi.diagnostics.check import check
from isplitlbi.diagnostics.findings import Diagnosis
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.model.terms import Side
from isplitlbi.nouns import Nouns
from isplitlbi.output.report.agreement import agreement_of
from isplitlbi.output.report.boards import Board, boards_of, is_large, rows_of
from isplitlbi.output.report.groups import groups_of
from isplitlbi.output.report.ids import plain_id, shown_id
from isplitlbi.output.report.parts import parts_of
from isplitlbi.output.report.people import Cards, features_of, people_of
from isplitlbi.output.report.plan import plan_of
from isplitlbi.output.report.study import times_shown
from isplitlbi.output.tables import users_table
from isplitlbi.output.words import (
    NO_TIES,
    chance_in_words,
    effect_in_words,
    held_out_in_words,
    meaning_of_lists,
    side_in_words,
)
from isplitlbi.selection import SCORINGS

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["tell"]

NAMED = 3  # items in a sentence
MOST_LISTED = 200  # users of a list; the table of all users has the others
MOST_RANKED = 2_000  # items of the leaderboard

LIST_TITLES = {UNRELIABLE: "Whom not to trust", DIFFERENT: "Who only has another taste"}
ADVICE = {
    UNRELIABLE: "Look at their votes, and leave them out if you agree with the reason.",
    DIFFERENT: "Another taste is not a fault: keep them, unless you only need that of the others.",
}

# Settings that decide nothing where there are no users to follow and to test.
OF_PATHS = ("nu", "kappa", "time", "n_folds", "scoring", "fdr", "solver", "delta")

LIBRARIES = ("numpy", "scipy", "numba", "polars", "scikit-learn")
PAPER = (
    "Q. Xu, X. Sun, Z. Yang, X. Cao, Q. Huang and Y. Yao. iSplit LBI: Individualized Partial "
    "Ranking with Ties via Split LBI. Advances in Neural Information Processing Systems 32, 2019."
)
PROGRAM = f"isplitlbi {isplitlbi.__version__}: individualized partial ranking with ties."
SCORE_NAMES = {
    "log_loss": "log-loss",
    "micro_f1": "accuracy (micro-F1)",
    "macro_f1": "macro-F1",
}


def tell(
    model: ScoreEstimator, cards: Cards, progress: Callable[[float, str], None]
) -> dict[str, Any]:
    """Return all that the template shows, by the names it uses."""
    of_users = _of_users(model, progress)
    progress(0.3, "looking through the votes")
    health = check(model.votes(), sides="known" if model.has_sides else "unknown")
    boards = boards_of(model, lambda share, what: progress(0.4 + 0.45 * share, what))
    agreement = agreement_of(model, lambda share, what: progress(0.85 + 0.05 * share, what))
    progress(0.9, "writing")
    nouns, verdict = model.nouns, _verdict(health, model.nouns)
    return {
        **of_users,
        "estimator": type(model).__name__,
        "about": _about(model),
        "answer": _answer(model, boards, verdict),
        "health": {
            "votes_per_user": [
                f"{health.summary[f'votes_per_user_{what}']:g}" for what in ("min", "median", "max")
            ]
            if model.has_users
            else [],
            "is_serious": health.is_serious,
            "findings": [
                (each.severity.name.lower(), each.in_words(nouns))
                for each in health.findings
                if each.code != individual.CODE  # it is the last sentence of the answer
            ],
        },
        "boards": [
            {
                "name": each.name,
                "label": each.label,
                "n_users": each.n_users,
                "rows": rows[:MOST_RANKED],
                "change": each.change,
            }
            for each, rows in zip(boards, rows_of(boards), strict=True)
        ],
        "is_large": is_large(model),
        "n_more_items": max(len(model.items_) - MOST_RANKED, 0),
        "tier_words": _tier_words(model),
        "has_ties": model.terms_.has_ties,
        "has_habits": model.terms_.has_habits,
        "list_titles": LIST_TITLES,
        "agreement": agreement,
        "people": people_of(model, cards),
        "parts": parts_of(model),
        "plan": plan_of(model),
        "features": features_of(model),
        "has_users": model.has_users,
        "common": _common(model),
        "n_users": len(model.users_),
        "n_times": len(times_shown(model)),
        **_prediction(model),
        "verdict": verdict,
        "settings": _settings(model),
        "citation": [PAPER, PROGRAM],
    }


def _of_users(model: ScoreEstimator, progress: Callable[[float, str], None]) -> dict[str, Any]:
    """Return what is told of users, once they are tested; of an anonymous crowd, nothing."""
    if not model.has_users:
        return {"lists": {}, "chance": "", "n_flagged": 0, "kinds": [], "groups": None}
    progress(0.1, "testing users")
    found = model.test_users(progress=lambda share: progress(0.1 + 0.2 * share, "testing users"))
    kinds = Counter(found.kind)
    return {
        "lists": _lists(model),
        "chance": chance_in_words(found.fdr),
        "n_flagged": len(model.abnormal_users_),
        "kinds": [(kind, kinds[kind]) for kind in KINDS if kinds[kind]],
        "groups": groups_of(model),
    }


def _common(model: ScoreEstimator) -> str:
    """Say what else an anonymous crowd has in common; elsewhere, the section on people does."""
    if model.has_users or Side.name not in model.terms_.names:
        return ""
    return _capital(side_in_words(model.side_))


def _verdict(health: Diagnosis, nouns: Nouns) -> str:
    """Return whether individual rankings help, as `check` says it; nothing of a single user."""
    said = (each.in_words(nouns) for each in health.findings if each.code == individual.CODE)
    return next(said, "")


def _about(model: ScoreEstimator) -> list[str]:
    """Say from which file the votes are, and when they were fitted."""
    file, date = model.votes().file, model.fitted_.date
    told = [f"votes of {plain_id(file)}"] if file else []
    told += [f"fitted on {date}"] if date else []
    return [*told, f"isplitlbi {isplitlbi.__version__}"]


# --- the answer ----------------------------------------------------------------------------


def _answer(model: ScoreEstimator, boards: list[Board], verdict: str) -> list[Markup]:
    """Say what was asked, what came out, whom not to trust, how well it predicts."""
    from markupsafe import Markup

    votes = model.votes()
    n_voters = int(np.count_nonzero(votes.votes_per_user))
    who = model.nouns.n_users(n_voters) if model.has_users else "An anonymous crowd"
    asked = Markup(
        f"{who} compared {model.nouns.n_items(votes.n_items)}, two at a "
        f"time, in {counted(votes.n_votes, 'vote')}; {_ties_in_words(model)}."
    )
    nouns = model.nouns
    answer = [asked, _ranking_in_words(boards[0].board, nouns)]
    if model.has_users:
        answer.append(_trust_in_words(model, boards))
    return [*answer, Markup.escape(verdict)] if verdict else answer


def _ranking_in_words(board: Leaderboard, nouns: Nouns) -> Markup:
    """Say which item is first and how sure that is, and which are on top and at the bottom."""
    from markupsafe import Markup

    items = board.items[: board.n_ranked].tolist()
    n_others = int(board.rank_high[0]) - 1
    others = "one other" if n_others == 1 else f"{n_others:,} others"
    sure = f"the votes cannot tell it from {others} yet" if n_others else "the votes are clear"
    first = Markup("{} is first; {}. ").format(_enumerated(items[:1]), sure)
    if board.tier is None:
        return first + Markup("{} is last.").format(_enumerated(items[-1:]))
    tiers = board.tier[: board.n_ranked].tolist()
    if tiers[-1] == 1:
        return first + Markup(f"All {nouns.items} are in one tier: people call them equal.")
    top, bottom = (
        _enumerated([item for item, tier in zip(items, tiers, strict=True) if tier == each])
        for each in (1, tiers[-1])
    )
    ends = Markup("There are {} tiers, with {} on top and {} at the bottom.")
    return first + ends.format(tiers[-1], top, bottom)


def _trust_in_words(model: ScoreEstimator, boards: list[Board]) -> Markup:
    """Say how many users not to trust and what to do; then how many have another taste."""
    from markupsafe import Markup

    n_users, n_unreliable = len(model.users_), len(model.unreliable_users_)
    n_different = len(model.different_users_)
    taste = f"<strong>{n_different:,}</strong> only {'has' if n_different == 1 else 'have'}"
    taste += " another taste"
    if not n_unreliable and not n_different:
        return Markup("<strong>Nobody</strong> is unreliable or different beyond chance.")
    if not n_unreliable:
        return Markup(f"<strong>Nobody</strong> is unreliable beyond chance; {taste}.")
    kinds = _kinds_in_words(model, UNRELIABLE)
    who = (
        f"<strong>{n_unreliable:,} of {model.nouns.n_users(n_users)}</strong> should not be "
        f"trusted ({kinds}): <a href='#unreliable'>look at their votes</a>"
    )
    without = next((each for each in boards if each.name == "without-unreliable"), None)
    if is_large(model):
        return Markup(f"{who} and fit the others again without them. {taste}.")
    if without is None:
        return Markup(f"{who}; nobody is left to make a ranking without them. {taste}.")
    advice = "<a href='#without-unreliable'>read the ranking without them</a>"
    return Markup(f"{who} and {advice}. {without.change} {taste}.")


def _kinds_in_words(model: ScoreEstimator, name: str) -> str:
    """Say how many users of a list are of which kinds."""
    found = model.abnormality_
    kinds = Counter(kind for kind, on in zip(found.kind, found.list, strict=True) if on == name)
    return ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])


def _ties_in_words(model: ScoreEstimator) -> str:
    votes = model.votes()
    if not model.terms_.has_ties:
        return "every vote names a winner"
    return f"{100 * np.mean(votes.outcome == 0):.1f} % of the votes are ties"


def _tier_words(model: ScoreEstimator) -> str:
    """Say what a tier is, or why there are none."""
    if model.threshold_ is None:
        return f"{NO_TIES}, and there are no tiers."
    habits = ", multiplied by the tie factors of both" if model.terms_.has_habits else ""
    return (
        "people call these equal. Their scores differ from that of the first by at most the tie "
        f"threshold ({model.threshold_:.2f} for everybody){habits}."
    )


def _enumerated(items: Sequence[Any]) -> Markup:
    from markupsafe import Markup

    names = [Markup("<strong>{}</strong>").format(shown_id(item)) for item in items[:NAMED]]
    more = len(items) - len(names)
    if more:
        names.append(Markup(f"{more} more"))
    if len(names) == 1:
        return names[0]
    return Markup(", ").join(names[:-1]) + Markup(" and ") + names[-1]


# --- users ---------------------------------------------------------------------------------


def _lists(model: ScoreEstimator) -> dict[str, dict[str, Any]]:
    """Return both lists of users, row by row; those with the largest effect first."""
    table = users_table(model).to_dicts()
    found = {}
    for name in (UNRELIABLE, DIFFERENT):
        rows = [
            {
                "place": place,
                "user": row["user"],
                "kind": row["kind"],
                "colour": KINDS[row["kind"]].colour,
                "votes": f"{row['votes']:,}",
                "quality": f"{row['quality']:.2f}",
                "effect": effect_in_words(row["effect"], row["effect_low"], row["effect_high"]),
                "explanation": _capital(row["explanation"]),
            }
            for place, row in enumerate(table)
            if row["list"] == name
        ]
        kinds = _kinds_in_words(model, name)
        found[name] = {
            "words": meaning_of_lists(model.nouns)[name],
            "advice": ADVICE[name],
            "count": len(rows),
            "rows": rows[:MOST_LISTED],
            "kinds": kinds,
        }
    return found


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}."


# --- how well it predicts, and how to get the same again -------------------------------------


def _prediction(model: ScoreEstimator) -> dict[str, Any]:
    """Return what is known of predictions of held-out votes."""
    selection = model.selection_
    return {
        "n_folds": None if selection is None else len(selection.chosen.fold_weight),
        "scores": _scores(model),
        "sureness": _sureness(model),
    }


def _scores(model: ScoreEstimator) -> list[dict[str, Any]]:
    """Return held-out scores of own rankings and of the consensus alone, each at its time."""
    if model.selection_ is None or model.entry_times_.min() <= model.selection_.chosen.times[0]:
        return []
    curves = model.selection_.chosen
    at = int(np.argmin(np.abs(curves.times - model.selection_.time)))
    rows = []
    for scoring in SCORINGS:
        own = curves.scores[model.selection_.estimate][scoring][:, at]
        # At the first time nobody has left: what only those add who left is nothing.
        alone = curves.scores["sparse"][scoring][:, 0]
        rows.append(
            {
                "name": SCORE_NAMES[scoring],
                "own": f"{np.average(own, weights=curves.fold_weight):.3f}",
                "consensus": f"{np.average(alone, weights=curves.fold_weight):.3f}",
            }
        )
    return rows


def _sureness(model: ScoreEstimator) -> list[str]:
    """Say how sure predictions of held-out votes are, and what is wrong with these."""
    selection = model.selection_
    if selection is None:
        return []
    return [held_out_in_words(selection), *selection.warnings(model.nouns)]


def _settings(model: ScoreEstimator) -> list[tuple[str, str]]:
    """Return what one needs to get the same again."""
    chosen = _chosen(model)
    unimportant: tuple[str, ...] = (
        "times", "n_jobs", "snapshots", "backend", "random_state", "with_tests", "call",
    )  # fmt: skip
    if not model.has_users:
        unimportant += OF_PATHS
    given = {
        name: value
        for name, value in model.get_params().items()
        if name not in (*chosen, *unimportant)
    }
    given["link"] = model.link_.name
    given["terms"] = _terms(model)
    given.pop("scales", None)
    if model.path_ is not None:
        along, was_given = model.path_.times, model.get_params().get("times") is not None
        given["times"] = f"{along[0]:.3g} to {along[-1]:.3g}" + (", given" if was_given else "")
        given["solver"] = model.path_.settings["scheme"]
    return [
        ("estimator", type(model).__name__),
        *((name, f"{value:.6g}") for name, value in chosen.items()),
        *((name, str(value)) for name, value in given.items()),
        ("seed", str(model.random_state)),
        ("fingerprint of the votes", model.summary_.fingerprint),
        ("isplitlbi", isplitlbi.__version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in LIBRARIES),
    ]


def _chosen(model: ScoreEstimator) -> dict[str, float]:
    """Return the numbers that were chosen, by name."""
    chosen, fitted = dict(model.fitted_.chosen), model.fitted_
    if fitted.dynamics is not None and fitted.time is not None:
        chosen |= {"time": fitted.time, "nu": fitted.dynamics.nu, "kappa": fitted.dynamics.kappa}
    return chosen


def _terms(model: ScoreEstimator) -> str:
    """Return in which ways users may differ, and how large each is beside taste."""
    terms = model.terms_
    if terms.ties == "bounded":
        return "paper"
    if not model.has_users:
        sizes = ["scores", *terms.names[1:]]
        return ", ".join(
            [*sizes, *([f"tie habits of {model.nouns.items}"] if terms.has_habits else [])]
        )
    sizes = [
        f"{name} {scale:.3g}"
        for name, scale in zip(terms.names, terms.scales, strict=True)
        if scale > 0.0
    ]
    return ", ".join(
        [*sizes, *([f"tie habits of {model.nouns.items}"] if terms.has_habits else [])]
    )
