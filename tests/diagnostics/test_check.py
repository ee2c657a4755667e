import json
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics import check as checks
from isplitlbi.diagnostics.check import Severity, check
from isplitlbi.errors import InvalidVotes
from isplitlbi.evaluation.simulate import few_votes_study, malicious_study, paper_study, simulate
from votes import from_rows, random_votes, rebuilt, rows

WORDS = {"left": 1, "tie": 0, "right": -1}


def codes(report):
    return [finding.code for finding in report.findings]


def found(votes, code):
    """Return the finding of this code, which must be there once."""
    (finding,) = [finding for finding in check(votes).findings if finding.code == code]
    return finding


def healthy(seed=0, **changes):
    """Draw votes of people who agree: every item wins, loses and ties; sides are random."""
    settings = {"n_users": 30, "n_items": 6, "votes_per_user": (20, 40), "score_sd": 1.0}
    settings |= {"abnormal_share": 0.0, "threshold": 0.5} | changes
    return simulate(**settings, random_state=seed).votes


def columns(votes):
    return [
        votes.users[votes.user].tolist(),
        votes.items[votes.left].tolist(),
        votes.items[votes.right].tolist(),
        votes.outcome.tolist(),
    ]


def with_rows(votes, extra):
    """Add rows such as ("ann", "tea", "milk", "left")."""
    more = [[row[k] for row in extra] for k in range(3)] + [[WORDS[row[3]] for row in extra]]
    return Comparisons.from_arrays(*(a + b for a, b in zip(columns(votes), more, strict=True)))


def from_lines(text):
    """Build votes of lines such as "ann tea milk left"."""
    lines = [line.split() for line in text.strip().splitlines()]
    return Comparisons.from_arrays(*zip(*lines, strict=True))


# --- healthy studies ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_a_healthy_study_gives_notes_at_most(seed):
    report = check(healthy(seed))
    assert set(codes(report)) == {"individual-rankings", "repeats"}
    assert not report.is_serious
    assert {finding.severity for finding in report.findings} == {Severity.NOTE}


@pytest.mark.parametrize("study", [paper_study, few_votes_study])
def test_the_simulated_studies_of_the_package_give_no_warning(study):
    for seed in range(3):
        report = check(study(seed).votes)
        assert all(finding.severity == Severity.NOTE for finding in report.findings)


def test_users_who_reverse_the_consensus_are_not_taken_for_one_sided():
    assert "one-sided-users" not in codes(check(malicious_study("reversed", 0).votes))


def test_the_summary_counts_what_is_there():
    votes = from_lines("ann tea milk left\nann milk tea tie\nbob rum tea right\nann rum milk tie")
    assert check(votes).summary == {
        "votes": 4,
        "users": 2,
        "items": 3,
        "tie_share": 0.5,
        "pairs": 3,
        "pair_share": 1.0,
        "votes_per_user_min": 1,
        "votes_per_user_median": 2,
        "votes_per_user_max": 3,
    }


# --- the items ----------------------------------------------------------------------------------


def test_items_that_no_vote_connects_are_serious():
    votes = with_rows(healthy(), [("user-01", "gin", "rum", w) for w in WORDS] * 5)
    finding = found(votes, "disconnected")
    assert finding.severity == Severity.SERIOUS
    assert finding.details["groups"] == 2
    assert finding.details["items"][1] == ["gin", "rum"]
    assert "'gin', 'rum'" in finding.sentence
    assert check(votes).is_serious
    assert codes(check(votes))[0] == "disconnected"
    assert "one-way-groups" not in codes(check(votes))


@pytest.mark.parametrize(
    "code, answer, end", [("always-wins", "left", "top"), ("always-loses", "right", "bottom")]
)
def test_an_item_that_always_wins_or_loses_is_named_with_its_votes(code, answer, end):
    votes = with_rows(healthy(), [(f"user-{k:02}", "gin", "item-01", answer) for k in range(1, 13)])
    finding = found(votes, code)
    assert finding.severity == Severity.WARNING
    assert finding.details == {"items": ["gin"], "votes": [12]}
    assert "'gin', with 12 votes" in finding.sentence
    assert end in finding.sentence
    one_tie = with_rows(votes, [("user-01", "gin", "item-01", "tie")])
    assert code not in codes(check(one_tie))
    assert "one-way-groups" not in codes(check(votes))


