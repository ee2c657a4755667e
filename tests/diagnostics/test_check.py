"""The diagnosis as a whole."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnosed import codes, columns, found, from_lines, healthy, looked_at, with_rows
from isplitlbi.data.comparisons import Comparisons
from isplitlbi.diagnostics.check import check
from isplitlbi.diagnostics.findings import Severity
from isplitlbi.errors import InvalidVotes
from isplitlbi.evaluation.simulate import few_votes_study, paper_study
from votes import from_rows, rebuilt, rows


@pytest.mark.parametrize("seed", range(8))
def test_a_healthy_study_gives_notes_at_most(seed):
    diagnosis = check(healthy(seed))
    assert set(codes(diagnosis)) == {"individual-rankings", "repeats"}
    assert not diagnosis.is_serious
    assert {finding.severity for finding in diagnosis.findings} == {Severity.NOTE}


@pytest.mark.parametrize("study", [paper_study, few_votes_study])
def test_the_simulated_studies_of_the_package_give_no_warning(study):
    for seed in range(3):
        diagnosis = looked_at(study(seed).votes)
        assert all(finding.severity == Severity.NOTE for finding in diagnosis.findings)


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


def test_the_most_serious_findings_come_first():
    extra = [("user-01", "gin", "rum", "left"), ("eve", "item-01", "item-02", "tie")]
    diagnosis = check(with_rows(healthy(), extra))
    severities = [finding.severity for finding in diagnosis.findings]
    assert severities == sorted(severities, reverse=True)
    assert set(severities) == set(Severity)


@pytest.mark.parametrize("weight", [2.0, 0.02, 1e-300])
def test_the_unit_of_weights_does_not_matter(weight):
    votes = healthy()
    same = Comparisons.from_arrays(*columns(votes), weight=[weight] * len(votes))
    one, other = looked_at(same), looked_at(votes)
    assert one.summary.pop("weight") == other.summary["votes"]
    assert one == other


def test_a_vote_counts_as_much_as_its_weight_says():
    rows = ["ann", "ann", "bob", "eve"], list("aaba"), list("bbcc"), [1, -1, 0, 1]
    summary = check(Comparisons.from_arrays(*rows, weight=[5, 1, 1, 1])).summary
    assert (summary["votes"], summary["weight"]) == (4, 4)
    assert (summary["votes_per_user_min"], summary["votes_per_user_max"]) == (0.5, 3)


def test_weights_that_make_most_votes_count_for_nothing_are_told():
    votes = healthy()
    weight = np.ones(len(votes))
    weight[:2] = 1e300
    uneven = Comparisons.from_arrays(*columns(votes), weight=weight)
    finding = found(uneven, "uneven-weights")
    assert finding.severity == Severity.WARNING
    assert finding.details == {"effective": 2.0, "votes": len(votes)}
    assert finding.sentence == (
        f"The weights are so uneven that {len(votes):,} votes tell about as much as 2 of equal "
        "weight would: limit the largest weights, or leave the weights out."
    )
    weight[:2] = 5.0
    uneven = Comparisons.from_arrays(*columns(votes), weight=weight)
    assert "uneven-weights" not in codes(looked_at(uneven))


def test_a_count_is_a_vote_again_and_a_weight_is_not():
    rows = ["ann", "ann", "bob"], ["a", "a", "b"], ["b", "b", "c"], [1, -1, 0]
    repeats = found(Comparisons.from_arrays(*rows, count=[5, 3, 1]), "repeats").details
    assert repeats == {"repeats": 7, "copies": 6, "differing": 3}
    repeats = found(Comparisons.from_arrays(*rows, weight=[5, 3, 1]), "repeats").details
    assert repeats == {"repeats": 1, "copies": 0, "differing": 1}


def test_users_and_items_without_votes_stay_out():
    votes = healthy()
    part = votes.subset((votes.left < 4) & (votes.right < 4) & (votes.user < 20))
    diagnosis = check(part)
    assert diagnosis.summary["users"] == 20
    assert diagnosis.summary["items"] == 4
    assert not diagnosis.is_serious
    assert "few-votes-items" not in codes(diagnosis)


def test_no_votes_at_all_are_refused():
    with pytest.raises(InvalidVotes, match="no votes"):
        check(healthy().subset([]))


@given(rows=rows, weighted=st.booleans(), grouped=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=10)  # each is two experiments; test_individual has a larger study
def test_any_votes_give_a_diagnosis_for_json_that_row_order_does_not_change(
    rows, weighted, grouped, seed
):
    votes = from_rows(rows, weighted=weighted, grouped=grouped)
    diagnosis = check(votes).as_dict()
    assert json.loads(json.dumps(diagnosis, allow_nan=False)) == diagnosis
    order = np.random.default_rng(seed).permutation(len(votes))
    assert check(rebuilt(votes, order)).as_dict() == diagnosis
