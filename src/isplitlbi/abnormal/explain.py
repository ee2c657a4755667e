"""Which list a user is on, and which kind explains the votes.

Every explanation that some kind knows has an evidence; kinds are as likely as the evidence of
theirs makes them, beside how likely they are beforehand. A kind is named where it is likely enough
by itself, the list of unreliable users where its kinds are together; else it is not clear.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isplitlbi.abnormal.evidence import Found, Way, explain_by, explain_by_one_item
from isplitlbi.abnormal.expectation import LEAST, Answers, Expectation, Inputs, without_items
from isplitlbi.abnormal.found import DIFFERENT, UNRELIABLE, Texts
from isplitlbi.abnormal.kinds import (
    FLAT,
    KINDS,
    LEANING,
    ONE_ANSWER,
    ORDINARY,
    OTHER_THRESHOLD,
    OWN_SCORES,
    REVERSED,
    UNCLEAR,
    Beyond,
    Blunter,
    Careless,
    DifferentTaste,
    Explanation,
    Figures,
    NeverTie,
    Outcome,
    Ring,
    TieHappy,
    TieShy,
    TooFast,
)
from isplitlbi.abnormal.ordinary import Yardstick
from isplitlbi.abnormal.rings import find_rings
from isplitlbi.abnormal.sequence import explain_by_order, typical_duration
from isplitlbi.model.terms import Side
from isplitlbi.typing import Floats, Mask, Places

__all__ = ["Explained", "explain", "in_numbers"]

# How likely a kind must be to be named, and the unreliable kinds together to be listed so.
SURE_OF_KIND, SURE_OF_LIST = 0.95, 0.95
MANY_DECIDED = 0.4  # share of decided votes below which ties are usual
ALL_BUT_FEW = 0.98  # share of decided votes to one side that nobody gives by the items
# Careless users who take less than this share of the time of a user in the middle are too fast.
TOO_FAST = 1 / 3

# What is told of users in numbers: slope, side and threshold, each as the votes have it.
IN_NUMBERS = Way(of_slope=4.0, of_side=4.0, of_level=4.0)

HARMLESS = (ORDINARY, OTHER_THRESHOLD)
HARMLESS_KINDS = (TieHappy.name, TieShy.name, NeverTie.name, Blunter.name)

# Every explanation that some kind knows.
EXPLANATIONS = tuple(dict.fromkeys(each for kind in KINDS.values() for each in kind.explanations))


class Explained(NamedTuple):
    """How users vote; lists, kinds and sentences are empty for those not asked about."""

    list: Texts
    kind: Texts
    sentence: Texts
    log_likelihood: Floats  # of the votes of every user, as far as they depend on the items


def explain(
    inputs: Inputs, yardstick: Yardstick, is_different: Mask, is_unreliable: Mask, suspects: Mask
) -> Explained:
    """Explain the votes of users whom one of the tests has found.

    Who is found unreliable is on that list only if unreliable kinds explain the votes. Suspects,
    whom a test would have found alone, may belong to a ring of others, and are not named.
    """
    answers, expected = inputs.answers, yardstick.expected
    # However many vote whatever is shown: that explains a user, too.
    yardstick = yardstick.of_the_attentive(in_all=False)
    asked = is_different | is_unreliable
    evidences = _Evidences.of(inputs, yardstick, asked, is_different)
    kinds, is_listed = _named(evidences.of_kinds(answers), is_different, is_unreliable)
    together = _name_rings(inputs, yardstick, evidences, kinds, suspects & ~is_listed)
    _name_hasty(inputs, kinds)
    lists = [
        (UNRELIABLE if is_listed[user] else DIFFERENT) if kind else ""
        for user, kind in enumerate(kinds)
    ]
    sentences = [
        KINDS[kind].sentence(_figures(inputs, expected, user, evidences, together[user]))
        if kind
        else ""
        for user, kind in enumerate(kinds)
    ]
    by_items = np.where(is_listed, -np.inf, evidences.best_by_items)
    common = answers.log_likelihood(expected.log_probability)
    return Explained(lists, kinds, sentences, np.maximum(common, by_items))


def _named(likely: Floats, is_different: Mask, is_unreliable: Mask) -> tuple[list[str], Mask]:
    """Name the kinds of users, from how likely each is, and say who is on the unreliable list."""
    names = list(KINDS)
    unreliable = np.array([KINDS[name].list == UNRELIABLE for name in names])
    share = likely[:-1]  # the last is that of an ordinary user
    # Between careless and blunter it is a matter of degree: whatever is more likely will do.
    blunter, sum_of = share[names.index(Blunter.name)], share[unreliable].sum(axis=0)
    is_listed = (sum_of >= SURE_OF_LIST * (1.0 - blunter)) & (sum_of > blunter) & is_unreliable
    harmless = likely[-1] + sum(share[names.index(name)] for name in HARMLESS_KINDS)
    is_odd = is_unreliable & (harmless <= 1.0 - SURE_OF_LIST)  # whatever it is
    # Who is listed is of a kind of that list, and who is not of none of it.
    share = np.where(is_listed & ~unreliable[:, None], 0.0, share)
    share = share / np.where(is_listed, np.maximum(sum_of, LEAST), 1.0)
    best = share.argmax(axis=0)
    sure = (share.max(axis=0) >= SURE_OF_KIND) & (is_listed | ~unreliable[best])
    kinds = [""] * share.shape[1]
    for user in np.flatnonzero(is_different | is_listed | is_odd).tolist():
        kinds[user] = names[best[user]] if sure[user] else UNCLEAR
    return kinds, is_listed


class _Evidences(NamedTuple):
    """What all explanations found of the users asked about."""

    values: dict[Explanation, Floats]
    found: dict[Way, Found]
    ties: Floats  # share of votes
    item: Places  # the one that an explanation by one item is about
    raised: Floats

    @classmethod
    def of(
        cls, inputs: Inputs, yardstick: Yardstick, asked: Mask, is_different: Mask
    ) -> _Evidences:
        answers = inputs.answers
        has_ties, has_sides = yardstick.expected.has_ties, answers.has_sides
        ties = _share_of_ties(answers, yardstick.expected)
        # Ties alone can be explained by nearly everything; then nothing else is asked about.
        varied = asked & (ties < ONE_ANSWER)
        answered = without_items(answers, has_ties)
        simple = [ORDINARY, FLAT, REVERSED, OTHER_THRESHOLD]
        found = explain_by(inputs, yardstick, simple[: 3 + has_ties], asked)
        for way in (FLAT, REVERSED):
            found[way].evidence[~varied] = -np.inf
        values: dict[Explanation, Floats] = {way: each.evidence for way, each in found.items()}
        values[Beyond.ANSWERS] = np.where(asked, answered, -np.inf)
        if (sequence := explain_by_order(inputs, asked)) is not None:
            values[Beyond.TIRING] = sequence.tiring
            if has_sides:  # a pattern is one of left and right
                values[Beyond.PATTERN] = sequence.pattern
        # Of whom nothing worse than other ties is likely, and who is not different, that is all.
        best = np.max([values[way] for way in values if way not in HARMLESS], axis=0)
        harmless = np.max([values[way] for way in values if way in HARMLESS], axis=0)
        varied = varied & (is_different | (best > harmless))
        known = [way for way in EXPLANATIONS if isinstance(way, Way) and way not in found]
        known = [way for way in known if (has_ties or way != OTHER_THRESHOLD)]
        known = [way for way in known if has_sides or way != LEANING]
        found |= explain_by(inputs, yardstick, known, varied, found[ORDINARY])
        values |= {way: each.evidence for way, each in found.items()}
        values[Beyond.ONE_ITEM], item, raised = explain_by_one_item(
            inputs, yardstick, varied, found[ORDINARY]
        )
        return cls(values, found, ties, item, raised)

    @property
    def best_by_items(self) -> Floats:
        """The evidence of the best explanation by which votes depend on the items."""
        by_items = [each.evidence for way, each in self.found.items() if way.slope > 0.0]
        by_items += [self.found[OWN_SCORES].evidence, self.values[Beyond.ONE_ITEM]]
        return np.asarray(np.max(by_items, axis=0))

    def of_kinds(self, answers: Answers) -> Floats:
        """Return how likely every kind is, the last being none at all: (n_kinds + 1, n_users)."""
        given = answers.by_user(answers.weighted)
        decided = np.maximum(given[:, 0] + given[:, 2], 1e-300)
        to_one_side = np.maximum(given[:, 0], given[:, 2]) / decided
        if not answers.has_sides:  # the first of two items is then any one of them
            to_one_side = np.full(answers.n_users, 0.5)
        nothing = np.zeros(answers.n_users)
        weighed = np.full((len(KINDS) + 1, answers.n_users), -np.inf)
        for row, kind in zip(weighed, KINDS.values(), strict=False):
            known = [each for each in kind.explanations if each in self.values]
            for explanation in known:
                mine = self.found.get(explanation) if isinstance(explanation, Way) else None
                outcome = Outcome(
                    nothing if mine is None else mine.slope,
                    nothing if mine is None else mine.level,
                    self.ties, to_one_side,
                )  # fmt: skip
                covered = kind.claims(explanation, outcome)
                value = np.where(covered, self.values[explanation], -np.inf)
                row[:] = np.logaddexp(row, value + np.log(kind.prior / len(known)))
        # An ordinary user does not give one answer to whatever is shown.
        is_varied = (self.ties < ONE_ANSWER) & (to_one_side < ALL_BUT_FEW)
        weighed[-1] = np.where(is_varied, self.values[ORDINARY], -np.inf)
        most = weighed.max(axis=0)
        likely = np.exp(weighed - np.where(np.isfinite(most), most, 0.0))
        return np.asarray(likely / np.maximum(likely.sum(axis=0), 1e-300))


def _share_of_ties(answers: Answers, expected: Expectation) -> Floats:
    """Return everybody's share of ties; where most votes are expected to be, what is beyond."""
    amount = answers.n_votes * answers.weight
    total = np.maximum(answers.sum_by_user(amount), LEAST)
    decided = 1.0 - answers.by_user(answers.weighted)[:, 1] / total
    foreseen = 1.0 - answers.sum_by_user(amount * expected.probability[:, 1]) / total
    return np.asarray(1.0 - decided * np.maximum(1.0, MANY_DECIDED / np.maximum(foreseen, LEAST)))


