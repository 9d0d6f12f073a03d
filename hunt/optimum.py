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
    with np.errstate(over="ignore"):  # a limit beyond float64 is none
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
    value = scaled.value(z, b)
    for _ in range(300):
        if time.perf_counter() > until:
            break
        gained = 0.0
        for floor in (1e-6, 1e-2, 1.0):  # Newton's step; where the loss is flat only one under a parabola is sure
            step, step_b = _step(scaled, z, b, floor)
            for size in (1.0, 0.5, 0.2, 0.05):
                trial = scaled.value(z + size * step, b + size * step_b)
                if trial < value:
                    z, b, gained, value = z + size * step, b + size * step_b, value - trial, trial
                    break
            if gained > 1e-3 * value:
                break
        if gained <= 1e-14 * value:
            break
    return z, b


def _step(scaled: Scaled, z: np.ndarray, b: float, floor: float) -> tuple[np.ndarray, float]:
    """To the minimum of a quadratic model; the intercept takes its best value for any weights."""
    exact, Z = scaled.exact, scaled.Z
    t = Z @ z + b + exact.offset
    _, slope, curvature = exact.losses(t)
    if exact.loss == "huber":
        parabola = exact.delta / np.maximum(np.abs(t - exact.y), exact.delta)
    elif exact.loss == "logistic":  # the narrowest that touches the loss from above
        far = np.maximum(np.abs(t), L(1e-3))
        parabola = np.tanh(far / 2) / (2 * far)
    else:
        parabola = {"squared": 1.0, "squared_hinge": 2.0}[exact.loss]
    curvature = np.maximum(curvature, floor * parabola)
    theta, weights = (exact.omega * slope).astype(np.float64), (exact.omega * curvature).astype(np.float64)
    total = float(np.sum(weights))
    centre = weights @ Z / total if exact.intercept else np.zeros(Z.shape[1])
    spread = Z - centre
    by_b = float(np.sum(theta)) if exact.intercept else 0.0
    hessian = spread.T @ (weights[:, None] * spread)
    step = _model_minimum(scaled, hessian, Z.T @ theta - centre * by_b, z) - z
    return step, -(by_b / total + float(centre @ step)) if exact.intercept else 0.0


def _model_minimum(scaled: Scaled, hessian: np.ndarray, grad: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Of gradᵀd + ½dᵀHd + penalty(z + d): coordinate descent finds signs, linear systems the weights of these."""
    new, slope = z.copy(), grad.copy()
    for _ in range(60):
        moved = max(_sweep(scaled, hessian, slope, new) for _ in range(3))
        if moved <= 1e-14 * np.max(np.abs(new), initial=0.0):
            break
        for _ in range(len(new)):
            if _to_first_change(scaled, hessian, slope, new):
                break
            slope = grad + hessian @ (new - z)
        slope = grad + hessian @ (new - z)
    return new


def _sweep(scaled: Scaled, hessian: np.ndarray, slope: np.ndarray, new: np.ndarray) -> float:
    """One pass of coordinate descent, in place; the largest change."""
    moved = 0.0
    for j in range(len(new)):
        total = hessian[j, j] + scaled.l2[j]
        v = hessian[j, j] * new[j] - slope[j]
        size = abs(v) - scaled.l1[j]
        at = 0.0 if size <= 0 or total <= 0 else (size if v > 0 else -size) / total
        change = min(max(at, scaled.low[j]), scaled.high[j]) - new[j]
        if change:
            slope += hessian[:, j] * change
            new[j] += change
            moved = max(moved, abs(change))
    return moved


def _to_first_change(scaled: Scaled, hessian: np.ndarray, slope: np.ndarray, new: np.ndarray) -> bool:
    """Towards the minimum for the present signs, as far as the first weight at 0 or at a bound; True if none was."""
    held = np.flatnonzero((new != 0) & (new > scaled.low) & (new < scaled.high))
    if not len(held):
        return True
    block = hessian[np.ix_(held, held)] + np.diag(scaled.l2[held])
    right = slope[held] + scaled.l1[held] * np.sign(new[held]) + scaled.l2[held] * new[held]
    step = -np.linalg.lstsq(block, right, rcond=1e-12)[0]
    rest = right + block @ step
    along = bool(np.linalg.norm(rest) > 1e-7 * np.linalg.norm(right))
    if along:  # columns that depend on each other: the loss does not change this way, the penalty falls
        step = -rest
    ends = np.where(step > 0, scaled.high[held], scaled.low[held])
    ends = np.where(new[held] * step < 0, 0.0, ends)  # a weight that shrinks stops at 0
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step == 0, np.inf, (ends - new[held]) / step)
    limit = float(np.min(reach)) if along and np.any(np.isfinite(reach)) else min(1.0, float(np.min(reach)))
    new[held] = np.where(reach <= limit, ends, new[held] + limit * step)
    return limit == 1.0 and not along
