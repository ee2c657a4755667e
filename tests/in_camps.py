"""Votes of people in camps, or who differ without camps: what several files of tests look at."""

import numpy as np

from isplitlbi import Comparisons, MarginMLE


def people(n_camps=1, *, seed=0, taste=0.0, line=0.0, careless=0.0, n_users=40, n_items=8,
           n_votes=40):  # fmt: skip
    """Draw votes; return them and everybody's camp, which is -1 for the careless."""
    rng = np.random.default_rng(seed)
    camp = np.arange(n_users) % n_camps
    own = rng.normal(0.0, 1.2, n_items) + 1.4 * rng.normal(size=(n_camps, n_items))[camp]
    own = own + taste * rng.normal(size=(n_users, n_items))
    own = own + line * rng.normal(size=(n_users, 1)) * rng.normal(size=n_items)
    user = np.repeat(np.arange(n_users), n_votes)
    left = rng.integers(n_items, size=len(user))
    right = (left + rng.integers(1, n_items, size=len(user))) % n_items
    perceived = own[user, left] - own[user, right] + rng.logistic(size=len(user))
    outcome = (perceived > 0.5).astype(int) - (perceived <= -0.5)
    is_careless = np.arange(n_users) < careless * n_users
    outcome = np.where(is_careless[user], rng.integers(-1, 2, size=len(user)), outcome)
    users = np.array([f"user-{number:02d}" for number in range(n_users)])
    items = np.array([f"item-{number}" for number in range(n_items)])
    votes = Comparisons.from_arrays(users[user], items[left], items[right], outcome)
    return votes, np.where(is_careless, -1, camp)


def model_of(votes):
    """Fit a consensus, which is quick."""
    return MarginMLE().fit(votes)
