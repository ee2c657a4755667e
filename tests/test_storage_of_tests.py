"""What was found of the users of a model, on disk."""

from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from crowds import QUICK, USER_COLUMNS, assert_same, crowd_model, reversing_crowd
from isplitlbi import ISplitLBI
from isplitlbi.abnormal import Abnormality, Ordinary
from isplitlbi.errors import InvalidVotes, UnreadableModel
from isplitlbi.output.tables import users_table
from isplitlbi.storage import load_model, save_model


@pytest.fixture(scope="module")
def model():
    return crowd_model()


@pytest.fixture(scope="module")
def reversing():
    return reversing_crowd()


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def test_what_was_found_comes_back_from_disk(folder, model):
    loaded = load_model(folder)
    assert_same(loaded.abnormality_, model.abnormality_)
    assert loaded.test_users() is loaded.abnormality_
    assert all(type(text) is str for text in loaded.abnormality_.explanation)
    assert loaded.abnormal_users_ == model.abnormal_users_
    assert users_table(loaded).equals(users_table(model))


def test_a_loaded_model_finds_the_rest_as_before(folder, model):
    assert_same(load_model(folder).test_users(0.3), model.test_users(0.3))


def test_a_model_whose_users_were_not_tested_is_stored_without(model, tmp_path):
    untested = ISplitLBI(**QUICK, with_tests=False).fit(model.votes())
    save_model(untested, tmp_path / "untested")
    loaded = load_model(tmp_path / "untested")
    assert not hasattr(loaded, "abnormality_")
    assert_same(loaded.test_users(), model.abnormality_)


def test_the_folder_holds_the_table_of_users(folder, model):
    table = pl.read_csv(folder / "users.csv")
    assert table.columns == USER_COLUMNS
    assert table["explanation"].to_list() == users_table(model)["explanation"].to_list()


def rewritten(file, change):
    with np.load(file) as content:
        arrays = dict(content)
    np.savez(file, allow_pickle=False, **change(arrays))


def without_last_user(arrays):
    return {name: a[:-1] if name in ("p_value", "q_value") else a for name, a in arrays.items()}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:1000]), "this model is damaged"),
        (lambda file: file.write_text("not an archive"), "this model is damaged"),
        (
            lambda file: rewritten(file, lambda a: {k: a[k] for k in a if k != "kind"}),
            "this model is damaged",
        ),
        (
            lambda file: rewritten(file, lambda a: a | {"kind": a["kind"][:-3]}),
            "this model is damaged",
        ),
        (lambda file: rewritten(file, without_last_user), "do not belong together"),
    ],
    ids=["cut", "text", "a column missing", "broken text", "users missing"],
)
def test_a_damaged_file_of_users_is_no_model(folder, spoil, message):
    spoil(folder / "abnormal.npz")
    with pytest.raises(UnreadableModel, match=message):
        load_model(folder)


def test_the_file_of_users_of_another_model_does_not_fit(folder, tmp_path, reversing):
    save_model(ISplitLBI(**QUICK).fit(reversing.votes), tmp_path / "other")
    (tmp_path / "other" / "abnormal.npz").replace(folder / "abnormal.npz")
    with pytest.raises(UnreadableModel, match="do not belong together"):
        load_model(folder)


def test_every_finding_is_stored(folder):
    with np.load(folder / "abnormal.npz") as content:
        findings = {field.name for field in fields(Abnormality)} - {"ordinary"}
        findings |= {f"ordinary_{field.name}" for field in fields(Ordinary)}
        assert set(content.files) == findings | {"fingerprint", "has_habits", "terms", "traits"}


def test_a_part_whose_users_are_gone_cannot_be_stored(reversing, tmp_path):
    part = reversing.votes.subset(reversing.votes.user > 0)
    with pytest.raises(InvalidVotes, match="cannot be stored"):
        save_model(ISplitLBI(**QUICK).fit(part), tmp_path / "part")
    assert not (tmp_path / "part").exists()
