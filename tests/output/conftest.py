"""Models of people who differ in more than taste, that several files of tests look at."""

import pytest

from isplitlbi import ISplitLBI
from isplitlbi.evaluation.simulate import simulate


@pytest.fixture(scope="session")
def featured():
    """Fit people of other slopes and sides, items with tie habits, and a length that counts."""
    votes = simulate(
        n_users=24, n_items=6, votes_per_user=(40, 60), abnormal_share=0.1, random_state=4,
        sharpness=(0.2, 1.0, 1.0, 1.8), side=(0.3, 0.5), tie_habit=0.5, features={"length": 0.8},
    ).votes  # fmt: skip
    return ISplitLBI(n_folds=2).fit(votes)


@pytest.fixture(scope="session")
def forced():
    """Fit people who had to name a winner."""
    votes = simulate(
        n_users=16, n_items=6, votes_per_user=(30, 50), threshold=None, sharpness=0.5,
        random_state=5,
    ).votes  # fmt: skip
    return ISplitLBI(n_folds=2).fit(votes)


@pytest.fixture(scope="session")
def papers():
    """Fit the model of the paper to votes with ties."""
    votes = simulate(n_users=12, n_items=5, votes_per_user=(20, 30), random_state=6).votes
    return ISplitLBI(terms="paper", n_folds=2).fit(votes)


@pytest.fixture(scope="session")
def leaving():
    """Fit people as different as those, up to a time at which half of them have left."""
    votes = simulate(
        n_users=24, n_items=6, votes_per_user=(40, 60), abnormal_share=0.1, random_state=4,
        sharpness=(0.2, 1.0, 1.0, 1.8), side=(0.3, 0.5), tie_habit=0.5, features={"length": 0.8},
    ).votes  # fmt: skip
    return ISplitLBI(time=0.15, with_tests=False).fit(votes)
