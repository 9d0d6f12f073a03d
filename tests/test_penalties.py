"""The scalar penalty: C++ and NumPy agree, and both do what the formulas say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockgreedy import _core
from blockgreedy.problem.penalties import Penalty

finite = st.floats(-50, 50).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
l1s = st.sampled_from([0.0, 0.3, 1.0, 4.0])
l2s = st.sampled_from([0.0, 0.2, 3.0])
boxes = st.sampled_from([(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0), (-1.0, 2.0), (0.0, 0.0), (0.0, 1.5)])
curvatures = st.sampled_from([0.05, 1.0, 7.0])


def one(l1, l2, box):
    return Penalty(1.0, np.array([l1]), l2, None, np.array([box[0]]), np.array([box[1]]))


def cpp(what, l1, l2, box, *args):
    return _core.evaluate_penalty(what, l1, l2, *box, *args)


def inside(w, box):
    return min(max(w, box[0]), box[1])


@settings(max_examples=300, deadline=None)
@given(l1s, l2s, boxes, finite, finite, curvatures)
def test_cpp_and_numpy_agree(l1, l2, box, w, grad, curvature):
    w = inside(w, box)
    penalty = one(l1, l2, box)
    arrays = np.array([w]), np.array([grad]), np.array([curvature])
    z = penalty.prox(*arrays)
    assert cpp("prox", l1, l2, box, w, grad, curvature) == pytest.approx(z[0], rel=1e-14, abs=1e-300)
    gain = penalty.gain(arrays[0], z, arrays[1], arrays[2])[0]
    assert cpp("gain", l1, l2, box, w, z[0], grad, curvature) == pytest.approx(gain, rel=1e-12, abs=1e-12)
    for most in (np.inf, 0.3):
        expected = penalty.conjugate(arrays[1], most)[0]
        assert cpp("conjugate", l1, l2, box, grad, most) == pytest.approx(expected, rel=1e-12)
    distance = penalty.subgradient_distance(arrays[0], arrays[1])[0]
    assert cpp("subgradient_distance", l1, l2, box, w, grad) == pytest.approx(distance, rel=1e-12, abs=1e-300)
    assert cpp("value", l1, l2, box, w) == pytest.approx(penalty.value(arrays[0]), rel=1e-14)


@settings(max_examples=200, deadline=None)
@given(l1s, l2s, boxes, finite, finite, curvatures, finite)
def test_prox_minimises_its_model_and_gain_is_the_decrease(l1, l2, box, w, grad, curvature, other):
    w, other = inside(w, box), inside(other, box)

    def model(z):
        return curvature / 2 * (z - w) ** 2 + grad * (z - w) + l1 * abs(z) + l2 / 2 * z * z

    z = cpp("prox", l1, l2, box, w, grad, curvature)
    assert box[0] <= z <= box[1]
    assert model(z) <= model(other) + 1e-9 * (1 + abs(model(other)))
    gain = cpp("gain", l1, l2, box, w, z, grad, curvature)
    assert gain == pytest.approx(model(w) - model(z), rel=1e-7, abs=1e-7)
    assert gain >= -1e-12


@settings(max_examples=200, deadline=None)
@given(l1s, l2s, boxes, finite, finite)
def test_conjugate_bounds_every_point_and_is_reached(l1, l2, box, v, z):
    z = inside(z, box)
    value = cpp("conjugate", l1, l2, box, v, np.inf)
    assert value >= v * z - cpp("value", l1, l2, box, z) - 1e-9
    if np.isfinite(value):  # the supremum is at the prox of a model with vanishing curvature
        grid = np.linspace(max(box[0], -300), min(box[1], 300), 60001)
        assert value <= np.max(v * grid - l1 * np.abs(grid) - l2 / 2 * grid**2) + 1e-2


@settings(max_examples=200, deadline=None)
@given(l1s, l2s, boxes, finite, finite)
def test_a_limited_conjugate_bounds_every_point_whose_penalty_is_no_larger(l1, l2, box, v, z):
    z = inside(z, box)
    most = cpp("value", l1, l2, box, z)
    value = cpp("conjugate", l1, l2, box, v, most)
    assert value >= v * z - most - 1e-9
    assert value <= cpp("conjugate", l1, l2, box, v, np.inf)


@settings(max_examples=200, deadline=None)
@given(l1s, l2s, boxes, finite, finite, curvatures)
def test_subgradient_distance_is_zero_exactly_where_prox_stays(l1, l2, box, w, grad, curvature):
    w = inside(w, box)
    z = cpp("prox", l1, l2, box, w, grad, curvature)
    distance = cpp("subgradient_distance", l1, l2, box, w, grad)
    # a step may be shorter than the distance asks for: it ends at the kink in 0 and at a bound
    assert abs(z - w) * (curvature + l2) <= distance + 1e-7
    assert z != w or distance <= 1e-7


def test_an_empty_column_is_sent_to_zero_if_penalised_and_left_alone_if_not():
    box = (-np.inf, np.inf)
    assert cpp("prox", 1.0, 0.0, box, 3.0, 0.0, 0.0) == 0.0
    assert cpp("prox", 0.0, 0.0, box, 3.0, 0.0, 0.0) == 3.0
    assert one(1.0, 0.0, box).prox(np.array([3.0]), np.zeros(1), np.zeros(1))[0] == 0.0
    assert one(0.0, 0.0, box).prox(np.array([3.0]), np.zeros(1), np.zeros(1))[0] == 3.0
