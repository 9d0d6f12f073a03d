"""One generator in two languages."""

import itertools

import numpy as np
import pytest

from blockgreedy import _core
from blockgreedy.base.random import Random


@pytest.mark.parametrize(
    ("m", "k"), [(1, 1), (2, 1), (7, 1), (7, 3), (7, 6), (1000, 1), (1000, 700), (3_000_000, 600), (2**31 - 1, 2)]
)
@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_selections_are_the_same_in_python_and_cpp(m, k, seed):
    python = Random(seed)
    assert _core.draw_subset(seed, m, k, 5) == [python.draw_subset(m, k) for _ in range(5)]


def test_first_words_are_those_of_splitmix64():
    # values of the published reference implementation for seed 1234567
    generator = Random(1234567)
    assert [generator.next() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_every_subset_is_equally_likely():
    m, k, draws = 6, 3, 40_000
    counts = dict.fromkeys(itertools.combinations(range(m), k), 0)
    for subset in _core.draw_subset(3, m, k, draws):
        counts[tuple(subset)] += 1
    expected = draws / len(counts)
    chi_square = sum((c - expected) ** 2 / expected for c in counts.values())
    assert chi_square < 43.8  # 0.1 % point of chi-square with 19 degrees of freedom


def test_below_is_uniform_for_a_range_that_does_not_divide_the_words():
    values = np.array(_core.draw_subset(5, 3 * 2**29 + 1, 1, 20_000)).ravel()
    assert np.mean(values < 2**29) == pytest.approx(1 / 3, abs=0.012)
