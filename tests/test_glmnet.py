"""R's glmnet as an oracle: its coefficients are as good as ours, and equal, once its parameters are translated.

Reads fixtures/glmnet.npz, which fixtures/make_glmnet.py makes; R is not needed. docs/migrate-glmnet.md says the
translation in words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockgreedy as bg

FIXTURE = np.load(Path(__file__).parent / "fixtures" / "glmnet.npz")
SPECS = {spec.pop("name"): spec for spec in json.loads(str(FIXTURE["index"]))["specs"]}
TOL = 1e-9
MADE_TO = 1e-10  # what glmnet's objective may lack at thresh = 1e-20, relative to the null model


@dataclass
class Case:
    """One call of glmnet in our terms. ``scale`` divides the columns of X and multiplies glmnet's coefficients."""

    name: str

    def __post_init__(self) -> None:
        self.spec = SPECS[self.name]
        self.data = self.spec["data"]
        self.X = FIXTURE[f"{self.data}/X"] / 64.0
        self.y = FIXTURE[f"{self.data}/{self.spec['family']}"]
        n, p = self.X.shape
        self.weights = FIXTURE[f"{self.data}/weights"] if self.spec["weights"] else np.ones(n)
        self.offset = FIXTURE[f"{self.data}/offset"] if self.spec["offset"] else np.zeros(n)
        factors = FIXTURE[f"{self.data}/{self.spec['factors']}"] if self.spec["factors"] else np.ones(p)
        # glmnet makes them sum to p; excluded features count as 1 in that sum
        self.u = factors * p / np.sum(np.where(np.isinf(factors), 1.0, factors))
        self.lambdas = FIXTURE[f"{self.name}/lambda"]
        self.intercepts = FIXTURE[f"{self.name}/a0"]
        self.coefs = FIXTURE[f"{self.name}/beta"]
        self.scale = np.ones(p)
        if self.spec["standardize"]:
            self.scale = self.deviation(self.X)  # around the mean, also where there is no intercept
        if self.spec["l1_ratio"] < 1:
            # Its penalty factors weigh the ridge too, ours the L1 norm only: √v in the columns makes up for it
            root = np.sqrt(np.where(np.isfinite(self.u), self.u, 1.0))
            self.scale = self.scale * root
            self.u = self.u / root

    def deviation(self, values: np.ndarray, centred: bool = True) -> np.ndarray:
        omega = self.weights / np.sum(self.weights)
        return np.sqrt(omega @ values**2 - centred * (omega @ values) ** 2)

    def problem(self, lambda_: float) -> bg.Problem:
        spec = self.spec
        l2 = (1 - spec["l1_ratio"]) * lambda_
        if spec["family"] == "gaussian":
            # it fits y/sd(y), and multiplies back; without an intercept y/rms(y)
            l2 /= float(self.deviation(self.y - self.offset, centred=spec["intercept"]))
        X = self.X / self.scale
        return bg.Problem(
            sp.csc_array(X) if self.data == "sparse" else np.asfortranarray(X),
            self.y,
            loss="squared" if spec["family"] == "gaussian" else "logistic",
            alpha=spec["l1_ratio"] * lambda_,
            l2=l2,
            sample_weight=self.weights,
            offset=self.offset,
            penalty_weights=self.u,
            positive=spec["positive"],
            fit_intercept=spec["intercept"],
        )

    def curvature(self, problem: bg.Problem, support: np.ndarray, coef: np.ndarray, intercept: float) -> float:
        """Smallest curvature of the objective over the given features and the intercept; of a logistic one nearby."""
        X = (self.X / self.scale)[:, support]
        if problem.fit_intercept:
            X = np.column_stack([X, np.ones(len(X))])
        omega = self.weights / np.sum(self.weights)
        if self.spec["family"] == "binomial":
            t = problem.decision(coef, intercept)
            omega = omega / (np.exp(t / 2) + np.exp(-t / 2)) ** 2
        hessian = (X.T * omega) @ X
        hessian[np.arange(support.size), np.arange(support.size)] += problem.l2
        least = np.linalg.eigvalsh(hessian)[0] if len(hessian) else np.inf
        return float(least if self.spec["family"] == "gaussian" else least / 2)


