"""What numba is taught before it compiles the loops: links, and functions that vectorise.

A `Link` becomes a type whose methods are the Python methods of its class. The exponential and the
logarithm of the logistic link become polynomials, which the compiler evaluates for several votes at
once; calls into the C library would take them one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)
from numpy.polynomial import chebyshev

from isplitlbi.kernels.numba_compiling import FOREIGN, INSIDE_LOOPS, WITHOUT_WRAPPER
from isplitlbi.model import links
from isplitlbi.model.answering import NEVER, ForcedChoice, LogThreshold
from isplitlbi.model.links import (
    LINKS,
    Link,
    exp_minus,
    log_normal_cdf,
    log_one_plus,
    log_positive,
    normal_hazard,
    threshold_of,
)

# --- links ---------------------------------------------------------------------------------

FORMULAS = (
    "log_cdf",
    "log_density",
    "density_slope",
    "curvature_bounds",
    "win",
    "tie",
    "outcomes",
    "vote_terms",
    "log_scale_terms",
    "forced_terms",
    "tie_within",
)


def _log_vote_terms(self, margin, level, first_wins, ties, second_wins):
    return self.log_scale_terms(margin, level, first_wins, ties, second_wins)


def _log_outcomes(self, margin, level):
    return self.outcomes_of_link(margin, threshold_of(level))


def _forced_vote_terms(self, margin, level, first_wins, ties, second_wins):
    loss, by_margin, mm = self.forced_terms(margin, first_wins, second_wins)
    return loss, by_margin, 0.0, mm, 0.0, 0.0


def _forced_outcomes(self, margin, level):
    return self.win(margin)[0], NEVER, self.win(-margin)[0]


def _log_tie_within(self, level):
    return threshold_of(level)


def _forced_tie_within(self, level):
    return 0.0


# What stands for the formulas of a link on another scale (see `model.answering`).
ON_SCALE: dict[type[Any], dict[str, Any]] = {
    LogThreshold: {
        "vote_terms": _log_vote_terms,
        "outcomes": _log_outcomes,
        "tie_within": _log_tie_within,
    },
    ForcedChoice: {
        "vote_terms": _forced_vote_terms,
        "outcomes": _forced_outcomes,
        "tie_within": _forced_tie_within,
    },
}


class LinkType(types.Opaque):
    """The numba type of one link class; a link holds no data, so its value is nothing.

    The type knows the class by a name only, so that what numba writes to disk never refers to it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name)


_FORMULAS: dict[str, dict[str, Any]] = {}  # by the names of their types, and by their own


@cache  # numba asks at every call
def _type_of_class(link_class: type[Link], scale: type[Any] | None = None) -> LinkType:
    # Two classes of one name may be met in one process, as in a notebook.
    own = link_class in LINKS.values()
    name = f"link {link_class.name}" if own else f"{FOREIGN} {len(_FORMULAS)}"
    if scale is not None:
        name = f"{name}, {scale.__name__}"
    of_class = {formula: getattr(link_class, formula) for formula in FORMULAS}
    of_class["outcomes_of_link"] = link_class.outcomes
    _FORMULAS[name] = of_class | ({} if scale is None else ON_SCALE[scale])
    return LinkType(name)


register_model(LinkType)(models.OpaqueModel)


@typeof_impl.register(Link)
def _type_of_link(value: Link, _context: Any) -> LinkType:
    return _type_of_class(type(value))


@typeof_impl.register(LogThreshold)
@typeof_impl.register(ForcedChoice)
def _type_on_scale(value: LogThreshold | ForcedChoice, _context: Any) -> LinkType:
    scale: Any = type(value)
    return _type_of_class(type(value.link), scale)


@unbox(LinkType)
def _unbox_link(_type: Any, _value: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())


def _teach(formula: str, like: Any) -> None:
    def implementation(link: Any, *_arguments: Any) -> Any:
        return _FORMULAS[link.name][formula]

    implementation.__signature__ = signature(like)  # type: ignore[attr-defined]
    # Not strict: a subclass may name its parameters as it likes.
    options: dict[str, Any] = {"strict": False, "jit_options": INSIDE_LOOPS}
    overload_method(LinkType, formula, **options)(implementation)


for _formula in FORMULAS:
    _teach(_formula, getattr(Link, _formula))
_teach("outcomes_of_link", Link.outcomes)


@intrinsic
def varies(_context, link):
    """Tell, while compiling, whether votes of one user may have several thresholds."""
    answer = LogThreshold.__name__ in link.name

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.boolean, answer)

    return types.boolean(link), generate


@njit(**INSIDE_LOOPS, **WITHOUT_WRAPPER)
def level_of_vote(link, threshold, k, chunk):
    """Return the threshold of a vote among those that are evaluated together."""
    return chunk[k + np.uint64(10 * 128)] if varies(link) else threshold


# --- functions -----------------------------------------------------------------------------


