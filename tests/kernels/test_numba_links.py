"""What numba is taught: the types of links, and functions of its own."""

import numpy as np
import pytest
from numba import njit, typeof

from isplitlbi.kernels import numba_links
from isplitlbi.model import links
from isplitlbi.model.links import LINKS, Logistic

FUNCTIONS = {
    "exp_minus": np.concatenate([[0.0], np.geomspace(1e-300, 708.0, 5000)]),
    "log_one_plus": np.concatenate([[0.0], np.geomspace(1e-300, 1.0, 5000)]),
    "log_positive": np.geomspace(1e-300, 1e300, 5001),
}


def compiled(name):
    taught = getattr(links, name)
    function = njit(lambda x: taught(x))  # noqa: PLW0108  numba compiles callers only
    return lambda points: np.array([function(x) for x in points])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_has_all_its_digits(name):
    points = FUNCTIONS[name]
    found, expected = compiled(name)(points), getattr(links, name)(points)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)


def test_logarithms_near_one_are_exact_up_to_rounding():
    points = 1.0 - np.geomspace(1e-16, 0.5, 200)
    np.testing.assert_allclose(compiled("log_positive")(points), np.log(points), atol=1e-14)


def test_what_is_too_small_is_no_trap():
    found = compiled("exp_minus")(np.array([1e3, 1e300, np.inf, np.nan]))
    assert np.all(found[:3] < 1e-300)
    assert np.all(found[:3] >= 0.0)
    assert np.isnan(found[3])


def test_links_have_types_of_their_own_and_those_of_others_are_marked():
    class Mine(Logistic):
        """Somebody's link."""

    types = [typeof(link()) for link in (*LINKS.values(), Mine)]
    assert len(set(types)) == len(types)
    assert typeof(Logistic()) is typeof(Logistic())
    assert [numba_links.FOREIGN in each.name for each in types] == [*[False] * len(LINKS), True]


def test_functions_of_others_that_belong_to_no_module_are_compiled_as_ever():
    def double(x):
        return x + x

    double.__module__ = None
    assert njit(double)(1.5) == 3.0
