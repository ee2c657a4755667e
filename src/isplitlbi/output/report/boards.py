"""The ranking of the report: the leaderboard of everybody, and those without users on a list.

All of them are found by the same estimator with the same settings; only the votes differ. So the
page can put one in place of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isplitlbi.abnormal import LISTS, UNRELIABLE
from isplitlbi.estimators import ScoreEstimator
from isplitlbi.estimators.certainty import MOST_USERS
from isplitlbi.estimators.leaderboard import Leaderboard
from isplitlbi.output.words import factor
from isplitlbi.typing import Floats

__all__ = ["Board", "boards_of", "is_large", "rows_of"]

EVERYBODY = "everybody"
# Of a leaderboard: a matrix of each user's own numbers is inverted again and again. This much takes
# about a quarter of a minute; of more, there is only the leaderboard of everybody.
MOST_WORK = 1e9
# Whom each of the other leaderboards leaves out: the name in the page's address, and in words.
WITHOUT = {
    "without-unreliable": ("without the unreliable", (UNRELIABLE,)),
    "without-abnormal": ("without all abnormal", LISTS),
}


@dataclass(frozen=True, eq=False)
class Board:
    """One leaderboard, and whose it is.

    Attributes
    ----------
    name, label : str
        Of the switch of the page.
    n_users : int
        Whose votes count.
    n_left_out : int
        Whose votes do not.
    board : Leaderboard
    shift : float
        What is added to its scores, of which only differences matter, so that their mean is that of
        everybody's.
    change : str
        What leaving users out does, in a sentence.
    """

    name: str
    label: str
    n_users: int
    n_left_out: int
    board: Leaderboard
    shift: float = 0.0
    change: str = ""


def boards_of(model: ScoreEstimator, progress: Callable[[float, str], None]) -> list[Board]:
    """Return the leaderboard of everybody, then those without users on lists.

    A list without users has none, nor has one that would leave nobody, nor has a large study.
    """
    progress(0.0, f"ranking the {model.nouns.items}")
    voted = model.summary_.votes_per_user > 0
    n_voters = int(np.count_nonzero(voted))
    boards = [Board(EVERYBODY, EVERYBODY, n_voters, 0, model.leaderboard())]
    without = WITHOUT if model.has_users and not is_large(model) else {}
    for name, (label, lists) in without.items():
        listed = [model.abnormality_.on(each) for each in lists]
        left_out = np.any(listed, axis=0) & voted
        n_left_out = int(np.count_nonzero(left_out))
        if n_left_out in (boards[-1].n_left_out, n_voters):
            continue
        progress(len(boards) / (1 + len(WITHOUT)), f"ranking the {model.nouns.items} {label}")
        effect = model.effect_of_leaving_out(lists=lists)
        shift = float(np.mean(effect.everybody.score) - np.mean(effect.others.score))
        change = effect.sentence(model.nouns)
        n_users = n_voters - n_left_out
        boards.append(Board(name, label, n_users, n_left_out, effect.others, shift, change))
    return boards


def is_large(model: ScoreEstimator) -> bool:
    """Say whether a study has so many users with so many items that other rankings take long."""
    sizes = model.parameters_.slots.sizes[model.summary_.votes_per_user > 0].astype(np.float64)
    return bool(min(len(sizes), MOST_USERS) * np.mean(sizes**3) > MOST_WORK)


def rows_of(boards: list[Board]) -> list[list[dict[str, Any]]]:
    """Return the leaderboards row by row; bars are in per cent of what all of them span."""
    ends = [(each.board.low + each.shift, each.board.high + each.shift) for each in boards]
    least = min(float(low.min()) for low, _ in ends)
    span = max(max(float(high.max()) for _, high in ends) - least, 1e-9)
    ranks = _ranks(boards[0].board)
    return [_rows(each, ranks, lambda score: 100.0 * (score - least) / span) for each in boards]


def _rows(
    of: Board, ranks_of_everybody: dict[Any, int], at: Callable[[Floats], Floats]
) -> list[dict[str, Any]]:
    board, texts = of.board, of.board.by_item()
    score, low, high = (each + of.shift for each in (board.score, board.low, board.high))
    left, dot, right = at(low), at(score), at(high)
    rows = []
    for place, item in enumerate(board.items.tolist()):
        rank, rank_of_everybody = int(board.rank[place]), ranks_of_everybody[item]
        ranks, group = texts[item]
        rows.append(
            {
                "rank": rank or "–",
                "moved": rank_of_everybody - rank if rank and rank_of_everybody else 0,
                "ranks": ranks or f"too few votes, about {board.votes_missing[place]} more needed",
                "item": item,
                "score": f"{score[place]:.2f}",
                "interval": f"{low[place]:.2f} to {high[place]:.2f}",
                "votes": _amount(board.votes[place]),
                "tier": "" if board.tier is None else int(board.tier[place]) or "–",
                "group": group or "–",
                "habit": "" if board.tie_factor is None else factor(board.tie_factor[place]),
                "band": _band(board, place),
                "left": left[place],
                "width": right[place] - left[place],
                "dot": dot[place],
            }
        )
    return rows


def _band(board: Leaderboard, place: int) -> str:
    """Return what a row looks like: tiers are shaded in turn."""
    if board.tier is None:
        return "plain"
    opens = place == 0 or board.tier[place] != board.tier[place - 1]
    return f"{'odd' if board.tier[place] % 2 else 'even'}{' opens' if opens else ''}"


def _ranks(board: Leaderboard) -> dict[Any, int]:
    return dict(zip(board.items.tolist(), board.rank.tolist(), strict=True))


def _amount(votes: float) -> str:
    return f"{votes:,.0f}" if float(votes).is_integer() else f"{votes:,.1f}"
