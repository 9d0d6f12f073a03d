"""How far scores are from those of exact models, judged by gaps and by what steps change."""

import numpy as np
import pytest

import blockgreedy as bg
from blockgreedy.solvers.score_error import NEAR, HeldOut, ScoreError


def seen(*steps):
    error = ScoreError()
    error.begin(1.0)
    for score, gap in steps:
        error.see(np.array([score]), np.array([gap]))
    return error


def test_nothing_is_near_before_the_first_step():
    assert not ScoreError().is_small
    error = seen((1.0, 0.0))
    assert error.is_small
    error.begin(0.9)
    assert not error.is_small


def test_the_error_of_a_gap_is_learnt_from_what_steps_change():
    many, few = ([(1 + error * 2.0**-k, 2.0**-k) for k in range(12)] for error in (3.0, 0.1))
    assert seen(*many).value == pytest.approx(3 * 2.0**-11)
    assert seen(*few).value == pytest.approx(0.1 * 2.0**-11)


def test_folds_whose_scores_change_in_opposite_directions_do_not_cancel():
    error = ScoreError()
    error.see(np.array([1.0, 1.0]), np.array([1e-2, 1e-2]))
    error.see(np.array([1.5, 0.5]), np.array([1e-3, 1e-3]))
    assert error.value > NEAR


def test_a_gap_that_does_not_fall_is_no_sign_of_the_end():
    assert not seen((1.0, 0.1), (1.0, 0.1), (1.0, 0.1)).is_small


def test_what_was_learnt_counts_less_the_further_alpha_falls():
    values = []
    for fall in (1.07, 10.0):
        error = seen(*[(1.0, 2.0**-k) for k in range(12)])
        error.begin(1 / fall)
        error.see(np.array([1.0]), np.array([1e-3]))
        values.append(error.value)
    assert values[1] > 5 * values[0]


@pytest.mark.parametrize("with_offset", [False, True])
def test_rows_held_out_are_scored_with_their_own_targets(rng, with_offset):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    offset = rng.normal(size=50) if with_offset else None
    weights = (np.arange(50) % 5 > 0).astype(float)
    problem = bg.Problem(X, y, alpha=1.0, sample_weight=weights, offset=offset)
    out, predictions = weights == 0, rng.normal(size=50)
    whole = predictions if offset is None else predictions + offset
    expected = np.mean(0.5 * (whole[out] - y[out]) ** 2)
    assert HeldOut(problem).mean_loss(predictions) == pytest.approx(expected)
    assert HeldOut(bg.Problem(X, y, alpha=1.0)).mean_loss(predictions) == 0.0