@pytest.mark.parametrize("name", SPECS)
def test_glmnet_finds_the_same_optimum(name):
    case = Case(name)
    for lambda_, beta, a0 in zip(case.lambdas, case.coefs, case.intercepts, strict=True):
        problem = case.problem(lambda_)
        theirs = beta * case.scale
        ours = bg.solve(problem, tol=TOL)
        f_null = problem.null_model.objective
        assert ours.status == "converged"
        rounding = 1e-12 * f_null  # what a certificate forgives in feasibility
        lead = ours.objective - problem.objective(theirs, a0)
        assert lead <= ours.gap + rounding  # nobody beats a certified point by more than its gap
        assert lead >= -MADE_TO * f_null  # and glmnet minimises the very same objective

        # Two points whose errors are known, of an objective whose curvature is known, cannot be far apart.
        support = np.flatnonzero((ours.coef != 0) | (theirs != 0))
        bend = case.curvature(problem, support, ours.coef, ours.intercept)
        errors = np.array([ours.gap, max(0.0, ours.gap - lead)]) + rounding
        apart = np.append(ours.coef - theirs, ours.intercept - a0)
        assert np.linalg.norm(apart) <= np.sum(np.sqrt(2 * errors / bend))


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if not spec["positive"]])
def test_glmnet_starts_its_grid_at_our_alpha_max(name):
    # with lower limits glmnet starts as without them, at an alpha where all weights are still 0
    case = Case(name)
    assert case.problem(case.lambdas[0]).alpha_max == pytest.approx(case.spec["l1_ratio"] * case.lambdas[0], rel=1e-6)


def test_every_option_is_in_the_fixture_with_both_families_and_storages():
    for option in ("standardize", "weights", "offset", "positive", "factors"):
        kinds = {(spec["family"], spec["data"] == "sparse") for spec in SPECS.values() if spec[option]}
        assert len(kinds) == 4, option
    assert {spec["intercept"] for spec in SPECS.values()} == {True, False}
    assert {spec["l1_ratio"] for spec in SPECS.values()} == {1.0, 0.5, 0.2}


PLAIN = [
    name
    for name, spec in SPECS.items()
    if spec["standardize"]
    and spec["l1_ratio"] == 1.0
    and not (spec["weights"] or spec["factors"] or spec["positive"])
]


@pytest.mark.parametrize("name", PLAIN)
def test_standardize_is_glmnets_with_an_intercept_alone(name):
    """Without one it still divides by the deviation about the mean: migrate-glmnet.md has the way to its numbers."""
    case = Case(name)
    spec = case.spec
    loss = "squared" if spec["family"] == "gaussian" else "logistic"
    options = {"loss": loss, "offset": case.offset, "fit_intercept": spec["intercept"]}
    apart = {"standardize": 0.0, "recipe": 0.0}
    for lambda_, beta in zip(case.lambdas, case.coefs, strict=True):
        ways = {"standardize": {"standardize": True}, "recipe": {"penalty_weights": case.X.std(axis=0)}}
        for way, more in ways.items():
            found = bg.solve(bg.Problem(case.X, case.y, alpha=lambda_, **options, **more), tol=TOL).coef
            apart[way] = max(apart[way], np.linalg.norm(found - beta) / max(np.linalg.norm(beta), 1e-6))
    assert apart["recipe"] < 1e-3
    assert (apart["standardize"] < 1e-3) == spec["intercept"], apart


def test_both_ways_of_standardizing_are_in_the_fixture():
    assert {SPECS[name]["intercept"] for name in PLAIN} == {True, False}
