"""Links: how a margin and a threshold become probabilities (paper, Sec. 2.1).

Conventions
-----------
``margin``     score of the first item minus score of the second, any real number
``threshold``  the tie threshold, positive
outcomes       always in the order first wins, tie, second wins

A link is the c.d.f. F of a symmetric noise with a log-concave density f::

    P(first wins)  = F(margin - threshold)
    P(second wins) = F(-margin - threshold)
    P(tie)         = F(threshold - margin) - F(-threshold - margin)

Log-concavity makes every log-probability jointly concave in (margin, threshold), so that fitting
is a convex problem. A new link is a subclass of `Link` that states three formulas of one variable.
All formulas are written with arithmetic and ufuncs, without branches: NumPy evaluates them on
arrays, and numba compiles the very same functions for the scalars inside its loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy

from isplitlbi.errors import InvalidSetting
from isplitlbi.typing import Floats

__all__ = [
    "LINKS",
    "Link",
    "Logistic",
    "Probit",
    "Real",
    "Uniform",
    "exp_minus",
    "link_named",
    "log_normal_cdf",
    "log_one_plus",
    "log_positive",
    "normal_hazard",
    "threshold_of",
]

# Between which logarithms of thresholds there is a difference: ties are as good as impossible at
# the one end and certain at the other.
LOWEST_LOG, HIGHEST_LOG = -30.0, 20.0

# Of a threshold in the length over which densities change at that margin: probabilities of ties are
# differences, which have no digits left far below it.
LEAST_SHARE = 1e-4

# A table of any c.d.f.: how many steps, and how far out the inverse hyperbolic sine of the last.
N_STEPS, MOST_STEPS = 1 << 13, 5.0

# Links are evaluated on arrays by NumPy and on scalars by numba.
Real = Any


class Link(ABC):
    """A symmetric noise distribution, through the logarithms of its c.d.f. and its density."""

    name: ClassVar[str]

    @abstractmethod
    def log_cdf(self, x: Real) -> Real:
        """Return log F(x)."""

    @abstractmethod
    def log_density(self, x: Real) -> Real:
        """Return log f(x)."""

    @abstractmethod
    def density_slope(self, x: Real) -> Real:
        """Return the derivative of log f at x."""

    def quantile(self, share: Floats) -> Floats:
        """Return where the noise lies below so often: what F takes to these shares."""
        x = np.sinh(np.linspace(-MOST_STEPS, MOST_STEPS, N_STEPS))  # closest in the middle
        return np.asarray(np.interp(share, np.exp(self.log_cdf(x)), x))

    @abstractmethod
    def curvature_bounds(self, threshold: Real) -> tuple[Real, Real, Real]:
        """Bound the curvature of minus a log-probability over all margins.

        Returns
        -------
        of a win or loss in either variable, of a tie in the margin, of a tie in the threshold.
        """

    def win(self, x: Real) -> tuple[Real, Real, Real]:
        """Return log F at x with its first and second derivative."""
        log_probability = self.log_cdf(x)
        slope = np.exp(self.log_density(x) - log_probability)
        return log_probability, slope, slope * (self.density_slope(x) - slope)

    def tie(self, margin: Real, threshold: Real) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return log P(tie) and its derivatives: d/dm, d/dt, d2/dm2, d2/dmdt, d2/dt2."""
        # A tie is as likely at -margin; on this side F(low) and F(high) are the smaller tails,
        # so that their difference keeps its digits.
        # Below a threshold at which nothing is left of them, the probability is proportional to it.
        distance = np.abs(margin)
        larger = np.maximum(threshold, LEAST_SHARE / (1.0 + distance))
        low, high = -larger - distance, larger - distance
        log_high = self.log_cdf(high)
        log_probability = log_high + np.log(-np.expm1(self.log_cdf(low) - log_high))
        at_low = np.exp(self.log_density(low) - log_probability)
        at_high = np.exp(self.log_density(high) - log_probability)
        slope_low = self.density_slope(low) * at_low
        slope_high = self.density_slope(high) * at_high
        by_distance, by_threshold = at_low - at_high, at_low + at_high
        side, ratio = 1.0 - 2.0 * (margin < 0.0), larger / threshold
        return (
            log_probability - np.log(ratio),
            side * by_distance,
            ratio * by_threshold,
            slope_high - slope_low - by_distance * by_distance,
            ratio * side * (-slope_high - slope_low - by_distance * by_threshold),
            ratio * ratio * (slope_high - slope_low - by_threshold * by_threshold),
        )

    def vote_terms(
        self, margin: Real, threshold: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the loss of weighted votes on one pair, with its derivatives.

        The loss is minus the log-likelihood; the derivatives come as d/dm, d/dt, d2/dm2, d2/dmdt,
        d2/dt2. This is all that a solver asks of a link.
        """
        log_f, slope_f, bend_f = self.win(margin - threshold)
        log_s, slope_s, bend_s = self.win(-margin - threshold)
        log_t, tie_m, tie_t, tie_mm, tie_mt, tie_tt = self.tie(margin, threshold)
        return (
            -(first_wins * log_f + ties * log_t + second_wins * log_s),
            -(first_wins * slope_f + ties * tie_m - second_wins * slope_s),
            first_wins * slope_f - ties * tie_t + second_wins * slope_s,
            -(first_wins * bend_f + ties * tie_mm + second_wins * bend_s),
            first_wins * bend_f - ties * tie_mt - second_wins * bend_s,
            -(first_wins * bend_f + ties * tie_tt + second_wins * bend_s),
        )

    def log_scale_terms(
        self, margin: Real, log_threshold: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the same by the margin and the logarithm of the threshold.

        The loss is not convex in that logarithm, so that the second derivatives are expected ones:
        what so many votes would give on average, which is never negative.
        """
        threshold = threshold_of(log_threshold)
        log_f, slope_f, _ = self.win(margin - threshold)
        log_s, slope_s, _ = self.win(-margin - threshold)
        log_t, tie_m, tie_t, _, _, _ = self.tie(margin, threshold)
        n_votes = first_wins + ties + second_wins
        of_first = n_votes * np.exp(log_f) * slope_f * slope_f
        of_second = n_votes * np.exp(log_s) * slope_s * slope_s
        of_tie = n_votes * np.exp(log_t)
        tie_l = threshold * tie_t
        return (
            -(first_wins * log_f + ties * log_t + second_wins * log_s),
            -(first_wins * slope_f + ties * tie_m - second_wins * slope_s),
            threshold * (first_wins * slope_f + second_wins * slope_s) - ties * tie_l,
            of_first + of_second + of_tie * tie_m * tie_m,
            threshold * (of_second - of_first) + of_tie * tie_m * tie_l,
            threshold * threshold * (of_first + of_second) + of_tie * tie_l * tie_l,
        )

    def forced_terms(
        self, margin: Real, first_wins: Real, second_wins: Real
    ) -> tuple[Real, Real, Real]:
        """Return the loss of votes that cannot be ties, and its two derivatives by the margin."""
        log_f, slope_f, bend_f = self.win(margin)
        log_s, slope_s, bend_s = self.win(-margin)
        return (
            -(first_wins * log_f + second_wins * log_s),
            second_wins * slope_s - first_wins * slope_f,
            -(first_wins * bend_f + second_wins * bend_s),
        )

    def outcomes(self, margin: Real, threshold: Real) -> tuple[Real, Real, Real]:
        """Return the log-probabilities of first wins, tie, second wins."""
        first, second = self.win(margin - threshold)[0], self.win(-margin - threshold)[0]
        return first, self.tie(margin, threshold)[0], second

    def tie_within(self, level: Real) -> Real:
        """Return within which margin the threshold says a tie: here the level is the threshold."""
        return level

    def log_probabilities(self, margin: Real, threshold: Real) -> Floats:
        """Return the three log-probabilities along a new last axis.

        Examples
        --------
        >>> np.exp(Logistic().log_probabilities(0.0, 0.5)).round(3)
        array([0.378, 0.245, 0.378])
        """
        margin, threshold = _together(margin, threshold)
        return np.stack(self.outcomes(margin, threshold), axis=-1)

    def gradient(self, margin: Real, threshold: Real) -> Floats:
        """Return the derivatives of `log_probabilities`; last axis: by margin, by threshold."""
        margin, threshold = _together(margin, threshold)
        first, second = self.win(margin - threshold)[1], self.win(-margin - threshold)[1]
        _, by_margin, by_threshold, *_ = self.tie(margin, threshold)
        rows = [(first, -first), (by_margin, by_threshold), (-second, -second)]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def curvature(self, margin: Real, threshold: Real) -> Floats:
        """Return the second derivatives of `log_probabilities`; last axis: mm, mt, tt."""
        margin, threshold = _together(margin, threshold)
        first, second = self.win(margin - threshold)[2], self.win(-margin - threshold)[2]
        tie = self.tie(margin, threshold)[3:]
        rows = [(first, -first, first), tie, (second, second, second)]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


class Logistic(Link):
    """Bradley-Terry with a tie threshold (Rao-Kupper): the paper's link."""

    name = "logistic"

    def log_cdf(self, x: Real) -> Real:
        """Return log F(x)."""
        return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))

    def log_density(self, x: Real) -> Real:
        """Return log f(x)."""
        return -np.abs(x) - 2.0 * np.log1p(np.exp(-np.abs(x)))

    def density_slope(self, x: Real) -> Real:
        """Return the derivative of log f at x."""
        return -np.tanh(0.5 * x)

    def quantile(self, share: Floats) -> Floats:
        """Return where the noise lies below so often."""
        with np.errstate(divide="ignore"):  # nothing and everything lie infinitely far out
            return np.asarray(np.log(share) - np.log1p(-share))

    def curvature_bounds(self, threshold: Real) -> tuple[Real, Real, Real]:
        """Bound the curvature of minus a log-probability over all margins."""
        return 0.25, 0.5, 0.5 + 1.0 / np.sinh(np.minimum(threshold, 300.0)) ** 2

    def win(self, x: Real) -> tuple[Real, Real, Real]:
        """Return log F at x with its first and second derivative."""
        small = np.exp(-np.abs(x))
        of_other = (small + (1.0 - small) * (x < 0.0)) / (1.0 + small)  # F(-x)
        return (
            np.minimum(x, 0.0) - np.log1p(small),
            of_other,
            -small / ((1.0 + small) * (1.0 + small)),
        )

    def tie(self, margin: Real, threshold: Real) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return log P(tie) and its derivatives, from a closed form.

        log P(tie) = log F(t - m) + log F(t + m) + log(1 - exp(-2 t)).
        """
        log_a, slope_a, bend_a = self.win(threshold - margin)
        log_b, slope_b, bend_b = self.win(threshold + margin)
        gap = -np.expm1(-2.0 * threshold)
        by_gap = 2.0 * (1.0 - gap) / gap
        return (
            log_a + log_b + np.log(gap),
            slope_b - slope_a,
            slope_b + slope_a + by_gap,
            bend_a + bend_b,
            bend_b - bend_a,
            bend_a + bend_b - 2.0 * by_gap / gap,
        )

    def outcomes(self, margin: Real, threshold: Real) -> tuple[Real, Real, Real]:
        """Return the log-probabilities, from the closed form of a tie and F(-x) = F(x) exp(-x)."""
        a, b = margin - threshold, -margin - threshold
        log_a, log_b = log_one_plus(exp_minus(np.abs(a))), log_one_plus(exp_minus(np.abs(b)))
        return (
            np.minimum(a, 0.0) - log_a,
            log_positive(1.0 - exp_minus(2.0 * threshold))
            - np.maximum(a, 0.0)
            - np.maximum(b, 0.0)
            - log_a
            - log_b,
            np.minimum(b, 0.0) - log_b,
        )

    def vote_terms(
        self, margin: Real, threshold: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the loss of weighted votes on one pair, with its derivatives.

        The closed form makes a tie one win against each side, up to a term in the threshold: two
        exponentials give everything.
        """
        a, b = margin - threshold, -margin - threshold
        small_a, small_b = exp_minus(np.abs(a)), exp_minus(np.abs(b))
        lost_a = (small_a + (1.0 - small_a) * (a < 0.0)) / (1.0 + small_a)  # F(-a)
        lost_b = (small_b + (1.0 - small_b) * (b < 0.0)) / (1.0 + small_b)
        gap = 1.0 - exp_minus(2.0 * threshold)
        by_gap = 2.0 * (1.0 - gap) / gap
        by_a = ties - (first_wins + ties) * lost_a
        by_b = ties - (second_wins + ties) * lost_b
        bend_a = (first_wins + ties) * lost_a * (1.0 - lost_a)
        bend_b = (second_wins + ties) * lost_b * (1.0 - lost_b)
        loss = (
            (first_wins + ties) * log_one_plus(small_a)
            + (second_wins + ties) * log_one_plus(small_b)
            - first_wins * np.minimum(a, 0.0)
            - second_wins * np.minimum(b, 0.0)
            + ties * (np.maximum(a, 0.0) + np.maximum(b, 0.0) - log_positive(gap))
        )
        return (
            loss,
            by_a - by_b,
            -by_a - by_b - ties * by_gap,
            bend_a + bend_b,
            bend_b - bend_a,
            bend_a + bend_b + 2.0 * ties * by_gap / gap,
        )

    def log_scale_terms(
        self, margin: Real, log_threshold: Real, first_wins: Real, ties: Real, second_wins: Real
    ) -> tuple[Real, Real, Real, Real, Real, Real]:
        """Return the same by the logarithm of the threshold, with expected second derivatives.

        Expected are n F(t - m) F(t + m) (1 - exp(-2 t)) ties, so that one product gives them all.
        """
        threshold = threshold_of(log_threshold)
        a, b = margin - threshold, -margin - threshold
        small_a, small_b = exp_minus(np.abs(a)), exp_minus(np.abs(b))
        lost_a = (small_a + (1.0 - small_a) * (a < 0.0)) / (1.0 + small_a)  # F(-a)
        lost_b = (small_b + (1.0 - small_b) * (b < 0.0)) / (1.0 + small_b)
        gap = np.maximum(1.0 - exp_minus(2.0 * threshold), np.minimum(threshold, 0.5))
        by_gap = 2.0 * (1.0 - gap) / gap
        by_a = ties - (first_wins + ties) * lost_a
        by_b = ties - (second_wins + ties) * lost_b
        within = (first_wins + ties + second_wins) * lost_a * lost_b
        bend_a, bend_b = within * (1.0 - lost_a), within * (1.0 - lost_b)
        loss = (
            (first_wins + ties) * log_one_plus(small_a)
            + (second_wins + ties) * log_one_plus(small_b)
            - first_wins * np.minimum(a, 0.0)
            - second_wins * np.minimum(b, 0.0)
            + ties * (np.maximum(a, 0.0) + np.maximum(b, 0.0) - log_positive(gap))
        )
        return (
            loss,
            by_a - by_b,
            -threshold * (by_a + by_b + ties * by_gap),
            bend_a + bend_b,
            threshold * (bend_b - bend_a),
            threshold * threshold * (bend_a + bend_b + 2.0 * within * by_gap),
        )


