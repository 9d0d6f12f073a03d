"""On the real sets: does anyone find a better point than a certified one, by more than its gap?

    python -m benchmarks.agreement --problems reuters dorothea

scikit-learn, LIBLINEAR and R's glmnet minimise the same objectives at tight tolerances, with intercept, row weights,
elastic net, positivity and standardisation. Objectives are computed here in NumPy from coefficients and intercept.
``lead`` is how far our point is above theirs: at most our gap, or the certificate was wrong. A negative lead says how
far theirs is above ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import ElasticNet
from sklearn.linear_model import LogisticRegression as SklearnLogistic

import blockgreedy as bg

from . import glmnet
from .race import problems

Array = NDArray[np.float64]
TOL = 1e-7
ROUNDING = 1e-9  # of f_null: float32 data are read as float64 here and by the others


@dataclass(frozen=True)
class Options:
    fit_intercept: bool = True
    weights: bool = False
    l1_ratio: float = 1.0
    positive: bool = False
    standardize: bool = False

    def __str__(self) -> str:
        words = ["intercept"] if self.fit_intercept else ["no intercept"]
        words += ["row weights"] if self.weights else []
        words += [f"l1_ratio {self.l1_ratio:g}"] if self.l1_ratio < 1 else []
        words += ["positive"] if self.positive else []
        return ", ".join(words + (["standardize"] if self.standardize else []))


OPTIONS = (
    Options(fit_intercept=False),
    Options(fit_intercept=False, weights=True),
    Options(),
    Options(weights=True),
    Options(l1_ratio=0.5),
    Options(positive=True),
    Options(standardize=True, weights=True),
)


class Case:
    """One objective, written in NumPy."""

    def __init__(self, data: problems.Data, loss: problems.Loss, options: Options, ratio: float) -> None:
        self.loss, self.options = loss, options
        self.X, self.y = sp.csc_array(data.X64), data.y(loss)
        n = len(self.y)
        self.weights = np.random.default_rng(0).uniform(0.2, 3.0, n) if options.weights else np.ones(n)
        self.omega = self.weights / self.weights.sum()
        self.scales = self.deviations() if options.standardize else np.ones(self.X.shape[1])
        first = self.problem(data, 0.0, 0.0).alpha_max
        self.lambda_ = ratio * first / options.l1_ratio
        self.alphas = np.geomspace(first / options.l1_ratio, self.lambda_, 12)
        self.alpha = options.l1_ratio * self.lambda_
        self.l2 = (1 - options.l1_ratio) * self.lambda_
        problem = self.problem(data, self.alpha, self.l2)
        self.f_null = problem.null_model.objective
        self.solution = bg.solve(problem, tol=TOL)

    def problem(self, data: problems.Data, alpha: float, l2: float) -> bg.Problem:
        options = self.options
        return bg.Problem(
            data.X, self.y, loss=self.loss, alpha=alpha, l2=l2, sample_weight=self.weights,
            fit_intercept=options.fit_intercept, positive=options.positive, standardize=options.standardize,
        )  # fmt: skip

    def deviations(self) -> Array:
        mean = self.X.T @ self.omega
        return np.sqrt(np.maximum(self.X.power(2).T @ self.omega - self.options.fit_intercept * mean**2, 0.0))

    def objective(self, coef: Array, intercept: float) -> float:
        t = self.X @ coef + intercept
        values = np.logaddexp(0.0, -self.y * t) if self.loss == "logistic" else 0.5 * (self.y - t) ** 2
        u = self.scales * coef
        return float(self.omega @ values + self.alpha * np.sum(np.abs(u)) + self.l2 / 2 * (u @ u))

    def others(self) -> Iterator[tuple[str, Array, float]]:
        if self.loss == "squared" and not self.options.standardize:
            yield self.scikit_learn()
        if self.loss == "logistic" and not self.options.fit_intercept:
            yield self.liblinear()
        # glmnet divides y by its standard deviation and with it the ridge, so its elastic nets are of other weights
        if self.options.l1_ratio == 1 or self.loss == "logistic":
            yield self.glmnet()

    def scikit_learn(self) -> tuple[str, Array, float]:
        model = ElasticNet(
            alpha=self.lambda_, l1_ratio=self.options.l1_ratio, fit_intercept=self.options.fit_intercept,
            positive=self.options.positive, tol=1e-9, max_iter=100_000,
        )  # fmt: skip
        model.fit(sp.csc_matrix(self.X), self.y, sample_weight=self.weights if self.options.weights else None)
        return "scikit-learn", model.sparse_coef_.toarray().ravel(), float(model.intercept_)

    def liblinear(self) -> tuple[str, Array, float]:
        model = SklearnLogistic(
            l1_ratio=1.0, solver="liblinear", C=1 / (self.alpha * self.weights.sum()), fit_intercept=False, tol=1e-8,
            max_iter=100_000,
        )  # fmt: skip
        model.fit(sp.csr_matrix(self.X), self.y, sample_weight=self.weights)
        return "LIBLINEAR", model.coef_.ravel(), 0.0

    def glmnet(self) -> tuple[str, Array, float]:
        session = glmnet.Session()
        session.load(self.X, self.y, self.alphas)
        session.write("weights", self.weights, "<f8")
        o = self.options
        flags = [str(flag).upper() for flag in (o.fit_intercept, o.standardize, o.positive)]
        session.ask("fit", glmnet.FAMILIES[self.loss], 1e-14, o.l1_ratio, *flags)
        return "glmnet", session.coefs()[:, [-1]].toarray().ravel(), float(session.read("a0")[-1])


def rows(
    data: problems.Data, loss: problems.Loss, options: Options, ratio: float
) -> Iterator[tuple[bool, list[Any]]]:
    case = Case(data, loss, options, ratio)
    ours = case.solution
    gap = ours.gap / case.f_null
    own = case.objective(ours.coef, ours.intercept)
    for name, coef, intercept in case.others():
        lead = (own - case.objective(coef, intercept)) / case.f_null
        holds = ours.status == "converged" and lead <= gap + ROUNDING
        yield holds, [str(options), name, ours.nonzeros, f"{gap:.1e}", f"{lead:+.1e}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--problems", nargs="+", default=["reuters", "dorothea", "enron"], choices=problems.REAL)
    parser.add_argument("--losses", nargs="+", default=problems.LOSSES, choices=problems.LOSSES)
    parser.add_argument("--ratio", type=float, default=0.1, help="alpha / alpha_max")
    options = parser.parse_args()
    console = Console(highlight=False)
    broken = 0
    for name in options.problems:
        data = problems.load(name)
        for loss in options.losses:
            table = Table("", "against", "nonzeros", "our gap", "lead", title=f"{name}, {loss}, of f_null")
            for setting in OPTIONS:
                for holds, cells in rows(data, loss, setting, options.ratio):
                    broken += not holds
                    table.add_row(*map(str, cells), style="" if holds else "bold red")
            console.print(table)
    sys.exit(f"{broken} certificates were wrong" if broken else 0)


if __name__ == "__main__":
    main()
