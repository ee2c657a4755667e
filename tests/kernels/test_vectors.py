"""What is done with vectors: the compiled functions beside those in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isplitlbi.kernels import numba_vectors, vectors
from loops import close

SIZES, SEEDS = st.integers(1, 30), st.integers(0, 10_000)

# How each is called, with two vectors, a third of zeros and ones, and a number.
CALLS = {
    "fill": lambda one, _other, _free, number: (one, number),
    "add": lambda one, other, _free, number: (one, number, other),
    "added": lambda one, other, _free, number: (one, number, other),
    "times": lambda one, other, _free, _number: (one, other),
    "divided": lambda one, other, _free, _number: (one, 2.0 + np.abs(other)),
    "freed": lambda one, other, free, number: (free, one, other, number),
    "dot": lambda one, other, _free, _number: (one, other),
    "total": lambda one, _other, _free, _number: (one,),
}


def test_every_function_has_its_twin_and_is_called_here():
    names = [each.__name__ for each in vectors.VECTORS]
    assert names == [each.py_func.__name__ for each in numba_vectors.VECTORS] == list(CALLS)


@pytest.mark.parametrize("name", CALLS)
@given(seed=SEEDS, size=SIZES)
def test_compiled_or_not_the_result_is_the_same(name, seed, size):
    results = []
    for module in (vectors, numba_vectors):
        rng = np.random.default_rng(seed)
        one, other = rng.normal(size=(2, size))
        free, number = (rng.random(size) < 0.5).astype(float), rng.normal()
        function = getattr(module, name)
        found = getattr(function, "py_func", function)(*CALLS[name](one, other, free, number))
        results.append([one] if found is None else [one, found])
    for first, second in zip(*results, strict=True):
        close(first, second, 1e-12)
