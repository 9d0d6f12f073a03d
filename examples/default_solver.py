"""The certificate by hand: sample weights, an intercept and an offset, and the proof checked in plain NumPy.

A first model uses only the 2,000 most frequent terms. Its predictions become the offset of a second model, which
finds what the other terms add. Rows of the rarer class have a larger weight, so that both classes count the same.
Finally the proof of the second model is recomputed without the library. Data are generated; it takes a second.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

import blockgreedy as bg

Array = NDArray[np.float64]


def at_ratio(problem: bg.Problem, ratio: float) -> bg.Problem:
    """The same problem at alpha = ratio · alpha_max, above which every penalised weight is 0."""
    return problem.with_alpha(ratio * problem.alpha_max)


def gap_by_hand(X: Any, y: Array, omega: Array, offset: Array, alpha: float, solution: bg.Solution) -> float:
    """Primal minus dual value for weighted logistic loss with an intercept, computed without the library."""
    margin = y * (X @ solution.coef + solution.intercept + offset)
    primal = np.sum(omega * np.logaddexp(0.0, -margin)) + alpha * np.sum(np.abs(solution.coef))
    theta = solution.dual
    other = -y * theta / omega  # the probability of the other class
    # The dual constraints: θ in the domain of the conjugate, one inequality for each feature, and for the intercept
    # Σθ = 0 up to rounding.
    inside = np.all((other >= 0) & (other <= 1))
    columns = np.max(np.abs(X.T @ theta)) <= alpha * (1 + 1e-12)
    ones = abs(np.sum(theta)) <= 1e-12 * np.linalg.norm(theta) * np.sqrt(y.size)
    if not (inside and columns and ones):
        return float("inf")
    dual = theta @ offset - np.sum(omega * (xlogy(other, other) + xlogy(1 - other, 1 - other)))
    return float(primal - dual)


def main() -> None:
    data = bg.data.text_like(5_000, 10_000, 50.0)
    X, y = data.X.tocsc(), np.where(data.y > 0, 1.0, -1.0)
    common = np.argsort(-np.diff(X.indptr), kind="stable")[:2_000]
    weights = np.where(y > 0, np.mean(y < 0), np.mean(y > 0))  # both classes count the same in total

    first = at_ratio(bg.Problem(X[:, common], y, loss="logistic", alpha=1.0, fit_intercept=True), 0.1)
    earlier = bg.solve(first)
    print(f"common terms alone:  {earlier}")

    rest = np.setdiff1d(np.arange(X.shape[1]), common)
    offset = first.decision(earlier.coef, earlier.intercept)
    options: dict[str, Any] = {"sample_weight": weights, "fit_intercept": True, "offset": offset}
    second = at_ratio(bg.Problem(X[:, rest], y, loss="logistic", alpha=1.0, **options), 0.3)
    solution = bg.solve(second, tol=1e-6)
    print(f"what the rest adds:  {solution}")
    print(f"intercept {solution.intercept:.4f}; {solution.message}")

    by_library = second.duality_gap(solution.coef, solution.intercept, dual=solution.dual)
    by_hand = gap_by_hand(X[:, rest], y, weights / weights.sum(), offset, second.alpha, solution)
    print(f"gap as reported {solution.gap:.3e}, by Problem.duality_gap {by_library:.3e}, by hand {by_hand:.3e}")
    spent = sorted(solution.phase_seconds.items(), key=lambda item: -item[1])
    print("milliseconds: " + ", ".join(f"{name} {1e3 * s:.1f}" for name, s in spent))
    if solution.status != "converged" or not by_hand <= 1.001e-6 * second.null_model.objective:
        sys.exit("the certificate does not hold")


if __name__ == "__main__":
    main()