def test_a_group_that_always_beats_the_rest_is_found():
    inner = [(f"user-{k:02}", "gin", "rum", w) for k in range(1, 5) for w in WORDS]
    outer = [(f"user-{k:02}", "rum", f"item-0{1 + k % 6}", "left") for k in range(1, 13)]
    finding = found(with_rows(healthy(), inner + outer), "one-way-groups")
    assert finding.details == {"groups": 1, "items": [["gin", "rum"]]}
    report = check(with_rows(healthy(), [*inner, *outer, ("user-01", "item-01", "gin", "left")]))
    assert "one-way-groups" not in codes(report)


def test_an_item_between_two_others_that_never_meet_it_from_both_sides_is_a_group():
    chain = [("user-01", "gin", "rum", "left"), ("user-02", "rum", "item-01", "left")]
    report = check(with_rows(healthy(), chain * 6))
    assert found(with_rows(healthy(), chain * 6), "one-way-groups").details["items"] == [["rum"]]
    assert "always-wins" in codes(report)


def test_votes_without_any_contradiction_are_told_and_nothing_else_of_the_kind():
    order = ["a", "b", "c", "d"]
    lines = [(u, x, y, "left") for u in ("ann", "bob") for x, y in combinations(order, 2)]
    lines += [("ann", "b", "c", "tie")]
    votes = with_rows(from_lines("bob d a right"), lines)
    reported = codes(check(votes))
    assert "no-contradictions" in reported
    assert not {"always-wins", "always-loses", "one-way-groups"} & set(reported)
    circle = with_rows(votes, [("ann", "d", "a", "left")])
    assert "no-contradictions" not in codes(check(circle))


def test_an_item_with_few_votes_is_named():
    votes = with_rows(healthy(), [("user-01", "gin", "item-01", w) for w in WORDS])
    finding = found(votes, "few-votes-items")
    assert finding.details == {"items": ["gin"], "votes": [3]}
    enough = with_rows(votes, [("user-02", "gin", "item-02", w) for w in WORDS] * 3)
    assert "few-votes-items" not in codes(check(enough))


def test_two_items_are_told():
    votes = healthy(n_items=2)
    assert found(votes, "two-items").severity == Severity.NOTE
    assert not check(votes).is_serious


# --- the answers --------------------------------------------------------------------------------


def with_outcomes(votes, outcome):
    return Comparisons.from_arrays(*columns(votes)[:3], outcome)


def test_nothing_but_ties_is_serious_and_ends_the_matter():
    votes = with_outcomes(healthy(), [0] * len(healthy()))
    report = check(votes)
    assert codes(report)[0] == "only-ties"
    assert report.is_serious
    silent = {"individual-rankings", "one-answer-users", "always-wins", "winner-first", "no-ties"}
    assert not silent & set(codes(report))


def test_no_ties_at_all_is_a_warning():
    votes = healthy()
    votes = with_outcomes(votes, np.where(votes.outcome == 0, 1, votes.outcome))
    finding = found(votes, "no-ties")
    assert finding.severity == Severity.WARNING
    assert "threshold" in finding.sentence


@pytest.mark.parametrize("answer", WORDS)
def test_users_with_one_answer_only_are_named(answer):
    votes = healthy()
    who = [f"user-{k:02}" for k in (3, 7)]
    outcome = np.where(np.isin(votes.users[votes.user], who), WORDS[answer], votes.outcome)
    finding = found(with_outcomes(votes, outcome), "one-answer-users")
    assert sorted(finding.details["users"][answer]) == who
    assert list(finding.details["users"]) == [answer]
    assert finding.details["votes"] == np.isin(votes.users[votes.user], who).sum()
    assert "one-sided-users" not in codes(check(with_outcomes(votes, outcome)))


def test_the_same_answer_to_a_handful_of_votes_is_no_habit():
    votes = with_rows(healthy(), [("eve", "item-01", f"item-0{k}", "left") for k in range(2, 6)])
    assert "one-answer-users" not in codes(check(votes))


