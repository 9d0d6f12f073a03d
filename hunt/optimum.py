"""An optimiser of the oracle's own: how far a point that stalled really is from the minimum.

Columns are centred (with an intercept) and scaled to variance 1 in extended precision first, which takes away what
makes raw tables hard; then proximal Newton steps in float64. Any point is a valid upper bound of the minimum, because
its objective is computed in extended precision on the problem as given.
"""

from __future__ import annotations

import time

import numpy as np

from hunt.oracle import Exact, L


class Scaled:
    """The problem in z = sd·w with centred columns: the intercept is that at the columns' means."""

    def __init__(self, exact: Exact) -> None:
        self.exact = exact
        self.sd = np.where(exact.sd > 0, exact.sd, 1)
        self.Z = (exact.centred / self.sd).astype(np.float64)
        self.l1 = (exact.l1 / self.sd).astype(np.float64)
        self.l2 = (exact.l2 / self.sd**2).astype(np.float64)
        self.low, self.high = (exact.low * self.sd).astype(np.float64), (exact.high * self.sd).astype(np.float64)

    def point(self, z: np.ndarray, b: float) -> tuple[np.ndarray, float]:
        """(w, intercept) on the scale of the data, in float64."""
        w = np.clip(z / self.sd, self.exact.low, self.exact.high).astype(np.float64)
        shift = b - np.sum(self.exact.means * w.astype(L))
        return w, float(shift) if self.exact.intercept else 0.0

    def value(self, z: np.ndarray, b: float) -> float:
        loss = np.sum(self.exact.omega * self.exact.losses(self.Z @ z + b + self.exact.offset)[0])
        return float(loss + np.sum(self.l1 * np.abs(z)) + np.sum(self.l2 * z * z) / 2)


def minimise(exact: Exact, w: np.ndarray, b: float, seconds: float = 1.0) -> tuple[np.ndarray, float, np.longdouble]:
    """The best point found from 0 and from (w, b): weights, intercept, objective in extended precision."""
    until = time.perf_counter() + seconds
    scaled = Scaled(exact)
    null = exact.best_intercept()
    b_null = 0.0 if null is None else float(null)
    best = np.asarray(w, dtype=np.float64), float(b), exact.primal(w, b)
    with np.errstate(all="ignore"):
        start_z = (np.asarray(w, dtype=L) * scaled.sd).astype(np.float64)
        start_b = float(L(b) + np.sum(exact.means * np.asarray(w, dtype=L))) if exact.intercept else 0.0
        for z, at in ((np.zeros_like(start_z), b_null), (start_z, start_b)):
            if not (np.all(np.isfinite(z)) and np.isfinite(scaled.value(z, at))):
                continue
            z, at = _newton(scaled, z, at, until)
            w_new, b_new = scaled.point(z, at)
            value = exact.primal(w_new, b_new)
            if value < best[2]:
                best = w_new, b_new, value
    return best


def _newton(scaled: Scaled, z: np.ndarray, b: float, until: float) -> tuple[np.ndarray, float]:
    exact, Z = scaled.exact, scaled.Z
    value, damping = scaled.value(z, b), 1e-6
    for _ in range(200):
        if time.perf_counter() > until:
            break
        _, slope, curvature = exact.losses(Z @ z + b + exact.offset)
        theta = (exact.omega * slope).astype(np.float64)
        flat = 0.0 if exact.loss == "squared" else damping
        weights = (exact.omega * np.maximum(curvature, flat)).astype(np.float64)
        centre = weights @ Z / np.sum(weights) if exact.intercept else np.zeros(Z.shape[1])
        spread = Z - centre
        hessian = spread.T @ (weights[:, None] * spread)
        by_b = float(np.sum(theta)) if exact.intercept else 0.0
        grad = Z.T @ theta - centre * by_b
        step = _model_minimum(scaled, hessian, grad, z) - z
        step_b = -(by_b / float(np.sum(weights)) + float(centre @ step)) if exact.intercept else 0.0
        for size in (1.0, 0.5, 0.25, 0.1, 0.01, 1e-3):
            trial, trial_b = z + size * step, b + size * step_b
            trial_value = scaled.value(trial, trial_b)
            if trial_value < value:
                break
        else:
            if damping >= 1:
                break
            damping *= 100
            continue
        gained = value - trial_value
        z, b, value = trial, trial_b, trial_value
        damping = max(damping / 10, 1e-12)
        if gained <= 1e-14 * value:
            break
    return z, b


def _model_minimum(scaled: Scaled, hessian: np.ndarray, grad: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Coordinate descent on the quadratic model, then the linear system of the signs that it found."""
    new, slope = z.copy(), grad.copy()
    total = np.diag(hessian) + scaled.l2
    l1, l2, low, high = scaled.l1, scaled.l2, scaled.low, scaled.high
    for round_ in range(20):
        moved = 0.0
        for _ in range(10):
            moved = 0.0
            for j in range(len(new)):
                v = hessian[j, j] * new[j] - slope[j]
                size = abs(v) - l1[j]
                at = 0.0 if size <= 0 or total[j] <= 0 else (size if v > 0 else -size) / total[j]
                at = min(max(at, low[j]), high[j])
                change = at - new[j]
                if change:
                    slope += hessian[:, j] * change
                    new[j] = at
                    moved = max(moved, abs(change))
        held = (new != 0) & (new > low) & (new < high)
        if not np.any(held) or moved <= 1e-14 * np.max(np.abs(new)):
            break
        block = hessian[np.ix_(held, held)] + np.diag(l2[held])
        right = slope[held] + l1[held] * np.sign(new[held]) + l2[held] * new[held]
        step = -np.linalg.lstsq(block, right, rcond=1e-14)[0]
        # as far as the first weight that would change its sign or meet a bound
        with np.errstate(divide="ignore", invalid="ignore"):
            to_zero = np.where(new[held] * step < 0, -new[held] / step, np.inf)
            to_bound = np.where(step > 0, (high[held] - new[held]) / step, (low[held] - new[held]) / step)
        limit = min(1.0, float(np.min(to_zero)), float(np.min(np.where(step == 0, np.inf, to_bound))))
        new[held] += limit * step
        new[held] = np.where(to_zero <= limit, 0.0, new[held])
        new = np.clip(new, low, high)
        slope = grad + hessian @ (new - z)
        if limit == 1.0 and round_ > 2:
            break
    return new