def _powers(function: Callable[[Any], Any], begin: float, end: float, degree: int) -> Any:
    """Return a polynomial for a function, highest power first, in a variable from -1 to 1."""
    middle, reach = 0.5 * (begin + end), 0.5 * (end - begin)
    fitted = chebyshev.chebinterpolate(lambda x: function(middle + reach * x), degree)
    return tuple(chebyshev.cheb2poly(fitted)[::-1].tolist())


_LOG_2 = math.log(2.0)
_HALF_LOG_2 = 0.5 * _LOG_2
_EXP = _powers(np.exp, -_HALF_LOG_2, _HALF_LOG_2, 11)
# log(1 + x) = 2 artanh(z) with z = x / (2 + x), at most 1/3; this is artanh(z) / z in z^2.
_LOG = _powers(lambda square: np.arctanh(np.sqrt(square)) / np.sqrt(square), 0.0, 1.0 / 9.0, 10)

_INVERSE_LOG_2 = 1.0 / _LOG_2
# The logarithm of 2 in two parts, the first with so few digits that its multiples are exact.
_LOG_2_FRONT = float(np.float32(_LOG_2))
_LOG_2_BACK = 2.3190468138462996e-17 + (_LOG_2 - _LOG_2_FRONT)
_2_TO_52, _BITS_OF_2_TO_52, _FRACTION = 2.0**52, 1075 << 52, (1 << 52) - 1
_ROUNDER = 1.5 * 2.0**52  # added to a number, it leaves the nearest integer in the lowest bits
_TO_UNIT = 1.0 / _HALF_LOG_2
_LARGEST = 708.0  # exp(-708) is the last that has all its digits


@intrinsic
def _bits_of(_context, _value):
    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(_context, _value):
    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@njit(**INSIDE_LOOPS)
def _polynomial(powers, x):
    value = powers[0]
    for k in range(1, len(powers)):
        value = value * x + powers[k]
    return value


@overload(exp_minus, jit_options=INSIDE_LOOPS)
def _exp_minus(x):
    def implementation(x):
        # exp(-x) = 2^n exp(r): n into the exponent's bits, the rest r by a polynomial.
        x = _LARGEST if x > _LARGEST else x
        rounded = _ROUNDER - x * _INVERSE_LOG_2
        n = rounded - _ROUNDER
        rest = (-x - n * _LOG_2_FRONT) - n * _LOG_2_BACK
        power_of_2 = _float_of((_bits_of(rounded) << 52) + (1023 << 52))
        return _polynomial(_EXP, rest * _TO_UNIT) * power_of_2

    return implementation


@overload(log_one_plus, jit_options=INSIDE_LOOPS)
def _log_one_plus(x):
    def implementation(x):
        z = x / (2.0 + x)
        return 2.0 * z * _polynomial(_LOG, 18.0 * z * z - 1.0)

    return implementation


@overload(log_positive, jit_options=INSIDE_LOOPS)
def _log_positive(x):
    def implementation(x):
        # x = 2^n m with m from 1 to 2, both read from the bits.
        bits = _bits_of(x)
        n = _float_of((bits >> 52) + _BITS_OF_2_TO_52) - (_2_TO_52 + 1023.0)
        m = _float_of((bits & _FRACTION) + (1023 << 52))
        return n * _LOG_2 + log_one_plus(m - 1.0)

    return implementation


def _refuse_arrays(x):
    if not isinstance(x, types.Float):
        raise TypingError("this function of a link is compiled for one number at a time")


@overload(threshold_of, jit_options=INSIDE_LOOPS)
def _threshold_of(x):
    _refuse_arrays(x)

    def implementation(x):
        x = min(max(x, links.LOWEST_LOG), links.HIGHEST_LOG)
        small = exp_minus(abs(x))
        return small + (1.0 / small - small) * (x > 0.0)

    return implementation


@overload(log_normal_cdf, jit_options=INSIDE_LOOPS)
def _log_normal_cdf(x):
    _refuse_arrays(x)

    def implementation(x):
        if x > _FAR:
            return math.log(0.5 * math.erfc(-x * 0.7071067811865476))
        return -0.5 * x * x - _LOG_ROOT_2_PI - math.log(-x) + math.log(_mills_series(x))

    return implementation


@overload(normal_hazard, jit_options=INSIDE_LOOPS)
def _normal_hazard(x):
    _refuse_arrays(x)

    def implementation(x):
        if x > _FAR:
            return math.exp(-0.5 * x * x - _LOG_ROOT_2_PI - log_normal_cdf(x))
        return -x / _mills_series(x)

    return implementation


# Far in the tail erfc underflows; the asymptotic series of the Mills ratio is exact there.
_FAR, _LOG_ROOT_2_PI = -25.0, 0.9189385332046727


@njit(**INSIDE_LOOPS)
def _mills_series(x):
    y = 1.0 / (x * x)
    return 1.0 - y * (1.0 - 3.0 * y * (1.0 - 5.0 * y * (1.0 - 7.0 * y * (1.0 - 9.0 * y))))
