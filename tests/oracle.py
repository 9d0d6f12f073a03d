"""Problems written out in plain NumPy: primal, dual, feasibility and optimum without a line of the library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

import blockgreedy as bg

FORMATS = {
    "csc": sp.csc_array,
    "csr": sp.csr_array,
    "dense F": np.asfortranarray,
    "dense C": np.ascontiguousarray,
}


@dataclass
class Case:
    """X and y as float64, every option an array; ``problem`` hands the same to the library."""

    X: np.ndarray
    y: np.ndarray
    loss: str
    alpha: float
    weights: np.ndarray  # of samples, as given
    offset: np.ndarray
    u: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    l2: float = 0.0
    intercept: bool = False
    delta: float = 1.35

    def problem(self, form: str = "dense F", dtype: Any = np.float64, **options: Any) -> bg.Problem:
        optional = {
            "sample_weight": (self.weights, np.all(self.weights == 1)),
            "offset": (self.offset, not np.any(self.offset)),
            "penalty_weights": (self.u, np.all(self.u == 1)),
            "lower": (self.lower, np.all(np.isinf(self.lower))),
            "upper": (self.upper, np.all(np.isinf(self.upper))),
        }
        given = {name: value for name, (value, is_default) in optional.items() if not is_default}
        given |= {"loss": self.loss, "alpha": self.alpha, "l2": self.l2, "fit_intercept": self.intercept}
        return bg.Problem(FORMATS[form](self.X.astype(dtype)), self.y, huber_delta=self.delta, **given, **options)

    @property
    def omega(self) -> np.ndarray:
        return self.weights / np.sum(self.weights)

    @property
    def l1(self) -> np.ndarray:
        return self.alpha * np.where(np.isinf(self.u), 0.0, self.u)

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        return np.where(np.isinf(self.u), 0.0, self.lower), np.where(np.isinf(self.u), 0.0, self.upper)

    def losses(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and derivatives."""
        y = self.y
        if self.loss == "squared":
            return 0.5 * (t - y) ** 2, t - y
        if self.loss == "huber":
            size = np.abs(t - y)
            far = self.delta * (size - self.delta / 2)
            return np.where(size <= self.delta, 0.5 * size**2, far), np.clip(t - y, -self.delta, self.delta)
        if self.loss == "squared_hinge":
            short = np.maximum(0.0, 1 - y * t)
            return short**2, -2 * y * short
        return np.logaddexp(0, -y * t), -y * np.exp(-np.logaddexp(0, y * t))

    def objective(self, w: np.ndarray, b: float = 0.0) -> float:
        low, high = self.box
        assert np.all((w >= low) & (w <= high))
        assert b == 0 or self.intercept
        value, _ = self.losses(self.X @ w + b + self.offset)
        return float(self.omega @ value + self.l1 @ np.abs(w) + 0.5 * self.l2 * w @ w)

    def dual(self, theta: np.ndarray) -> float:
        """D(θ), with whatever breaks a constraint by no more than rounding let through."""
        omega, y = self.omega, self.y
        assert np.all(theta[omega == 0] == 0)
        v = np.divide(theta, omega, out=np.zeros_like(theta), where=omega > 0)
        if self.loss in ("squared", "huber"):
            assert self.loss == "squared" or np.all(np.abs(v) <= self.delta * (1 + 1e-11))
            conjugate = 0.5 * v**2 + v * y
        else:
            a = -y * v
            assert np.all(a >= -1e-11)
            assert self.loss == "squared_hinge" or np.all(a <= 1 + 1e-11)
            a = np.clip(a, 0, 1 if self.loss == "logistic" else None)
            if self.loss == "squared_hinge":
                conjugate = 0.25 * a**2 - a
            else:
                conjugate = a * np.log(np.where(a > 0, a, 1)) + (1 - a) * np.log1p(-np.where(a < 1, a, 0))
        size = np.linalg.norm(theta)
        if self.intercept:
            assert abs(np.sum(theta)) <= 1e-11 * np.sqrt(len(y)) * size
        slope = -self.X.T @ theta
        low, high = self.box
        room = np.where(slope > 0, high, -low)
        slack = 1e-11 * self.l1 + 1e-11 * np.linalg.norm(self.X[omega > 0], axis=0) * size
        over = np.maximum(np.abs(slope) - self.l1, 0)
        if self.l2 > 0:
            at = np.minimum(over / self.l2, room)
        else:
            assert np.all(over[np.isinf(room)] <= slack[np.isinf(room)])
            at = np.where(np.isinf(room), 0, room)
        return float(theta @ self.offset - omega @ conjugate - np.sum(over * at - 0.5 * self.l2 * at**2))

    def minimum(self) -> float:
        """f* by L-BFGS-B on w = a - c with a and c at least 0."""
        p, X, omega, l1 = self.X.shape[1], self.X, self.omega, self.l1

        def value_and_gradient(z: np.ndarray) -> tuple[float, np.ndarray]:
            w = z[:p] - z[p : 2 * p]
            value, deriv = self.losses(X @ w + z[-1] + self.offset)
            theta = omega * deriv
            grad = X.T @ theta + self.l2 * w
            f = omega @ value + l1 @ (z[:p] + z[p : 2 * p]) + 0.5 * self.l2 * w @ w
            return f, np.r_[grad + l1, -grad + l1, np.sum(theta)]

        low, high = self.box
        bounds = [(0, limit) for limit in high] + [(0, -limit) for limit in low]
        bounds += [(None, None) if self.intercept else (0, 0)]
        z, best = np.zeros(2 * p + 1), np.inf
        for _ in range(3):  # a restart forgets a bad memory of curvatures
            both = np.minimum(z[:p], z[p : 2 * p])
            z = np.r_[z[:p] - both, z[p : 2 * p] - both, z[-1]]
            found = scipy.optimize.minimize(
                value_and_gradient,
                z,
                jac=True,
                bounds=bounds,
                method="L-BFGS-B",
                options={"maxiter": 1500, "maxfun": 2500, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-11},
            )
            z, value = found.x, float(found.fun)
            if best - value <= 1e-13 * abs(value):
                break
            best = value
        w = z[:p] - z[p : 2 * p]
        return min(value, best, self.objective(w, float(z[-1])))

    def null(self) -> float:
        """The least objective with all penalised weights at 0."""
        held = self.u > 0
        zeros = replace(self, lower=np.where(held, 0, self.lower), upper=np.where(held, 0, self.upper))
        return zeros.minimum()