def test_a_user_who_leans_to_one_side_beyond_chance_is_named():
    votes = healthy(votes_per_user=(60, 60))
    rng = np.random.default_rng(0)
    leans = (votes.users[votes.user] == "user-05") & (rng.random(len(votes)) < 0.9)
    finding = found(with_outcomes(votes, np.where(leans, -1, votes.outcome)), "one-sided-users")
    assert finding.details["users"] == ["user-05"]
    assert finding.details["left_shares"][0] < 0.2
    assert "right" in finding.sentence


def test_a_study_that_leans_to_one_side_is_told_and_an_even_one_is_not():
    votes = healthy(n_users=60)
    rng = np.random.default_rng(0)
    outcome = np.where(rng.random(len(votes)) < 0.2, 1, votes.outcome)
    finding = found(with_outcomes(votes, outcome), "position-bias")
    assert finding.severity == Severity.WARNING
    assert finding.details["left_share"] > 0.55
    assert finding.details["expected_left_share"] == pytest.approx(0.5, abs=0.03)


def the_better_left(votes):
    """Put the item of the lower number to the left, whatever people saw."""
    swap = votes.left > votes.right
    left = np.where(swap, votes.right, votes.left)
    right = np.where(swap, votes.left, votes.right)
    outcome = np.where(swap, -votes.outcome, votes.outcome)
    users, items = votes.users, votes.items
    return Comparisons.from_arrays(users[votes.user], items[left], items[right], outcome)


def test_items_that_keep_their_side_are_no_bias_and_nobodys_habit():
    reported = codes(check(the_better_left(healthy())))
    assert "fixed-sides" in reported
    assert not {"position-bias", "one-sided-users", "one-answer-users"} & set(reported)


def test_a_file_that_lists_the_winner_first_is_no_bias():
    votes = healthy()
    lost = votes.outcome < 0
    left, right = np.where(lost, [votes.right, votes.left], [votes.left, votes.right])
    users, items = votes.users[votes.user], votes.items
    turned = Comparisons.from_arrays(users, items[left], items[right], np.abs(votes.outcome))
    reported = codes(check(turned))
    assert "winner-first" in reported
    assert not {"position-bias", "one-sided-users", "one-answer-users"} & set(reported)
    mirrored = found(rebuilt(turned, swapped=True), "winner-first")
    assert mirrored.details["side"] == "right"


def once_per_pair():
    """Every user judges every pair once, in both ways round over the users."""
    rng = np.random.default_rng(0)
    lines = [
        (f"user-{u:02}", *rng.permutation([f"item-{i}", f"item-{j}"]), rng.choice(list(WORDS)))
        for u, (i, j) in product(range(20), combinations(range(6), 2))
    ]
    return Comparisons.from_arrays(*zip(*lines, strict=True))


def test_rows_written_twice_are_told_from_pairs_shown_again():
    votes = once_per_pair()
    assert not {"repeats", "duplicate-rows"} & set(codes(check(votes)))
    twice = Comparisons.from_arrays(*(2 * column for column in columns(votes)))
    finding = found(twice, "duplicate-rows")
    assert finding.severity == Severity.WARNING
    assert finding.details == {"repeats": 300, "copies": 300, "differing": 0}
    assert "repeats" not in codes(check(twice))
    again = Comparisons.from_arrays(
        *(a + b for a, b in zip(columns(votes), columns(rebuilt(votes, swapped=True)), strict=True))
    )
    assert found(again, "repeats").details == {"repeats": 300, "copies": 0, "differing": 0}


def test_another_answer_to_the_same_pair_is_counted_whatever_the_side():
    votes = with_rows(
        from_lines("ann tea milk left\nann milk tea left\nann tea milk left\nbob tea milk tie"),
        [("bob", "milk", "rum", "tie")],
    )
    assert found(votes, "repeats").details == {"repeats": 2, "copies": 1, "differing": 1}


def test_rows_of_different_groups_or_weights_are_no_copies():
    row = [["ann", "ann", "bob"], ["a", "a", "b"], ["b", "b", "c"], [1, 1, 0]]
    grouped = Comparisons.from_arrays(*row, group=[1, 2, 3])
    weighted = Comparisons.from_arrays(*row, weight=[0.5, 0.75, 1.0])
    assert found(grouped, "repeats").details["copies"] == 0
    assert found(weighted, "repeats").details["copies"] == 0


