"""Users on a terminal."""

import io

from rich.console import Console

from commands import width
from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from isplitlbi.output.people import print_abnormal
from isplitlbi.output.tables import users_table


def test_on_a_narrow_screen_explanations_stand_below():
    votes = simulate(
        n_users=20, n_items=6, votes_per_user=(60, 80), malicious={"reversed": 0.1}, random_state=1
    ).votes
    model = ISplitLBI(time=0.3).fit(votes)
    table = users_table(model).filter("abnormal")

    def printed(columns):
        out = io.StringIO()
        console = Console(file=out, width=columns, force_terminal=True, color_system=None)
        print_abnormal(console, model, model.abnormality_, table)
        assert width(out.getvalue()) <= columns
        return out.getvalue().splitlines()

    wide, narrow = printed(250), printed(60)
    assert len(table) > 1
    for row in table.to_dicts():
        (beside,) = (line for line in wide if line.startswith(row["user"]))
        assert row["explanation"] in beside
        place = next(k for k, line in enumerate(narrow) if line.startswith(row["user"]))
        assert narrow[place].split()[0] == row["user"] and row["kind"] in narrow[place]
        assert narrow[place + 1].startswith("    ")
        assert row["explanation"].startswith(narrow[place + 1].strip())
