"""What the report says in words and tables: the page as it is read without its script."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

import isplitlbi
from isplitlbi.abnormal import KINDS, LISTS, UNRELIABLE
from isplitlbi.data.vocabulary import counted
from isplitlbi.diagnostics import individual
from isplitlbi.diagnostics.check import check
from isplitlbi.diagnostics.findings import Diagnosis
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.nouns import Nouns, capitalized
from isplitlbi.output.report.ids import shown_id
from isplitlbi.output.report.people import Cards, features_of, people_of
from isplitlbi.output.tables import as_polars
from isplitlbi.output.words import (
    NO_TIES,
    chance_in_words,
    factor,
    lists_in_words,
    meaning_of_lists,
)
from isplitlbi.selection import SCORINGS
from isplitlbi.typing import Indices

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["tell"]

NAMED = 3  # items in a sentence

LIBRARIES = ("numpy", "scipy", "numba", "polars", "scikit-learn")
PAPER = (
    "Q. Xu, X. Sun, Z. Yang, X. Cao, Q. Huang and Y. Yao. iSplit LBI: Individualized Partial "
    "Ranking with Ties via Split LBI. Advances in Neural Information Processing Systems 32, 2019."
)
SCORE_NAMES = {"log_loss": "log-loss", "micro_f1": "micro-F1", "macro_f1": "macro-F1"}


def tell(
    model: ScoreEstimator, cards: Cards, progress: Callable[[float, str], None]
) -> dict[str, Any]:
    """Return all that the template shows, by the names it uses."""
    progress(0.0, "testing users")
    found = model.test_users(progress=lambda share: progress(0.3 * share, "testing users"))
    progress(0.3, "looking through the votes")
    health = check(model.votes())
    progress(0.4, "drawing other users")
    ladder = _ladder(model)
    progress(0.8, "leaving users out")
    effect = _effect(model)
    progress(0.9, "writing")
    nouns = model.nouns
    verdict = _verdict(health, nouns)
    kinds = Counter(found.kind)
    return {
        "estimator": type(model).__name__,
        "answer": _answer(model, verdict),
        "health": {
            "votes_per_user": [
                f"{health.summary[f'votes_per_user_{what}']:g}" for what in ("min", "median", "max")
            ],
            "is_serious": health.is_serious,
            "findings": [
                (each.severity.name.lower(), each.in_words(nouns))
                for each in health.findings
                if each.code != individual.CODE  # it is the last sentence of the answer
            ],
        },
        "ladder": ladder,
        "tie_words": _tie_words(model),
        "has_ties": model.terms_.has_ties,
        "has_habits": model.terms_.has_habits,
        "people": people_of(model, cards),
        "features": features_of(model),
        "n_users": len(model.users_),
        "n_flagged": len(model.abnormal_users_),
        "lists": [
            (name, int(found.on(name).sum()), words)
            for name, words in meaning_of_lists(nouns).items()
        ],
        "users_in_words": lists_in_words(
            len(model.unreliable_users_), len(model.different_users_), len(model.users_), nouns
        ),
        "chance": chance_in_words(found.fdr),
        "n_times": 0 if model.path_ is None else len(model.path_.times),
        "kinds": [(kind, kinds[kind]) for kind in KINDS if kinds[kind]],
        "effect": effect,
        "verdict": verdict,
        "scores": _scores(model),
        "n_folds": None if model.selection_ is None else len(model.selection_.chosen.fold_weight),
        "settings": _settings(model),
        "citation": [
            PAPER,
            f"isplitlbi {isplitlbi.__version__}: individualized partial ranking with ties.",
        ],
    }


def _verdict(health: Diagnosis, nouns: Nouns) -> str:
    """Return whether individual rankings help, as `check` says it; nothing of a single user."""
    said = (each.in_words(nouns) for each in health.findings if each.code == individual.CODE)
    return next(said, "")


def _answer(model: ScoreEstimator, verdict: str) -> list[Markup]:
    """Say what was asked and what came out, sentence by sentence."""
    from markupsafe import Markup

    votes = model.votes()
    n_voters = int(np.count_nonzero(votes.votes_per_user))
    asked = Markup(
        f"{model.nouns.n_users(n_voters)} said in {counted(votes.n_votes, 'vote')} which of two "
        f"{model.nouns.items} is better, among {votes.n_items:,}; {_ties_in_words(model)}."
    )
    said = [asked, _consensus_in_words(model), _users_in_words(model) + "."]
    return [*said, Markup.escape(verdict)] if verdict else said


def _users_in_words(model: ScoreEstimator) -> Markup:
    """Say how many users are on each list, and of which kinds."""
    from markupsafe import Markup

    found = model.abnormality_
    if not found.flagged.any():
        return Markup("<strong>Nobody</strong> is unreliable or different beyond chance")
    told: list[str] = []
    for name in LISTS:
        kinds = Counter(kind for kind, on in zip(found.kind, found.list, strict=True) if on == name)
        n_users = kinds.total()
        among = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
        who = f"{n_users:,}" if told else model.nouns.n_users(n_users)
        is_are = "is" if n_users == 1 else "are"
        told.append(f"<strong>{who}</strong> {is_are} {name}{f' ({among})' if among else ''}")
    return Markup(", ".join(told))


def _ties_in_words(model: ScoreEstimator) -> str:
    votes = model.votes()
    if not model.terms_.has_ties:
        return "every vote names a winner"
    return f"{100 * np.mean(votes.outcome == 0):.1f} % of the votes are ties"


def _consensus_in_words(model: ScoreEstimator) -> Markup:
    from markupsafe import Markup

    ranking = model.ranking()
    tiers = ranking.tiers
    if ranking.tier is None:
        sentence = Markup("Their consensus puts {} first and {} last.")
        return sentence.format(_enumerated(tiers[0]), _enumerated(tiers[-1]))
    if len(tiers) == 1:
        sentence = Markup("Their consensus is one tier: it cannot tell the {} apart.")
        return sentence.format(model.nouns.items)
    sentence = Markup(
        "Their consensus ranks the {} in {} tiers, with {} on top and {} at the bottom."
    )
    return sentence.format(
        model.nouns.items, len(tiers), _enumerated(tiers[0]), _enumerated(tiers[-1])
    )


def _tie_words(model: ScoreEstimator) -> str:
    """Say what a tier is, or why there are none."""
    if model.threshold_ is None:
        return f"{NO_TIES}, and there are no tiers."
    habits = ", times the tie factors of both" if model.terms_.has_habits else ""
    return (
        f"{capitalized(model.nouns.items)} of a tier tie with its first: their scores differ by at "
        f"most the threshold, {model.threshold_:.2f}{habits}."
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


def _ladder(model: ScoreEstimator) -> list[dict[str, Any]]:
    """Return the consensus item by item; positions in per cent of the widest interval."""
    ranking, (low, high) = model.ranking(), model.consensus_intervals()
    order = np.argsort(-model.consensus_, kind="stable")
    low, high = low[order], high[order]
    least = float(low.min())
    per_cent = 100.0 / max(float(high.max()) - least, 1e-9)
    numbers = np.arange(1, len(ranking) + 1) if ranking.tier is None else ranking.tier
    opens = np.diff(numbers, prepend=0) != 0
    board = model.leaderboard().by_item()
    return [
        {
            "number": int(numbers[place]),
            "opens": bool(opens[place]),
            "band": _band(ranking.tier, place, bool(opens[place])),
            "item": item,
            "score": score,
            "habit": factor(ranking.habits[place]),
            "low": low[place],
            "high": high[place],
            "ranks": board[item][0] or "too few votes",
            "group": board[item][1],
            "left": (low[place] - least) * per_cent,
            "width": (high[place] - low[place]) * per_cent,
            "dot": (score - least) * per_cent,
        }
        for place, (item, score) in enumerate(
            zip(ranking.items.tolist(), ranking.scores, strict=True)
        )
    ]


def _band(tier: Indices | None, place: int, opens: bool) -> str:
    """Return what a row looks like: tiers are shaded in turn."""
    if tier is None:
        return "plain"
    return f"{'odd' if tier[place] % 2 else 'even'}{' opens' if opens else ''}"


def _effect(model: ScoreEstimator) -> dict[str, Any]:
    """Return the consensus with and without the unreliable users."""
    unreliable = model.abnormality_.on(UNRELIABLE)
    if not unreliable[np.unique(model.votes().user)].all():
        found = model.effect_of_leaving_out()
        rows = as_polars(found).to_dicts()
        return {"sentence": found.sentence(model.nouns), "rows": rows if found.left_out else []}
    return {"sentence": "Nobody is left to make a consensus without them.", "rows": []}


def _scores(model: ScoreEstimator) -> list[dict[str, Any]]:
    """Return held-out scores of own rankings and of the consensus alone, each at its time."""
    if model.selection_ is None or model.entry_times_.min() <= model.selection_.chosen.times[0]:
        return []
    curves = model.selection_.chosen
    at = int(np.argmin(np.abs(curves.times - model.selection_.time)))
    rows = []
    for scoring in SCORINGS:
        own = curves.scores["dense"][scoring][:, at]
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


def _settings(model: ScoreEstimator) -> list[tuple[str, str]]:
    """Return what one needs to get the same again."""
    chosen = _chosen(model)
    unimportant = (
        "times", "n_jobs", "snapshots", "backend", "random_state", "with_tests", "call",
    )  # fmt: skip
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
    sizes = [
        f"{name} {scale:.3g}"
        for name, scale in zip(terms.names, terms.scales, strict=True)
        if scale > 0.0
    ]
    return ", ".join(
        [*sizes, *([f"tie habits of {model.nouns.items}"] if terms.has_habits else [])]
    )
