"""Paths for tests: votes of all sorts, ways to follow them, and ways to look at what came out."""

import numpy as np
from hypothesis import strategies as st

from isplitlbi.data.comparisons import Comparisons
from isplitlbi.model.links import Logistic
from isplitlbi.model.terms import PAPER
from isplitlbi.path import Ending
from isplitlbi.runtime.local import Local
from isplitlbi.solvers import Dynamics, Implicit, PathSettings, follow
from isplitlbi.solvers.state import State

TIMES = np.geomspace(0.05, 2.0, 8)
SNAPSHOTS = ("consensus", "deviation", "sparse")
SLOW = Dynamics(nu=0.5, kappa=5.0)  # what the explicit scheme can afford


def walk(
    votes,
    scheme=None,
    dynamics=SLOW,
    times=TIMES,
    *,
    link=None,
    terms=PAPER,
    n_threads=1,
    backend=None,
    **options,
):
    """Follow a path on this machine; by default by the implicit scheme and the logistic link."""
    settings = PathSettings(link or Logistic(), dynamics, scheme or Implicit(), times, terms)
    return follow(votes, settings, Local(votes, n_threads, backend), **options)


def prepared(scheme, votes, dynamics, *, link=None, terms=PAPER, backend=None, loops=None):
    """Return a scheme made ready for votes, to be asked for single steps."""
    runtime = Local(votes, backend=backend)
    runtime.loops = loops or runtime.loops
    settings = PathSettings(link or Logistic(), dynamics, scheme, TIMES, terms)
    return scheme.prepare(terms.layout(votes), settings, runtime)


def first_state(votes, delta=1e-3, terms=PAPER):
    """Return the beginning of a path."""
    layout = terms.layout(votes)
    return State.initial(layout, terms.start(layout.vector, delta))


# --- votes ---------------------------------------------------------------------------------

# Few users and items, so that votes repeat; weights whose sums depend on their order.
mild_rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 4),
        st.integers(1, 4),
        st.sampled_from([1, 0, -1]),
        st.sampled_from([0.1, 0.3, 1.0]),
        st.just(0),
    ),
    min_size=1,
    max_size=25,
)


def mixed_votes(n_items=6):
    """Six users of all sorts: often and never a tie, many votes and few, and tastes that clash."""
    rng = np.random.default_rng(7)
    scores = np.linspace(-1.0, 1.0, n_items)
    votes = []
    for name, sign, threshold, n in [
        ("ann", 1, 0.8, 25),
        ("bob", 1, 0.0, 20),
        ("cas", -1, 0.5, 20),
        ("dee", 1, 0.0, 12),
        ("eve", -1, 0.0, 6),
        ("fay", 1, 2.5, 15),
    ]:
        for _ in range(n):
            i, j = rng.choice(n_items - (name != "ann"), size=2, replace=False)
            lead = sign * (scores[i] - scores[j]) + rng.logistic(scale=0.7)
            votes.append((name, f"i{i}", f"i{j}", int(np.sign(lead)) * (abs(lead) > threshold)))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


def half_never_ties():
    """Twelve users of one taste; the second half decides even the closest pairs."""
    rng = np.random.default_rng(0)
    scores = np.linspace(-1.0, 1.0, 5)
    votes = []
    for user in range(12):
        for _ in range(20):
            i, j = rng.choice(5, size=2, replace=False)
            lead = scores[i] - scores[j] + rng.logistic(scale=0.5)
            tie = user < 6 and abs(lead) < 0.8
            votes.append((f"u{user:02}", f"i{i}", f"i{j}", 0 if tie else int(np.sign(lead))))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


def odd_one_out():
    """Six users who mostly agree on five items, and one who sees them upside down."""
    rng = np.random.default_rng(3)
    scores = np.linspace(-1.5, 1.5, 5)
    votes = []
    for user in range(7):
        for _ in range(25):
            i, j = rng.choice(5, size=2, replace=False)
            lead = (-1 if user == 6 else 1) * (scores[i] - scores[j]) + rng.logistic(scale=0.6)
            outcome = 0 if abs(lead) < 0.5 else int(np.sign(lead))
            votes.append((f"u{user}", f"i{i}", f"i{j}", outcome))
    return Comparisons.from_arrays(*zip(*votes, strict=True))


def in_agreement(*others):
    """Return four users who agree on a > b > c, with some ties, and these other votes."""
    votes = []
    for user in ("u1", "u2", "u3", "u4"):
        for left, right in (("a", "b"), ("b", "c"), ("a", "c")):
            votes += [(user, left, right, outcome) for outcome in (1, 1, 1, 0, -1)]
    return Comparisons.from_arrays(*zip(*votes, *others, strict=True))


# --- what came out -------------------------------------------------------------------------


def common_threshold(path):
    """Return the consensus threshold at every time."""
    return path.consensus[:, path.vector.threshold]


def own_thresholds(path):
    """Return the thresholds of all users at every time."""
    return common_threshold(path)[:, None] + path.deviation[:, path.slots.threshold]


def scores(path):
    """Return the consensus scores at every time."""
    return path.consensus[:, path.vector.scores]


def deviation_of(votes, path, user, coordinate):
    """Return how a user deviates at one place of the consensus, at every time."""
    (u,) = np.flatnonzero(votes.users == user)
    slots = path.slots
    (here,) = np.flatnonzero((slots.owner == u) & (slots.coordinate == coordinate))
    return path.deviation[:, here]


def by_label(votes, path):
    """Return everything on the path by the labels of users and items, or the names of traits."""
    habits = [f"habit of {item}" for item in votes.items] if path.vector.has_habits else []
    names = [*votes.items.tolist(), *path.vector.traits, *habits]
    found = {}
    for k in range(len(path.times)):
        for name, value in zip(names, path.consensus[k], strict=True):
            found[k, "consensus", name] = value
        for slot, (u, i) in enumerate(zip(path.slots.owner, path.slots.coordinate, strict=True)):
            both = path.deviation[k, slot], path.sparse[k, slot]
            found[k, votes.users[u], names[i]] = both
    return found | dict(zip(votes.users, path.entry_times, strict=True))


def relative_errors(path, truth, part):
    """Return the relative error at every time."""
    found, expected = getattr(path, part), getattr(truth, part)
    return np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)


def assert_equal_paths(one, other):
    """Assert that two paths are equal to the last bit."""
    for name in ("times", "consensus", "deviation", "sparse", "entry_times"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.n_steps == other.n_steps
    assert one.ending is other.ending


def assert_within_box(path, delta):
    """Assert that everything is finite and no threshold below delta, up to rounding."""
    assert path.ending is Ending.COMPLETE
    for part in SNAPSHOTS:
        assert np.isfinite(getattr(path, part)).all(), part
    assert np.all(common_threshold(path) >= delta - 1e-15)
    assert np.all(own_thresholds(path) >= delta - 1e-15)
