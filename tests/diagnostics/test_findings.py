"""What every finding is: a record that makes its own sentence."""

import json
import re
from dataclasses import FrozenInstanceError

import pytest

from isplitlbi.diagnostics import answers, individual, items, users
from isplitlbi.diagnostics.findings import Diagnosis, Finding, Severity, amount, number_of, some_of
from isplitlbi.nouns import Nouns

LOSSES = {
    "consensus_log_loss": 1.0,
    "own_thresholds_log_loss": 0.9,
    "own_rankings_log_loss": 0.8000004,
    "consensus_accuracy": 0.52,
    "own_rankings_accuracy": 0.604,
    "gain": 0.2,
    "standard_error": 0.01,
    "gain_low": 0.18,
    "gain_high": 0.22,
    "nu": 1.0,
}
EXAMPLES = [
    answers.OnlyTies(12),
    answers.NoTies(12.5),
    answers.WinnerFirst("left", 12),
    answers.PositionBias(0.53, 0.5),
    answers.LargePositionBias(0.4, 0.5),
    answers.FixedSides(),
    answers.Repeats(5, 1, 2),
    answers.UnevenWeights(2.3, 1200),
    answers.DuplicateRows(300, 300, 0, n_rows=600),
    answers.RepeatedIds(5, ["x", "y"]),
    individual.TooFewVotes(),
    individual.Help(**LOSSES),
    individual.ThresholdsHelp(**LOSSES),
    individual.NoHelp(**LOSSES),
    individual.Unclear(**LOSSES),
    individual.WrongTemperature(1.6, 0.05),
    individual.WorseThanOneRanking(0.7, 0.6, 0.01),
    items.Disconnected([["a", "b", "c"], ["d", "e"]]),
    items.NoContradictions(40),
    items.AlwaysWins(["a"], [1]),
    items.AlwaysLoses(["a", "b"], [2.5, 7]),
    items.OneWayGroups([["a"], ["b"], ["c"], ["d", "e"]]),
    items.ItemsWithFewVotes([7], [3], n_items=20),
    items.TwoItems(["a", "b"]),
    users.OneUser("ann"),
    users.DominantUser("ann", 0.7500004),
    users.UsersWithFewVotes(["ann", "bob", "cy", "di"], 0.01, n_users=1200),
    users.NobodyWithEnoughVotes(["ann"], 1.0, n_users=1),
    users.OneAnswerUsers({"left": ["ann"], "tie": ["bob"]}, 40),
    users.OneSidedUsers(["ann", "bob"], [0.95, 0.1]),
]


def kinds_of(base):
    """Return all classes of findings, however deep, that stand for themselves."""
    for kind in base.__subclasses__():
        if not kind.__name__.startswith("_"):
            yield kind
        yield from kinds_of(kind)


def test_every_kind_has_an_example_here():
    assert {type(each) for each in EXAMPLES} == set(kinds_of(Finding))


@pytest.mark.parametrize("finding", EXAMPLES, ids=lambda each: type(each).__name__)
class TestEveryKind:
    def test_it_is_said_in_whole_sentences_without_flags(self, finding):
        assert finding.sentence[0].isupper() or finding.sentence[0].isdigit()
        assert finding.sentence.endswith(".")
        assert "--" not in finding.sentence
        assert "  " not in finding.sentence

    def test_it_is_said_in_the_words_of_the_study(self, finding):
        said = finding.in_words(Nouns("model", "models", "judge", "judges"))
        assert not re.search(r"\b(items?|users?)\b", said, re.IGNORECASE)
        assert (said != finding.sentence) == bool(
            re.search(r"\b(items?|users?)\b", finding.sentence, re.IGNORECASE)
        )

    def test_it_is_ready_for_json(self, finding):
        plain = finding.as_dict()
        assert list(plain) == ["severity", "code", "sentence", "details"]
        assert json.loads(json.dumps(plain)) == plain
        assert Severity[plain["severity"].upper()] == finding.severity

    def test_it_cannot_be_changed(self, finding):
        with pytest.raises(FrozenInstanceError):
            finding.code = "another"


def test_details_are_rounded_and_sentences_are_not_made_of_rounded_numbers():
    finding = users.DominantUser("ann", 2 / 3)
    assert finding.details == {"user": "ann", "share": 0.666667}
    assert finding.share == 2 / 3
    assert "gave 67 % of all votes" in finding.sentence


def test_what_only_the_sentence_needs_is_no_detail():
    finding = users.UsersWithFewVotes(["ann"], 0.25, n_users=1200)
    assert finding.details == {"users": ["ann"], "share_of_votes": 0.25}
    assert finding.sentence.startswith("1 of 1,200 users has fewer than 7 votes: 'ann'.")


def test_a_lean_to_the_right_is_told_of_the_right():
    assert answers.PositionBias(0.53, 0.5).sentence.startswith("The left item wins 53.0 %")
    assert answers.PositionBias(0.47, 0.5).sentence.startswith("The right item wins 53.0 %")


@pytest.mark.parametrize("low, help_little", [(0.003, "hardly help"), (-0.003, "do not help")])
def test_a_gain_that_is_sure_but_useless_hardly_helps(low, help_little):
    finding = individual.NoHelp(**LOSSES | {"gain": 0.005, "gain_low": low})
    assert finding.sentence.startswith(f"Individual rankings {help_little}: ")


@pytest.mark.parametrize(
    "severities, serious", [((), False), (("NOTE", "WARNING"), False), (("SERIOUS",), True)]
)
def test_a_diagnosis_is_as_serious_as_its_findings(severities, serious):
    by_severity = {each.severity.name: each for each in EXAMPLES}
    diagnosis = Diagnosis({"votes": 3}, tuple(by_severity[name] for name in severities))
    assert diagnosis.is_serious is serious
    assert diagnosis.as_dict()["serious"] is serious
    assert len(diagnosis.as_dict()["findings"]) == len(severities)


def test_amounts_are_whole_where_they_can_be():
    assert [amount(3.0), amount(2.5)] == [3, 2.5]
    assert isinstance(amount(3.0), int)
    assert [number_of(n, "vote") for n in (1, 1200, 2.25)] == ["1 vote", "1,200 votes", "2.2 votes"]


def test_only_a_few_ids_are_named():
    assert some_of(["a", "b"]) == "'a', 'b'"
    assert some_of(list(range(1500))) == "0, 1, 2 and 1,497 more"
