"""Votes, settings and small fitted models that several files of tests look at."""

import numpy as np
import polars as pl
import pyarrow as pa

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.simulate import simulate

TIMES = np.geomspace(0.1, 1.2, 10)
# With the time given there is one path to follow and no cross-validation; users are not tested.
QUICK = {"kappa": 5.0, "times": [0.4], "time": 0.7, "with_tests": False}

USER, ITEM = "user-01", "item-05"  # she never compared it

# What makes an ensemble quick.
FEW = {"penalties": (2.0**-9, 2.0**-5), "n_members": 7, "n_folds": 2}


LAYOUTS = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "columns in another order, and one more": lambda X: X[["right", "user", "left"]].assign(z=1),
    "three columns of other names": lambda X: X.set_axis(["who", "a", "b"], axis=1),
    "categories": lambda X: X.astype("category"),
    "array of objects": lambda X: X.to_numpy(dtype=object),
    "array of strings": lambda X: X.to_numpy(dtype=str),
    "list of tuples": lambda X: list(X.itertuples(index=False, name=None)),
    "list of lists": lambda X: X.to_numpy().tolist(),
}


def assert_same_fit(one, other):
    """Assert that two models are equal to the last bit."""
    assert one.time_ == other.time_
    np.testing.assert_array_equal(one.users_, other.users_)
    np.testing.assert_array_equal(one.items_, other.items_)
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_array_equal(getattr(one.path_, name), getattr(other.path_, name))


def drawn_by_users(scores, n_votes=400, n_users=5, threshold=0.5, seed=0):
    """Draw votes by users who share scores and threshold, or have their own each."""
    rng = np.random.default_rng(seed)
    n_items = np.shape(scores)[-1]
    user = rng.integers(n_users, size=n_votes)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    own = np.broadcast_to(scores, (n_users, n_items))
    lead = own[user, left] - own[user, right] + rng.logistic(size=n_votes)
    own_threshold = np.broadcast_to(threshold, n_users)[user]
    outcome = np.where(np.abs(lead) <= own_threshold, 0, np.sign(lead)).astype(int)
    return Comparisons.from_arrays(user, left, right, outcome)


def columns_of(votes):
    """Return the votes as X and y."""
    X = {"user": votes.users[votes.user], "left": votes.items[votes.left],
         "right": votes.items[votes.right]}  # fmt: skip
    return pl.DataFrame(X), votes.outcome


def small_model():
    """Fit sixteen users, some with a taste of their own and two who turn the consensus around."""
    votes = simulate(
        n_users=16, n_items=6, votes_per_user=(30, 50), abnormal_share=0.2,
        malicious={"reversed": 0.13}, random_state=1,
    ).votes  # fmt: skip
    return ISplitLBI(n_folds=3).fit(votes)


# Ids that strangers might choose; the first fourteen can be shown as they are, but for U+202E.
HOSTILE = [
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "' onmouseover='document.title=1",
    "<!--",
    "&lt;b&gt; &amp;",
    "{{ 7 * 7 }} ${7 * 7} %{y}",
    '=HYPERLINK("x")',
    "+1",
    "-1",
    "@SUM(1)",
    "שלום, עולם",
    "\u202eabc",
    "👩‍👩‍👧 🦆",
    "__proto__",
    'line\nbreak,and"quote',
    "x" * 10_000,
    "a" + "🦆" * 100,
    "\u2003\u200b",
]


def crowd_model():
    """Fit the paper's model of more users than the page has lines, options and rows for.

    Most never leave.
    """
    votes = simulate(
        n_users=450, n_items=4, votes_per_user=(8, 12), abnormal_share=0.3, random_state=3
    ).votes
    times = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    return ISplitLBI(terms="paper", times=times, time=0.8).fit(votes)


def hostile_model():
    """Fit users and items of such names; the first user turns the consensus around."""
    rng = np.random.default_rng(0)
    n = 40 * len(HOSTILE)
    left = rng.integers(len(HOSTILE), size=n)
    right = (left + rng.integers(1, len(HOSTILE), size=n)) % len(HOSTILE)
    user = rng.integers(len(HOSTILE), size=n)
    sign = np.where(user == 0, -1, 1)
    outcome = np.where(rng.random(n) < 0.15, 0, sign * np.sign(right - left))
    names = np.array(HOSTILE, dtype=object)
    votes = Comparisons.from_arrays(names[user], names[left], names[right], outcome)
    return ISplitLBI(n_folds=2, kappa=10).fit(votes)