def _name_rings(
    inputs: Inputs, yardstick: Yardstick, evidences: _Evidences, kinds: list[str], suspects: Mask
) -> Places:
    """Name users whose votes others foretell better than any explanation does; return sizes."""
    may_be = np.array([kind in (DifferentTaste.name, UNCLEAR) for kind in kinds]) & suspects
    may_be &= inputs.among.has_rings
    if not inputs.runtime.any(bool(may_be.any())):
        return np.zeros(len(kinds), dtype=np.int64)
    others = suspects & ~np.array([bool(kind) for kind in kinds])
    own = explain_by(inputs, yardstick, [OWN_SCORES], may_be | others)[OWN_SCORES]
    common = inputs.answers.log_likelihood(yardstick.expected.log_probability)
    best = np.max([common, own.evidence, *evidences.values.values()], axis=0)
    together = find_rings(inputs, yardstick, own, best, may_be | others)
    for user in np.flatnonzero((together > 0) & may_be):
        kinds[user] = Ring.name
    return together


def _name_hasty(inputs: Inputs, kinds: list[str]) -> None:
    """Name careless users who take far less time than others."""
    duration = typical_duration(inputs)
    for user in np.flatnonzero(duration < TOO_FAST * inputs.among.middle(duration)):
        if kinds[user] == Careless.name:
            kinds[user] = TooFast.name


