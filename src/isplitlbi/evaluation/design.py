"""The settings of a simulated study, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, cast

import numpy as np

from isplitlbi.errors import InvalidSetting
from isplitlbi.typing import Floats

__all__ = ["MALICIOUS_KINDS", "NOISES", "Design", "Effect", "Noise", "Side", "Slopes"]

MALICIOUS_KINDS = ("reversed", "random", "always-left", "always-tie")

Slopes = float | Sequence[float]  # their standard deviation around 1, or the slopes themselves
Side = float | tuple[float, float]  # standard deviation of the users', or the common side and it
Effect = float | tuple[float, float]  # everybody's, or the common one and the standard deviation

# A feature under one of these names could not be told from the votes themselves.
_COLUMNS = ("user", "left", "right", "winner", "weight", "group")


class Noise(NamedTuple):
    """What is added to a margin before the user answers."""

    draw: Callable[[np.random.Generator, int], Floats]
    # The threshold that makes the three outcomes of two equal items equally probable: F^-1(2/3).
    indifferent_threshold: float


NOISES = {
    "logistic": Noise(lambda rng, size: rng.logistic(size=size), math.log(2)),
    "normal": Noise(lambda rng, size: rng.normal(size=size), NormalDist().inv_cdf(2 / 3)),
    "uniform": Noise(lambda rng, size: rng.uniform(-1, 1, size=size), 1 / 3),
}


@dataclass(frozen=True)
class Design:
    """The settings of `simulate`, under the same names."""

    n_users: int
    n_items: int
    votes_per_user: tuple[int, int]
    score_sd: float
    threshold: float | None
    abnormal_share: float
    deviation_sd: float
    threshold_spread: float
    malicious: Mapping[str, float]
    noise: str
    sharpness: Slopes
    side: Side
    taste_sd: float
    threshold_sd: float
    tie_habit: float
    features: Mapping[str, Effect]

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        self._check_sizes()
        self._check_spreads()
        self._check_shares()
        self._check_terms()
        self._check_forced_choice()
        if self.noise not in NOISES:
            raise InvalidSetting(f"noise must be one of {', '.join(NOISES)}, not {self.noise!r}.")

    # --- in one form -----------------------------------------------------------------------

    @property
    def is_forced(self) -> bool:
        """Whether users must name a winner."""
        return self.threshold is None

    @property
    def slopes(self) -> tuple[float, ...]:
        """The slopes to deal to users; none where they are normal."""
        return tuple(np.ravel(self.sharpness).tolist()) if np.ndim(self.sharpness) else ()

    @property
    def slope_sd(self) -> float:
        """Standard deviation of the users' slopes around 1, where they are normal."""
        return 0.0 if np.ndim(self.sharpness) else cast(float, self.sharpness)

    @property
    def sides(self) -> tuple[float, float]:
        """The common side, and the standard deviation of the users' own."""
        common, own = np.ravel(self.side) if np.ndim(self.side) else (0.0, self.side)
        return float(common), float(cast(float, own))

    @property
    def effects(self) -> dict[str, tuple[float, float]]:
        """Per feature the common effect, and the standard deviation of the users' own."""
        found = {}
        for name, effect in self.features.items():
            common, own = np.ravel(effect) if np.ndim(effect) else (effect, 0.0)
            found[name] = float(cast(float, common)), float(own)
        return found

    # --- what makes no sense ---------------------------------------------------------------

    def _check_sizes(self) -> None:
        if self.n_users < 1:
            raise InvalidSetting(f"n_users must be at least 1, not {self.n_users}.")
        if self.n_items < 2:
            raise InvalidSetting(
                f"n_items must be at least 2, since a vote compares two, not {self.n_items}."
            )
        low, high = self.votes_per_user
        if not 1 <= low <= high:
            raise InvalidSetting(
                "votes_per_user must be two numbers, least and most, with 1 <= least <= most, "
                f"not {self.votes_per_user}."
            )

    def _check_spreads(self) -> None:
        for name in ("score_sd", "threshold", "deviation_sd"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InvalidSetting(f"{name} must be positive and finite, not {value}.")
        if not 0 <= self.threshold_spread < 1:
            raise InvalidSetting(
                "threshold_spread must be at least 0 and below 1, so that every threshold stays "
                f"positive, not {self.threshold_spread}."
            )

    def _check_shares(self) -> None:
        unknown = [kind for kind in self.malicious if kind not in MALICIOUS_KINDS]
        if unknown:
            raise InvalidSetting(
                f"malicious kind {unknown[0]!r} is not one of {', '.join(MALICIOUS_KINDS)}."
            )
        for name, share in {"abnormal_share": self.abnormal_share, **self.malicious}.items():
            if not 0 <= share <= 1:
                raise InvalidSetting(f"The share {name!r} must be between 0 and 1, not {share}.")
        total = self.abnormal_share + sum(self.malicious.values())
        if total > 1 + 1e-9:  # ten times 0.1 may exceed 1 by rounding
            raise InvalidSetting(
                "abnormal_share and the shares of the malicious must sum to at most 1, "
                f"not {total:g}; lower one of them."
            )

    def _check_terms(self) -> None:
        if np.ndim(self.sharpness):
            slopes = np.ravel(self.sharpness).tolist()
            if not slopes:
                raise InvalidSetting("sharpness is an empty list: give a slope at least.")
            for slope in slopes:
                _check_finite("a slope of sharpness", slope)
        else:
            _check_spread("sharpness", self.sharpness)
        _check_pair("side", self.side, _check_spread)
        for name in ("taste_sd", "threshold_sd", "tie_habit"):
            _check_spread(name, getattr(self, name))
        for name, effect in self.features.items():
            if not str(name).strip() or name in _COLUMNS:
                raise InvalidSetting(
                    f"a feature cannot be called {name!r}: give it a name of its own, none of "
                    f"{', '.join(_COLUMNS)}."
                )
            _check_pair(f"the effect of feature {name!r}", effect, _check_finite)

    def _check_forced_choice(self) -> None:
        if not self.is_forced:
            return
        for name in ("threshold_sd", "tie_habit"):
            if getattr(self, name) > 0:
                raise InvalidSetting(f"{name} needs ties: give a threshold, or leave {name} out.")
        if self.malicious.get("always-tie", 0) > 0:
            raise InvalidSetting(
                "nobody can always answer a tie where there are none: give a threshold, or leave "
                "the malicious kind 'always-tie' out."
            )


def _check_pair(name: str, value: Side | Effect, check_one: Callable[[str, object], None]) -> None:
    """Refuse what is neither a number nor a common value with a standard deviation."""
    if not np.ndim(value):
        check_one(name, value)
        return
    numbers = np.ravel(value).tolist()
    if len(numbers) != 2:
        raise InvalidSetting(
            f"{name} must be a number, or a pair of the common value and the standard deviation, "
            f"not {value}."
        )
    _check_finite(f"the first number of {name}", numbers[0])
    _check_spread(f"the second number of {name}", numbers[1])


def _check_finite(name: str, value: object) -> None:
    if not _is_finite(value):
        raise InvalidSetting(f"{name} must be a finite number, not {value!r}.")


def _check_spread(name: str, value: object) -> None:
    if not _is_finite(value) or float(cast(float, value)) < 0:
        raise InvalidSetting(
            f"{name}, a standard deviation, must be at least 0 and finite, not {value!r}."
        )


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)
