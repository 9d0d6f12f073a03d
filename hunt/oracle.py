"""The judge: objective, dual value and null model in extended precision, without a line of the package.

The numbers are np.longdouble: 64 bits of mantissa and exponents to ±4932 on x86, so that neither timestamps nor data
scaled by 1e300 trouble it. (Where longdouble is float64, the hunt would report its own rounding; it refuses to run.)

The dual of  Σ ω_i loss(y_i, (Xw)_i + b + offset_i) + Σ_j (l1_j|w_j| + l2_j/2·w_j²),  lower ≤ w ≤ upper,  is

    D(θ) = θ·offset − Σ ω_i loss*(y_i, θ_i/ω_i) − Σ_j r_j*(−x_j·θ),

with Σθ = 0 for an intercept. Floats cannot have a sum of exactly 0. So a dual point is judged after an exact
projection: on Σθ = 0, and on x_j·θ = 0 for unpenalised columns; that it needs only a tiny one is checked too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

L = np.longdouble
EPS = float(np.finfo(np.float64).eps)
CLASSIFIERS = ("logistic", "squared_hinge")
# How far a dual point may be from its constraints before it counts as infeasible. What it is beyond them is charged
# to the gap all the same (Verdict.leak).
_EQUALITY = 1e-12  # of √n·‖θ‖: the intercept
_UNPENALISED = 1e-11  # of ‖x_j‖·‖θ‖
_INEQUALITY = 1e-9  # of alpha·u_j
_ROUNDING = 1e-12  # of ‖x_j − m_j‖‖θ‖
_DOMAIN = 1e-11
_PROMISED = 1e-12  # how well dual points are promised to meet their constraints, and no better


@dataclass
class Verdict:
    """What a dual point is worth."""

    value: float = float("-inf")
    leak: float = 0.0  # Σ_j (how far beyond its constraint)·|w_j|: what the value may be too high by
    floor: float = 0.0  # rounding that an ideal evaluation in float64 could not avoid
    moved: float = 0.0  # Σθ before the projection
    complaints: list[str] = field(default_factory=list)  # constraints that are broken beyond rounding


class Exact:
    """A problem in extended precision; takes the arguments of ``Problem``. Rows of weight 0 are left out."""

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        loss: str = "squared",
        alpha: float,
        l2: float = 0.0,
        sample_weight: Any = None,
        penalty_weights: Any = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        fit_intercept: bool = False,
        offset: Any = None,
        standardize: bool = False,
        huber_delta: float = 1.35,
        scales: Any = None,
    ) -> None:
        matrix = X.toarray() if sp.issparse(X) else np.asarray(X)
        n, p = matrix.shape
        s = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.used = s > 0
        weights = s[self.used].astype(L)
        self.omega = weights / np.sum(weights)
        self.X = matrix[self.used].astype(L)
        labels = np.asarray(y)
        if loss in CLASSIFIERS:
            classes = np.unique(labels)
            labels = np.where(labels == (classes[1] if len(classes) == 2 else 1), 1.0, -1.0)
        self.y = labels[self.used].astype(L)
        self.loss, self.alpha, self.intercept, self.delta = loss, L(alpha), bool(fit_intercept), L(huber_delta)
        shift = np.zeros(n) if offset is None else np.broadcast_to(np.asarray(offset, dtype=np.float64), n)
        self.offset = shift[self.used].astype(L)
        u = np.ones(p, dtype=L) if penalty_weights is None else np.asarray(penalty_weights, dtype=L).copy()
        self.l2 = np.full(p, L(l2))
        self.means = self.omega @ self.X if self.intercept else np.zeros(p, dtype=L)
        self.sd = np.sqrt(self.omega @ (self.X - self.means) ** 2)
        if standardize:
            sd = self.sd if scales is None else np.asarray(scales, dtype=L)
            u = np.where(sd > 0, u * np.where(sd > 0, sd, 1), np.inf)
            self.l2 = self.l2 * sd**2
        excluded = np.isinf(u)
        self.u = u
        self.l1 = self.alpha * np.where(excluded, 0, u)
        low = np.broadcast_to(np.asarray(0.0 if positive else -np.inf if lower is None else lower, dtype=L), p)
        high = np.broadcast_to(np.asarray(np.inf if upper is None else upper, dtype=L), p)
        self.low, self.high = np.where(excluded, 0, low), np.where(excluded, 0, high)

    @cached_property
    def centred(self) -> np.ndarray:
        """X about its weighted means where there is an intercept."""
        return self.X - self.means

    def losses(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, first and second derivatives."""
        y = self.y
        if self.loss == "squared":
            r = t - y
            return r * r / 2, r, np.ones_like(t)
        if self.loss == "huber":
            r = t - y
            size = np.abs(r)
            near = size <= self.delta
            value = np.where(near, r * r / 2, self.delta * (size - self.delta / 2))
            return value, np.clip(r, -self.delta, self.delta), near.astype(L)
        m = y * t
        if self.loss == "squared_hinge":
            short = np.maximum(L(0), 1 - m)
            return short**2, -2 * y * short, np.where(short > 0, L(2), L(0))
        small = np.exp(-np.abs(m))
        value = np.log1p(small) + np.maximum(-m, 0)
        wrong = np.where(m > 0, small, 1) / (1 + small)  # probability of the other class
        return value, -y * wrong, small / (1 + small) ** 2

    def predictions(self, w: Any, b: float = 0.0) -> np.ndarray:
        return self.X @ np.asarray(w, dtype=L) + L(b) + self.offset

    def penalty(self, w: Any) -> np.ndarray:
        w = np.asarray(w, dtype=L)
        return np.sum(self.l1 * np.abs(w)) + np.sum(self.l2 * w * w) / 2

    def primal(self, w: Any, b: float = 0.0) -> np.longdouble:
        """The objective; inf outside of the bounds."""
        w = np.asarray(w, dtype=L)
        if not np.all(np.isfinite(w)) or np.any(w < self.low) or np.any(w > self.high):
            return L(np.inf)
        value, _, _ = self.losses(self.predictions(w, b))
        return L(np.sum(self.omega * value) + self.penalty(w))

    def floor(self, w: Any, b: float = 0.0) -> float:
        """A few roundings of what an evaluation of this point in float64 adds up."""
        w = np.asarray(w, dtype=L)
        value, slope, _ = self.losses(self.predictions(w, b))
        size = np.abs(self.X) @ np.abs(w) + abs(L(b)) + np.abs(self.offset)
        if self.loss not in CLASSIFIERS:
            size = size + np.abs(self.y)
        first = np.sum(self.omega * (np.abs(slope) * size + np.abs(value))) + self.penalty(w)
        second = np.sum(self.omega * (EPS * size) ** 2)
        here = np.sum(self.omega * value) + self.penalty(w)
        if self.loss in CLASSIFIERS and self.intercept:  # may separate the classes alone: the loss at 0 is the scale
            here = max(here, L(0.1))
        if self.loss in CLASSIFIERS and self.has_unpenalised:
            # may separate the classes: the null model has loss 0, weights grow, and equalities hold to rounding only
            here = max(here, L(1)) * max(L(1), np.max(np.abs(w), initial=L(0)))
        return float(8 * EPS * first + 16 * second + _PROMISED * here)

    def least_gap(self) -> float:
        """What no tol goes below, as docs/default-solver.md has it: 1e-13 of what a constant leaves of targets."""
        if self.loss in CLASSIFIERS:
            return 0.0
        constant = np.sum(self.omega * (self.y - self.offset)) if self.intercept else L(0)
        return float(1e-13 * np.sum(self.omega * self.losses(constant + self.offset)[0]))

    def dual(self, theta: Any, w: Any, b: float = 0.0) -> Verdict:
        """D(θ) of the exactly projected θ; the primal point (w, b) weighs what is left beyond a constraint."""
        full = np.asarray(theta, dtype=L)
        verdict = Verdict()
        if not np.all(np.isfinite(full)):
            verdict.complaints.append("the dual point is not finite")
            return verdict
        if np.any(full[~self.used] != 0):
            verdict.complaints.append("the dual point is not 0 in a row of weight 0")
        size_w = np.abs(np.asarray(w, dtype=L))
        u = self._project(full[self.used] / self.omega, verdict)
        u = self._into_domain(u, verdict)
        theta_ = self.omega * u
        slope = -(self.centred.T @ theta_)
        room = np.where(slope > 0, self.high, -self.low)
        room = np.where(np.isfinite(room), np.minimum(room, self._reach_of_better(w, b)), room)
        over = np.maximum(np.abs(slope) - self.l1, 0)
        sizes = np.sqrt(np.sum(self.centred**2, axis=0)) * np.sqrt(np.sum(theta_**2))
        hard = np.isinf(room) & (self.l2 == 0)  # a constraint; the others have a finite conjugate
        # what a sum of θ that is 0 to rounding adds to x_j·θ of a column far from 0
        shift = np.abs(self.means) * verdict.moved
        allowed = _INEQUALITY * self.l1 + _ROUNDING * sizes + shift
        for j in np.flatnonzero(hard & ~self._equalities() & (over > allowed))[:3]:  # _project saw to equalities
            verdict.complaints.append(
                f"|x_j·θ| of feature {j} is {float(np.abs(slope[j])):.6g}, allowed {float(self.l1[j]):.6g}"
            )
        verdict.leak = float(np.sum(np.where(hard, over * size_w, 0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            at = np.where(self.l2 > 0, np.minimum(over / self.l2, room), room)
        at = np.where(hard | (over == 0), 0, at)
        y = self.y
        if self.loss in CLASSIFIERS:
            target = self.offset - (np.sum(self.omega * self.offset) if self.intercept else 0)
            a = -y * u
            if self.loss == "squared_hinge":
                conjugate = a * (a / 4 - 1)
            else:
                # 1 − a has lost an a below 1e-19, and with it the whole value of rows that are right by far
                rest = np.log1p(-np.where(a < 1, a, 0))
                conjugate = a * np.log(np.where(a > 0, a, 1)) + (1 - a) * rest
            products = theta_ * target
            verdict.value = L(np.sum(products) - np.sum(self.omega * conjugate))
        else:
            target = y - self.offset
            target = target - (np.sum(self.omega * target) if self.intercept else 0)
            conjugate = u * u / 2
            products = theta_ * target
            verdict.value = L(-np.sum(products) - np.sum(self.omega * conjugate))
        verdict.value = L(verdict.value - np.sum(at * (over - self.l2 * at / 2)))
        reach = np.where(hard, size_w, np.abs(at))
        raw = np.abs(y - self.offset) if self.loss not in CLASSIFIERS else np.abs(self.offset)
        terms = np.sum(np.abs(products)) + np.sum(self.omega * np.abs(conjugate)) + np.sum(sizes * reach)
        terms = terms + np.sum(np.abs(theta_) * raw)
        verdict.floor = float(8 * EPS * terms)
        if self.intercept:
            middle = L(b) if self.loss in CLASSIFIERS else L(b) - np.sum(self.omega * (y - self.offset))
            reach = abs(middle) + np.sum(np.abs(self.means) * size_w)
            verdict.floor += float(_PROMISED * np.sqrt(L(len(u))) * np.sqrt(np.sum(theta_**2)) * reach)
        if verdict.complaints:
            verdict.value = L(-np.inf)
        return verdict

    def _reach_of_better(self, w: Any, b: float) -> np.ndarray:
        """No point that is as good as (w, b) has larger weights: losses are at least 0, the penalty is the rest."""
        value = self.primal(w, b)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_l1 = np.where(self.l1 > 0, value / self.l1, np.inf)
            by_l2 = np.where(self.l2 > 0, np.sqrt(2 * value / self.l2), np.inf)
        return np.minimum(by_l1, by_l2)

    def _equalities(self) -> np.ndarray:
        """Which features ask for x_j·θ = 0."""
        return (self.l1 == 0) & (self.l2 == 0) & np.isinf(self.low) & np.isinf(self.high)

    def _project(self, u: np.ndarray, verdict: Verdict) -> np.ndarray:
        """u = θ/ω, orthogonal to the intercept's and the unpenalised columns in the product Σ ω_i a_i b_i."""
        length = np.sqrt(np.sum((self.omega * u) ** 2))
        if self.intercept:
            total = np.sum(self.omega * u)
            if abs(total) > _EQUALITY * np.sqrt(L(len(u))) * length:
                verdict.complaints.append(f"Σθ is {float(total):.3g}, ‖θ‖ is {float(length):.3g}")
            verdict.moved = float(abs(total))
            u = u - total
        basis: list[np.ndarray] = []
        for j in np.flatnonzero(self._equalities()):
            z = self.centred[:, j]
            before = np.sqrt(np.sum(z * z))
            product = np.sum(self.omega * z * u)
            if abs(product) > _UNPENALISED * before * length:
                verdict.complaints.append(f"x_j·θ of the unpenalised feature {j} is {float(product):.3g}, not 0")
            spread = np.sqrt(np.sum(self.omega * z * z))
            for _ in range(2):
                for q in basis:
                    z = z - q * np.sum(self.omega * q * z)
                if self.intercept:
                    z = z - np.sum(self.omega * z)
            rest = np.sqrt(np.sum(self.omega * z * z))
            if rest > 1e-12 * spread:
                basis.append(z / rest)
        for _ in range(2):
            for q in basis:
                u = u - q * np.sum(self.omega * q * u)
        return u

    def _into_domain(self, u: np.ndarray, verdict: Verdict) -> np.ndarray:
        if self.loss == "squared":
            return u
        if self.loss == "huber":
            inside, size = np.clip(u, -self.delta, self.delta), self.delta
        else:
            a = np.clip(-self.y * u, 0, 1 if self.loss == "logistic" else None)
            inside, size = -self.y * a, max(L(1), np.max(np.abs(u), initial=0))
        worst = np.max(np.abs(inside - u), initial=0)
        if worst > _DOMAIN * size:
            verdict.complaints.append(f"θ is outside of the loss's domain by {float(worst):.3g}")
        return inside

    # The null model: intercept alone. With unpenalised features it is the package's, looked at by its objective.

    @property
    def has_unpenalised(self) -> bool:
        return bool(np.any(self.u == 0))

    def best_intercept(self) -> np.longdouble | None:
        """argmin over b with weights of 0; None where that is at infinity (one class under logistic loss)."""
        if not self.intercept:
            return L(0)
        target = self.y - self.offset
        if self.loss == "squared":
            return L(np.sum(self.omega * target))
        if self.loss in CLASSIFIERS:
            if np.all(self.y == self.y[0]):
                return None if self.loss == "logistic" else L(self.y[0] - self.y[0] * np.min(self.y * self.offset))
            # derivative 0 lies between where each row alone would be far on its own side
            reach = L(2) + np.max(np.abs(self.offset)) + (60 if self.loss == "logistic" else 0)
            reach = reach - np.log(np.min(self.omega)) if self.loss == "logistic" else reach
            low, high = -reach, reach
        else:
            low, high = np.min(target) - self.delta, np.max(target) + self.delta

        def slope(b: Any) -> Any:
            return np.sum(self.omega * self.losses(b + self.offset)[1])

        for _ in range(200):
            middle = low + (high - low) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        return L(low + (high - low) / 2)

    def null_objective(self) -> np.longdouble | None:
        """None where it takes more than an intercept, or has no minimum."""
        b = None if self.has_unpenalised else self.best_intercept()
        return None if b is None else L(np.sum(self.omega * self.losses(b + self.offset)[0]))

    def alpha_max(self) -> float:
        """The least alpha at which all penalised weights are 0, if unpenalised ones are too."""
        b = self.best_intercept()
        theta = self.omega * self.losses((L(0) if b is None else b) + self.offset)[1]
        slope = -(self.centred.T @ theta)
        room = np.where(slope > 0, self.high, -self.low)
        counted = (self.u > 0) & np.isfinite(self.u) & (room > 0)
        return float(np.max(np.abs(slope[counted]) / self.u[counted], initial=0))
