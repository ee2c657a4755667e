"""A crowd that votes like the consensus, and one user who votes in each other way."""

import numpy as np

from isplitlbi import Comparisons

SCORES, THRESHOLD = np.linspace(-2, 2, 8), 0.8  # what the crowd agrees on
ITEMS = np.array([f"item-{number}" for number in range(8)])


def vote(rng, n_votes, scores=SCORES, threshold=THRESHOLD, side=0.0):
    """Draw left, right and outcome of one user's votes on random pairs."""
    left = rng.integers(8, size=n_votes)
    right = (left + rng.integers(1, 8, size=n_votes)) % 8
    perceived = scores[left] - scores[right] + side + rng.logistic(size=n_votes)
    return left, right, (perceived > threshold) * 1 - (perceived <= -threshold)


def gather(voters):
    """Put the votes of many users together."""
    n_votes = [len(outcome) for _, _, outcome in voters.values()]
    left, right, outcome = map(np.concatenate, zip(*voters.values(), strict=True))
    return Comparisons.from_arrays(
        np.repeat(list(voters), n_votes), ITEMS[left], ITEMS[right], outcome
    )


def crowd(seed, n_users=60):
    """Let many users vote like the consensus, and one in each other way."""
    rng = np.random.default_rng(seed)
    voters = {f"normal-{number:02d}": vote(rng, 60) for number in range(n_users)}
    taste = rng.permutation(SCORES)

    def instead(outcome, n_votes=300):
        return *vote(rng, n_votes)[:2], np.broadcast_to(outcome, n_votes)

    return voters | {
        "reversed": vote(rng, 300, -SCORES),
        "careless": instead(rng.integers(-1, 2, size=300)),
        "always left": instead(1),
        "always right": instead(-1),
        "tie-happy": vote(rng, 300, threshold=2.4),
        "never-tie": vote(rng, 300, threshold=0.0),
        "sharper": vote(rng, 300, 3.0 * SCORES),
        "blunter": vote(rng, 300, 0.4 * SCORES),
        "different taste": vote(rng, 300, taste),
        "diligent-1": vote(rng, 300),
        "diligent-2": vote(rng, 300),
        "newcomer-1": (np.array([3]), np.array([4]), np.array([0])),
        "newcomer-2": (np.array([3, 5]), np.array([4, 4]), np.array([1, 0])),
    }