# --- the users ----------------------------------------------------------------------------------


def test_one_user_alone_is_serious():
    report = check(healthy(n_users=1, votes_per_user=(300, 300)))
    assert codes(report)[0] == "one-user"
    assert report.is_serious
    assert "individual-rankings" not in codes(report)


def test_a_user_with_most_of_the_votes_is_named():
    votes = healthy()
    share = columns(healthy(1, n_users=1, votes_per_user=(2000, 2000)))
    share[0] = ["eve"] * len(share[0])
    both = Comparisons.from_arrays(*(a + b for a, b in zip(columns(votes), share, strict=True)))
    finding = found(both, "dominant-user")
    assert finding.details["user"] == "eve"
    assert finding.details["share"] == pytest.approx(2000 / (2000 + len(votes)), abs=1e-6)


def test_users_with_few_votes_are_a_note_and_a_warning_when_nobody_has_enough():
    lines = [("eve", "item-01", f"item-0{k}", "left") for k in range(2, 6)]
    finding = found(with_rows(healthy(), lines), "few-votes-users")
    assert finding.severity == Severity.NOTE
    assert finding.details["users"] == ["eve"]
    everyone = found(healthy(n_users=200, votes_per_user=(1, 6)), "few-votes-users")
    assert everyone.severity == Severity.WARNING
    assert len(everyone.details["users"]) == 200


def verdict(votes):
    return found(votes, "individual-rankings").details["verdict"]


def test_individual_rankings_help_where_tastes_differ():
    finding = found(paper_study(0).votes, "individual-rankings")
    assert finding.details["verdict"] == "help"
    assert finding.details["own_rankings_log_loss"] < finding.details["consensus_log_loss"]
    assert "can be expected to help" in finding.sentence


@pytest.mark.parametrize("seed", range(3))
def test_individual_rankings_do_not_help_where_people_agree(seed):
    votes = healthy(seed, n_users=60, votes_per_user=(100, 150), n_items=10)
    assert verdict(votes) == "no-help"


@pytest.mark.parametrize("seed", range(6))
def test_ties_that_differ_by_chance_are_no_reason_for_thresholds(seed):
    votes = healthy(seed, n_users=60, votes_per_user=(8, 60), n_items=8)
    details = found(votes, "individual-rankings").details
    assert details["verdict"] in ("no-help", "unclear")
    assert details["own_thresholds_log_loss"] > details["consensus_log_loss"]


def test_people_who_differ_in_ties_only_need_thresholds_of_their_own():
    one = columns(healthy(0, threshold=0.1, votes_per_user=(80, 120)))
    other = columns(healthy(0, threshold=2.0, votes_per_user=(80, 120)))
    other[0] = [f"other {user}" for user in other[0]]
    votes = Comparisons.from_arrays(*(a + b for a, b in zip(one, other, strict=True)))
    assert verdict(votes) == "thresholds"


def test_a_few_votes_are_too_few_to_tell():
    assert verdict(random_votes(0, n_votes=60)) == "unclear"
    one_of_ten = simulate(n_users=10, votes_per_user=(40, 60), random_state=3).votes
    finding = found(one_of_ten, "individual-rankings")
    assert finding.details["verdict"] == "unclear"
    assert "give or take" in finding.sentence


def test_large_studies_are_judged_on_a_part_of_their_users(monkeypatch):
    votes = malicious_study("reversed", 0).votes
    whole = found(votes, "individual-rankings").details
    monkeypatch.setattr(checks, "MOST_MEASURED", 4000)
    part = found(votes, "individual-rankings").details
    assert part["verdict"] == whole["verdict"]
    assert part != whole
    monkeypatch.setattr(checks, "MOST_MEASURED", 1)  # two users, however many votes they have
    assert found(votes, "individual-rankings")


def test_own_thresholds_minimise_their_convex_loss():
    votes, link = healthy(votes_per_user=(40, 80)), checks.Logistic()
    consensus = checks.fit_consensus(votes, link)
    own = checks._own_thresholds(votes, link, consensus, 1e-3)

    def loss(threshold):
        margin = consensus[votes.left] - consensus[votes.right]
        log_probabilities = link.log_probabilities(margin, threshold[votes.user])
        happened = -log_probabilities[np.arange(len(votes)), 1 - votes.outcome]
        prior = (threshold - consensus[-1]) ** 2 / 2
        return np.bincount(votes.user, happened, votes.n_users) + prior

    for factor in (0.98, 1.02):
        assert np.all(loss(own) <= loss(factor * own) + 1e-9)


