"""Votes and models that the tests of estimators share."""

import numpy as np
import pandas as pd
import pytest

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.simulate import simulate
from studies import ITEM, QUICK, TIMES, USER


@pytest.fixture(scope="session")
def study():
    """Eight users, three of them with a taste of their own, on five items."""
    return simulate(
        n_users=8, n_items=5, votes_per_user=(35, 50), score_sd=1.5, deviation_sd=3.0,
        threshold=0.7, abnormal_share=0.25, random_state=5,
    )  # fmt: skip


@pytest.fixture(scope="session")
def rows(study):
    """Votes as columns user, left, right, outcome; one user never compares one item."""
    votes, _ = study
    table = pd.DataFrame(
        {
            "user": votes.users[votes.user],
            "left": votes.items[votes.left],
            "right": votes.items[votes.right],
            "outcome": votes.outcome,
        }
    )
    unseen = (table.user == USER) & ((table.left == ITEM) | (table.right == ITEM))
    return table[~unseen].reset_index(drop=True)


@pytest.fixture(scope="session")
def X(rows):
    return rows[["user", "left", "right"]]


@pytest.fixture(scope="session")
def y(rows):
    return rows["outcome"].to_numpy()


@pytest.fixture(scope="session")
def votes(rows):
    return Comparisons.from_frame(rows, winner="outcome")


@pytest.fixture(scope="session")
def model(votes):
    return ISplitLBI(kappa=5.0, times=TIMES, n_folds=3).fit(votes)


@pytest.fixture(scope="session")
def quick(votes):
    return ISplitLBI(**QUICK).fit(votes)


@pytest.fixture(scope="session")
def numbered():
    """Fit a model whose ids are integers."""
    rng = np.random.default_rng(0)
    left = rng.integers(10, 14, size=90)
    pairs = np.column_stack([rng.integers(3, size=90), left, left + rng.integers(1, 3, size=90)])
    return ISplitLBI(**QUICK).fit(pairs, np.sign(pairs[:, 1] - 12) * rng.integers(0, 2, 90))