def plain(X: Any, y: Any, loss: str = "squared", ratio: float = 0.1, **options: Any) -> Case:
    """A case without any option but those given, at ``ratio`` of alpha_max."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n, p = X.shape
    defaults = {"weights": np.ones(n), "offset": np.zeros(n), "u": np.ones(p)}
    defaults |= {"lower": np.full(p, -np.inf), "upper": np.full(p, np.inf), "alpha": 1.0}
    case = Case(X, y, loss, **{**defaults, **options})
    return case if "alpha" in options else replace(case, alpha=ratio * case.problem().alpha_max)


def assert_certified(case: Case, problem: bg.Problem, solution: bg.Solution, tol: float) -> None:
    """The point is feasible, its gap is what it says and below tol, and the objective never rose."""
    value = case.objective(solution.coef, solution.intercept)
    f_null = problem.null_model.objective
    assert solution.status == "converged", solution.message
    assert "asked for" in solution.message or f_null == 0
    assert abs(solution.objective - value) <= 1e-12 * max(value, f_null)
    gap = value - case.dual(solution.dual)
    rounding = 1e-13 * max(f_null, case.objective(np.zeros(case.X.shape[1])))
    assert -100 * rounding <= gap <= tol * f_null + rounding  # equalities hold to 1e-12 only
    assert abs(solution.gap - gap) <= 10 * rounding
    checked = problem.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
    assert checked <= tol * f_null + rounding
    assert_never_rises(solution)


def assert_never_rises(solution: bg.Solution) -> None:
    objective = solution.trace["objective"]
    assert len(objective) == solution.n_iter + 1
    assert np.all(np.diff(objective) <= 0), np.max(np.diff(objective))
