"""The parts of deviations in words, in tables and on a terminal, and whom pictures show."""

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from isplitlbi.nouns import NOUNS, Nouns
from isplitlbi.output.parts import (
    PartsShown,
    parts_by_user,
    parts_in_words,
    percent,
    print_parts,
    print_parts_of_user,
)

MODELS = ("featured", "leaving", "papers", "forced")


@pytest.fixture(params=MODELS)
def model(request):
    return request.getfixturevalue(request.param)


def test_the_panels_of_the_parts_add_up_to_that_of_all(model):
    parts = model.decompose()
    shown = PartsShown.of(model, parts, None, 60)
    everything, *each = (np.nan_to_num(table) for table in shown.panels(parts))
    np.testing.assert_array_equal(sum(each), everything)
    assert np.stack([table != 0 for table in each]).sum(axis=0).max() == 1
    best = model.ranking().items.tolist()
    assert model.items_[shown.items].tolist() == best
    names = [parts.traits[place] for place in shown.traits]
    assert names == [name for name in model.terms_.names[1:] if name in names]
    assert ("threshold" in names) == (model.threshold_ is not None)
    # Every number of P is there.
    assert np.count_nonzero(everything) == np.count_nonzero(model.parameters_.table())


def test_those_who_left_come_first_in_order_of_entry(model):
    parts = model.decompose()
    shown = PartsShown.of(model, parts, None, 60)
    users = model.users_[shown.users].tolist()
    assert users[: shown.n_left] == model.left_consensus_
    assert shown.n_left == shown.n_left_of_all
    assert len(set(users)) == len(users) == shown.n_users_of_all == len(model.users_)
    entries = model.entry_times_[shown.users]
    assert list(entries[shown.n_left :]) == sorted(entries[shown.n_left :])
    rows = parts_by_user(model, parts)
    assert [row.user for row in rows] == users
    assert [row.left_as for row in rows[: shown.n_left]] == [
        str(rank) for rank in range(1, shown.n_left + 1)
    ]
    for row in rows:
        has_left = row.user in model.left_consensus_
        assert (row.strong == "100 %") == has_left
        assert (row.personal == row.noise == "-") == has_left


@pytest.mark.parametrize("most", [1, 2, 5, 11, 100])
def test_of_many_users_there_are_some_who_left_and_some_who_did_not(leaving, most):
    parts = leaving.decompose()
    shown = PartsShown.of(leaving, parts, most, 3)
    n_others = len(shown.users) - shown.n_left
    all_others = shown.n_users_of_all - shown.n_left_of_all
    assert len(shown.users) == min(most, shown.n_users_of_all)
    assert 0 < shown.n_left_of_all < shown.n_users_of_all
    assert shown.n_left >= min(shown.n_left_of_all, most // 2)
    assert n_others >= min(all_others, most // 2)
    assert len(shown.items) == 3
    left, others = shown.counts_in_words()
    assert left.startswith(f"{shown.n_left}") and others.startswith(f"{n_others}")
    assert (" of " in left) == (shown.n_left < shown.n_left_of_all)


@given(st.floats(0, 1))
def test_a_share_is_nothing_or_all_only_where_it_is(share):
    told = percent(share)
    assert (told == "-") == (share == 0.0)
    assert (told == "100 %") == (share == 1.0)


def test_the_sentence_has_the_counts_of_all_parts(leaving):
    parts = leaving.decompose()
    n_left, n_users = len(leaving.left_consensus_), len(leaving.users_)
    strong, personal, noise = (part.nnz for part in parts)
    assert parts_in_words(parts, n_users, NOUNS) == (
        f"{n_left} of {n_users} users have left the consensus: all {strong} deviations of these "
        f"users are strong. Of the {personal + noise} deviations of the others, {personal} are "
        f"personal and {noise} are noise."
    )


def test_the_sentence_where_nobody_or_everybody_has_left(leaving):
    parts = leaving.decompose()
    nothing = parts.strong * 0.0
    nothing.eliminate_zeros()
    told = parts_in_words(replace(parts, strong=nothing), 24, NOUNS)
    assert told.startswith("Nobody has left the consensus, so nothing is strong. Of the ")
    assert "the others" not in told
    everybody = replace(parts, personal=nothing, noise=nothing)
    told = parts_in_words(everybody, 24, Nouns.of({"users": "judges"}))
    assert told.endswith("deviations of these judges are strong.")


def printed(draw, *arguments):
    console = Console(width=80, file=io.StringIO())
    draw(console, *arguments)
    return console.file.getvalue()


def test_the_table_has_every_user_and_says_what_its_words_mean(model):
    told = printed(print_parts, model, model.decompose(1.5), 1.5)
    assert max(map(len, told.splitlines())) <= 80
    for user in model.users_:
        assert sum(line.startswith(f"{user} ") for line in told.splitlines()) == 1
    assert "beyond 1.5 standard deviations of noise." in told
    assert "the paper calls it abnormal" in told


def test_one_user_is_told_in_a_sentence(leaving):
    parts, left = leaving.decompose(), leaving.left_consensus_
    told = " ".join(printed(print_parts_of_user, leaving, parts, left[1]).split())
    assert told.startswith(f"{left[1]} left as number 2: size ")
    assert "(strong 100 %); differs in " in told
    stayed = next(user for user in leaving.users_ if user not in left)
    told = printed(print_parts_of_user, leaving, parts, stayed)
    assert told.startswith(f"{stayed} has not left the consensus: size ")
