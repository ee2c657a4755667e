"""Predictions in bulk: the same as all at once, with the rows of the file in errors."""

import polars as pl
import pytest

from isplitlbi import MarginMLE
from isplitlbi.data.pairs import read_pairs, stream_pairs
from isplitlbi.errors import InvalidRows, InvalidVotes
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output import predictions
from isplitlbi.output.predictions import predict_in_bulk
from isplitlbi.output.tables import predictions_table

VOTES = simulate(n_users=8, n_items=5, votes_per_user=(20, 30), random_state=3).votes


@pytest.fixture(scope="module")
def model():
    return MarginMLE().fit(VOTES)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.csv"
    pl.DataFrame(
        {
            "user": [VOTES.users[k % 8] if k % 5 else f"new-{k:03d}" for k in range(100)],
            "left": VOTES.items[[k % 5 for k in range(100)]].tolist(),
            "right": VOTES.items[[(k + 1 + k % 4) % 5 for k in range(100)]].tolist(),
        }
    ).write_csv(path)
    return path


def in_bulk(model, file, block=100, progress=None):
    tables = []
    found = predict_in_bulk(model, stream_pairs(file, block=block), tables.append, progress)
    return pl.concat(tables), found


@pytest.mark.parametrize("block", [1, 64, 1000, 2**20])
def test_batches_predict_what_all_pairs_at_once_do(model, file, block):
    shares = []
    table, found = in_bulk(model, file, block, lambda share, doing: shares.append((share, doing)))
    assert table.equals(predictions_table(model, read_pairs(file)))
    assert found.n_pairs == 100
    assert [share for share, _ in shares] == sorted(share for share, _ in shares)
    assert shares[-1] == (1.0, "100 pairs")


def test_unknown_users_are_told_once_however_many_there_are(model, file, monkeypatch):
    said = "Not in the votes of this model, so the average over its users predicts for: new-000, "
    said += "new-005, new-01"
    assert in_bulk(model, file)[1].unknown.sentence() == f"{said}0 and 17 more."
    monkeypatch.setattr(predictions, "MOST", 5)
    assert in_bulk(model, file)[1].unknown.sentence() == f"{said}0 and more than 2 more."
    file.write_text("left,right\nitem-01,item-02\n")
    assert in_bulk(model, file)[1].unknown.sentence() is None


@pytest.mark.parametrize("block", [1, 2**20])
@pytest.mark.parametrize(
    "row, problem",
    [
        ("u,item-01,cake", "item 'cake' is not among the 5 items of this model; the nearest"),
        ("u,item-01,item-01", "item 'item-01' is compared with itself"),
        (",item-01,item-02", "user is missing"),
        ("u,item-01", "2 fields where the header has 3"),
    ],
)
def test_an_error_names_the_row_of_the_file(model, file, row, problem, block):
    with file.open("a") as text:
        text.write(f"{row}\n")
    with pytest.raises(InvalidRows, match=f"^pairs.csv, row 101: {problem}"):
        in_bulk(model, file, block)


def test_ids_that_are_numbers_are_read_as_such(tmp_path):
    numbers = MarginMLE().fit(
        pl.DataFrame({"user": [7, 8, 8], "left": [1, 2, 3], "right": [2, 3, 1]}), [1, 0, -1]
    )
    file = tmp_path / "pairs.csv"
    file.write_text("user,left,right\n7,1,2\nbob,1,3\n")
    table, found = in_bulk(numbers, file)
    assert table["left"].to_list() == [1, 1]
    assert len(found.unknown.users) == 1
    file.write_text("user,left,right\n7,1,2\n7,one,3\n")
    with pytest.raises(
        InvalidRows, match=r"^pairs.csv, row 2: item 'one' is not among the 3 items"
    ):
        in_bulk(numbers, file)


def test_columns_that_come_later_in_json_are_not_passed_over(model, tmp_path):
    file = tmp_path / "pairs.jsonl"
    row = '{"left": "item-01", "right": "item-02"'
    file.write_text(f'{row}}}\n{row}, "turn": 1}}\n')
    assert in_bulk(model, file, 1)[1].n_pairs == 2
    file.write_text(f'{row}}}\n{row}, "user": "u"}}\n')
    with pytest.raises(InvalidVotes, match="from row 2 on: there is a column 'user', which no row"):
        in_bulk(model, file, 1)