class Probit(Link):
    """Thurstone-Mosteller with a tie threshold: standard normal noise."""

    name = "probit"

    def win(self, x: Real) -> tuple[Real, Real, Real]:
        """Return log F at x with its first and second derivative."""
        slope = normal_hazard(x)
        return log_normal_cdf(x), slope, -slope * (x + slope)

    def log_cdf(self, x: Real) -> Real:
        """Return log F(x)."""
        return log_normal_cdf(x)

    def log_density(self, x: Real) -> Real:
        """Return log f(x)."""
        return -0.5 * x * x - 0.9189385332046727  # log sqrt(2 pi)

    def density_slope(self, x: Real) -> Real:
        """Return the derivative of log f at x."""
        return -x

    def curvature_bounds(self, threshold: Real) -> tuple[Real, Real, Real]:
        """Bound the curvature of minus a log-probability over all margins."""
        return 1.0, 1.0, 1.0 + 1.0 / threshold**2


class Uniform(Link):
    """Noise uniform on [-1, 1], its ends rounded off so that no vote is ever impossible.

    Strictly uniform noise gives probability zero to an upset of more than one unit, and then no fit
    exists. Here the density is exactly 1/2 for ``|x| <= 1 - TAIL`` and falls off exponentially
    beyond, with mass ``TAIL / 2`` on either side. It is a proper log-concave distribution: the
    three probabilities sum to one everywhere and the fit stays convex; inside the support they are
    exactly the uniform model's (a tie has probability ``threshold`` there).
    """

    name = "uniform"
    TAIL: ClassVar[float] = 0.1

    def log_cdf(self, x: Real) -> Real:
        """Return log F(x)."""
        inside = np.minimum(np.maximum(x, -_UNIFORM_EDGE), _UNIFORM_EDGE)
        above = -0.5 * _UNIFORM_TAIL * np.expm1(-np.maximum(x - _UNIFORM_EDGE, 0.0) / _UNIFORM_TAIL)
        below = np.minimum(x + _UNIFORM_EDGE, 0.0) / _UNIFORM_TAIL
        return np.log(0.5 + 0.5 * inside + above) + below

    def log_density(self, x: Real) -> Real:
        """Return log f(x)."""
        return np.log(0.5) - np.maximum(np.abs(x) - _UNIFORM_EDGE, 0.0) / _UNIFORM_TAIL

    def density_slope(self, x: Real) -> Real:
        """Return the derivative of log f at x."""
        return -np.sign(x) * (np.abs(x) > _UNIFORM_EDGE) / _UNIFORM_TAIL

    def curvature_bounds(self, threshold: Real) -> tuple[Real, Real, Real]:
        """Bound the curvature of minus a log-probability over all margins."""
        steep = 1.0 / _UNIFORM_TAIL
        return (
            steep * steep,
            steep * (steep + 1.0 / threshold),
            (steep + 1.0 / threshold) ** 2,
        )


