"""Votes for tests: random ones, hypothesis's, and ways to look at them."""

from collections import Counter
from dataclasses import fields

import numpy as np
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.data.layout import Layout


def random_votes(
    rng,
    n_users=5,
    n_items=4,
    n_votes=60,
    tie_share=0.2,
    *,
    weighted=False,
    group_size=None,
    features=(),
    timed=False,
):
    """Draw votes without structure; users and items may be missing when there are few votes."""
    rng = np.random.default_rng(rng)
    user = rng.integers(n_users, size=n_votes)
    left = rng.integers(n_items, size=n_votes)
    right = (left + rng.integers(1, n_items, size=n_votes)) % n_items
    outcome = np.where(rng.random(n_votes) < tie_share, 0, rng.choice([1, -1], size=n_votes))
    weight = rng.lognormal(size=n_votes) if weighted else None
    group = rng.permutation(n_votes) // group_size if group_size else None
    names = [f"u{k}" for k in user], [f"i{k}" for k in left], [f"i{k}" for k in right]
    numbers = {name: rng.normal(size=n_votes) * 10.0**k for k, name in enumerate(features)}
    # Few times, so that votes of one user share some.
    time = rng.integers(n_votes // 3 + 1, size=n_votes) if timed else None
    duration = rng.exponential(size=n_votes) if timed else None
    return Comparisons.from_arrays(
        *names, outcome, weight, group, time=time, duration=duration, features=numbers or None
    )


# What ids may consist of: anything but NUL and half of a character.
letters = st.characters(codec="utf-8", exclude_characters="\0")

# Few users, items and weights, so that votes repeat; weights whose sums depend on their order.
rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 4),
        st.integers(1, 4),
        st.sampled_from([1, 0, -1]),
        st.sampled_from([0.1, 0.3, 1.0, 1e-9, 7.7e8]),
        st.integers(0, 6),
    ),
    min_size=1,
    max_size=60,
)


def from_rows(rows, *, weighted=True, grouped=False):
    """Build the votes of `rows`: user, left, step from left to right, outcome, weight, group."""
    user, left, step, outcome, weight, group = zip(*rows, strict=True)
    right = [(i + k) % 5 for i, k in zip(left, step, strict=True)]
    return Comparisons.from_arrays(
        user, left, right, outcome, weight if weighted else None, group if grouped else None
    )


def as_tuples(votes):
    """Return every vote as (user, left, right, outcome, weight, group), by label, as given."""
    n = votes.n_votes
    weight = np.ones(n) if votes.weight is None else votes.weight_as_given
    group = np.zeros(n, dtype=int) if votes.group is None else votes.group
    columns = (votes.users[votes.user], votes.items[votes.left], votes.items[votes.right])
    return list(zip(*(c.tolist() for c in (*columns, votes.outcome, weight, group)), strict=True))


def multiset(votes):
    """Return the votes without their order."""
    return Counter(as_tuples(votes))


def rebuilt(votes, order=None, swapped=False):
    """Build the votes anew from their labels: in another order, all or some sides exchanged."""
    order = np.arange(votes.n_votes) if order is None else order
    left = np.where(swapped, votes.items[votes.right], votes.items[votes.left])
    right = np.where(swapped, votes.items[votes.left], votes.items[votes.right])
    outcome = np.where(swapped, -votes.outcome, votes.outcome)
    weight = votes.weight_as_given
    columns = (votes.users[votes.user], left, right, outcome, weight, votes.group)
    features = None
    if votes.features is not None:
        sign = np.where(swapped, -1, 1)
        numbers = zip(votes.features.names, votes.features.columns, strict=True)
        features = {name: (sign * column)[order] for name, column in numbers}
    return Comparisons.from_arrays(
        *(None if c is None else c[order] for c in columns), features=features,
        time=None if votes.time is None else votes.time[order],
        duration=None if votes.duration is None else votes.duration[order],
    )  # fmt: skip


def arrays_of(votes):
    """Return every array of the votes by name, slots and edges included."""
    named = {field.name: getattr(votes, field.name) for field in fields(votes)}
    for name in ("whole", "frame_kind", "file", "is_anonymous", "weight_unit"):
        del named[name]
    if (ids := named.pop("id")) is not None:
        named["id"] = ids.to_numpy()
    if (features := named.pop("features")) is not None:
        named |= {
            f"features.{field.name}": getattr(features, field.name) for field in fields(features)
        }
    layout = Layout.of(votes)
    arrays = {"slots": layout.slots, "edges": layout.edges}
    return named | {
        f"{part}.{name}": array
        for part, fields_of in arrays.items()
        for name, array in fields_of._asdict().items()
        if isinstance(array, np.ndarray)
    }


def assert_same(one, other):
    """Assert that two sets of votes are equal to the last bit, dtypes included."""
    here, there = arrays_of(one), arrays_of(other)
    assert here.keys() == there.keys()
    for name, array in here.items():
        if array is None or there[name] is None:
            assert array is there[name], name
        else:
            np.testing.assert_array_equal(array, there[name], err_msg=name, strict=True)
