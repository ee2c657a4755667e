"""Small fitted models that several files of tests look at."""

import numpy as np

from isplitlbi import Comparisons, ISplitLBI
from isplitlbi.evaluation.simulate import simulate


def small_model():
    """Fit sixteen users, some with a taste of their own and two who turn the consensus around."""
    votes = simulate(
        n_users=16, n_items=6, votes_per_user=(30, 50), abnormal_share=0.2,
        malicious={"reversed": 0.13}, random_state=1,
    ).votes  # fmt: skip
    return ISplitLBI(n_folds=3).fit(votes)


# Ids that strangers might choose; the first fourteen can be shown as they are.
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
    """Fit more users than the page has lines, options and rows for; most never leave."""
    votes = simulate(
        n_users=450, n_items=4, votes_per_user=(8, 12), abnormal_share=0.3, random_state=3
    ).votes
    return ISplitLBI(times=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], time=0.8).fit(votes)


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