# Compiled code sees module constants, not class attributes.
_UNIFORM_TAIL = Uniform.TAIL
_UNIFORM_EDGE = 1.0 - Uniform.TAIL
_ROOT_HALF, _ROOT_2_OVER_PI = 0.5**0.5, (2.0 / np.pi) ** 0.5

LINKS: dict[str, type[Link]] = {link.name: link for link in (Logistic, Probit, Uniform)}


def link_named(link: str | Link) -> Link:
    """Return the link of that name; a `Link` is returned as it is."""
    if isinstance(link, Link):
        return link
    try:
        return LINKS[link]()
    except (KeyError, TypeError):
        raise InvalidSetting(f"link {link!r} is not one of {', '.join(LINKS)}.") from None


# Of these, compiled code has versions of its own.


def exp_minus(x: Real) -> Real:
    """Return exp(-x) for x >= 0."""
    return np.exp(-x)


def threshold_of(log_threshold: Real) -> Real:
    """Return exp(x), within what the formulas can tell apart."""
    return np.exp(np.minimum(np.maximum(log_threshold, LOWEST_LOG), HIGHEST_LOG))


def log_one_plus(x: Real) -> Real:
    """Return log(1 + x) for x from 0 to 1."""
    return np.log1p(x)


def log_positive(x: Real) -> Real:
    """Return log(x) for a positive number."""
    return np.log(x)


def log_normal_cdf(x: Real) -> Real:
    """Return the logarithm of the standard normal c.d.f."""
    return scipy.special.log_ndtr(x)


def normal_hazard(x: Real) -> Real:
    """Return the standard normal density over its c.d.f., with all its digits in the far tail."""
    return _ROOT_2_OVER_PI / scipy.special.erfcx(-x * _ROOT_HALF)


def _together(margin: Real, threshold: Real) -> tuple[Floats, Floats]:
    margin, threshold = np.broadcast_arrays(
        np.asarray(margin, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    )
    return margin, threshold