# --- in figures ----------------------------------------------------------------------------------


def in_numbers(inputs: Inputs, yardstick: Yardstick, asked: Mask) -> tuple[Floats, Floats, Floats]:
    """Return slope, side and threshold of everybody; those of the consensus where not asked."""
    found = explain_by(inputs, yardstick, [IN_NUMBERS], asked)[IN_NUMBERS]
    consensus = inputs.consensus
    side = consensus.trait(Side.name) if Side.name in consensus.vector.traits else 0.0
    slope = np.where(asked, found.slope, 1.0)
    return slope, side + found.side, consensus.threshold * np.exp(found.level)


def _figures(
    inputs: Inputs, expected: Expectation, user: int, evidences: _Evidences, n_together: int
) -> Figures:
    """Return what a sentence about a user may tell."""
    answers = inputs.answers
    mine = answers.of_user(user)
    counts, n_votes = answers.counts[mine], answers.n_votes[mine]
    foreseen = n_votes[:, None] * expected.probability[mine]
    left_is_lower = expected.apart[mine] < 0

    def against(amounts: Floats | Places) -> float:
        decided = float(amounts[:, [0, 2]].sum())
        lower = np.where(left_is_lower, amounts[:, 0], amounts[:, 2]).sum()
        return float(lower) / decided if decided else 0.0

    total = int(n_votes.sum())
    items, item = inputs.votes.items, int(evidences.item[user])
    return Figures(
        total,
        left=float(counts[:, 0].sum()) / max(int(counts[:, [0, 2]].sum()), 1),
        ties=float(counts[:, 1].sum()) / total,
        expected_ties=float(foreseen[:, 1].sum()) / total,
        against=against(counts),
        expected_against=against(foreseen),
        item=str(items[item]),
        is_raised=bool(evidences.raised[user] > 0.0),
        n_together=int(n_together),
        has_sides=answers.has_sides,
    )