# --- the report ---------------------------------------------------------------------------------


def test_the_most_serious_findings_come_first():
    extra = [("user-01", "gin", "rum", "left"), ("eve", "item-01", "item-02", "tie")]
    report = check(with_rows(healthy(), extra))
    severities = [finding.severity for finding in report.findings]
    assert severities == sorted(severities, reverse=True)
    assert set(severities) == set(Severity)


def test_weights_count_as_that_many_votes():
    votes = healthy()
    doubled = Comparisons.from_arrays(*columns(votes), weight=[2.0] * len(votes))
    twice = Comparisons.from_arrays(*(2 * column for column in columns(votes)))
    one, other = check(doubled).summary, check(twice).summary
    assert one.pop("weight") == other["votes"]
    assert {**one, "votes": None} == {**other, "votes": None}
    light = Comparisons.from_arrays(*columns(votes), weight=[0.02] * len(votes))
    assert "few-votes-items" in codes(check(light))
    assert found(light, "few-votes-users").severity == Severity.WARNING
    counts = ["ann", "ann", "bob"], ["a", "a", "b"], ["b", "b", "c"], [1, -1, 0], [5, 3, 1]
    repeats = found(Comparisons.from_arrays(*counts), "repeats").details
    assert repeats == {"repeats": 7, "copies": 0, "differing": 3}


def test_votes_of_one_group_are_no_more_evidence_than_one():
    votes = with_rows(
        healthy(), [("eve", "item-01", f"item-0{2 + k % 5}", "left") for k in range(8)]
    )
    votes = with_rows(votes, [("eve", f"item-0{2 + k % 5}", "item-01", "left") for k in range(8)])
    assert "one-answer-users" in codes(check(votes))
    groups = np.arange(len(votes)) // 8
    assert "one-answer-users" not in codes(
        check(Comparisons.from_arrays(*columns(votes), group=groups))
    )


def test_users_and_items_without_votes_stay_out():
    votes = healthy()
    part = votes.subset((votes.left < 4) & (votes.right < 4) & (votes.user < 20))
    report = check(part)
    assert report.summary["users"] == 20
    assert report.summary["items"] == 4
    assert not report.is_serious
    assert "few-votes-items" not in codes(report)


def test_no_votes_at_all_are_refused():
    with pytest.raises(InvalidVotes, match="no votes"):
        check(healthy().subset([]))


def test_integer_ids_come_back_as_integers():
    votes = Comparisons.from_arrays([1, 1, 2], [10, 10, 30], [20, 20, 40], [1, 0, -1])
    assert found(votes, "disconnected").details["items"] == [[10, 20], [30, 40]]


@given(rows=rows, weighted=st.booleans(), grouped=st.booleans(), seed=st.integers(0, 99))
def test_any_votes_give_a_report_for_json_that_row_order_does_not_change(
    rows, weighted, grouped, seed
):
    votes = from_rows(rows, weighted=weighted, grouped=grouped)
    report = check(votes).as_dict()
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    order = np.random.default_rng(seed).permutation(len(votes))
    assert check(rebuilt(votes, order)).as_dict() == report


def test_the_measurement_does_not_depend_on_the_order_of_rows_either():
    votes = few_votes_study(0).votes
    report = check(votes).as_dict()
    order = np.random.default_rng(1).permutation(len(votes))
    assert check(rebuilt(votes, order)).as_dict() == report
    assert check(votes).as_dict() == report


@pytest.mark.parametrize(
    "name, expected",
    [
        ("age", "help"),
        ("college", "thresholds"),
        ("llmfao", "help"),
        ("simulation", "help"),
        ("wmt16_cze-eng", "thresholds"),
    ],
)
def test_real_votes_are_usable_and_judged(shared_data, name, expected):
    file = shared_data / f"{name}.csv"
    if not file.is_file():
        pytest.skip(f"no {file.name} among the real votes")
    votes = Comparisons.read(file)
    assert not check(votes).is_serious
    assert verdict(votes) == expected
