"""What must hold of a fitted estimator, held against the oracle and scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import blockgreedy as bg
from hunt.case import Case, dense
from hunt.certificates import null_objective, share, sound_scales
from hunt.lateness import on_time
from hunt.optimum import minimise
from hunt.oracle import Exact
from hunt.outcome import Outcome


def check_fit(case: Case, outcome: Outcome) -> None:
    from sklearn.exceptions import ConvergenceWarning

    problem = dict(case.problem)
    rows = {name: problem.pop(name) for name in ("sample_weight", "offset") if name in problem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = on_time(case, outcome, lambda: _earlier(case).fit(case.X, case.y, **rows))
    outcome.statuses.append(model.status_)
    w, b = np.ravel(np.asarray(model.coef_, dtype=np.float64)), float(np.ravel(model.intercept_)[0])
    gap = float(np.ravel(model.dual_gap_)[0])
    arguments = {**case.problem, "alpha": model.alpha_ if case.estimator.endswith("CV") else case.problem["alpha"]}
    ours = bg.Problem(case.X, case.y, **arguments)
    exact = Exact(case.X, case.y, **arguments, scales=sound_scales(case, ours, outcome))
    f_null = null_objective(ours, exact, outcome)
    primal, floor = exact.primal(w, b), exact.floor(w, b)
    if not np.isfinite(primal):
        outcome.found("outside bounds", "coef_ is not finite or not inside its bounds")
        return
    rivals = [("the oracle", minimise(exact, w, b, 0.3)[2])]
    peer = _peer(case, arguments)
    if peer is not None:
        rivals.append(("scikit-learn", exact.primal(*peer)))
    name, best = min(rivals, key=lambda rival: rival[1])
    error = primal - best
    if gap < -floor:
        outcome.found("negative gap", f"dual_gap_ is {gap!r}")
    if not error <= gap + 2 * floor:
        outcome.found(
            "false gap",
            f"dual_gap_ is {gap!r}, but {name} is better by {float(error)!r}; rounding allows {floor:.3g}",
        )
    if model.status_ == "converged" and not error <= case.tol * f_null * (1 + 1e-6) + 2 * floor:
        outcome.found(
            "false certificate",
            f"converged to tol={case.tol:.3g}, but {name} is better by {share(error, f_null):.6g} of the null model",
        )
    if model.status_ in ("stalled", "max_iter") and not case.has_budget:
        outcome.errors.append(share(error, f_null))
    if case.estimator == "LassoCV" and not case.has_budget:
        _check_cv(case, model, outcome)


def _earlier(case: Case) -> Any:
    """The estimator, fitted to what it was fitted to first."""
    model = estimator(case)
    return model if case.before is None else model.fit(*case.before)


def estimator(case: Case) -> Any:
    """The estimator whose problem is the case's."""
    problem = dict(case.problem)
    options = {"n_threads": 1, **case.options}
    for name in ("loss", "sample_weight", "offset"):
        problem.pop(name, None)
    if "huber_delta" in problem:
        problem["delta"] = problem.pop("huber_delta")
    l2 = problem.pop("l2", 0.0)
    if case.estimator.endswith("CV"):
        problem.pop("alpha")
    else:
        problem["alpha"] = problem["alpha"] + l2
    return getattr(bg, case.estimator)(**problem, **options)


def _peer(case: Case, arguments: dict[str, Any]) -> tuple[np.ndarray, float] | None:
    """scikit-learn's weights, where it has the model."""
    plain = {"loss", "alpha", "l2", "fit_intercept", "positive", "huber_delta"}
    if arguments["loss"] != "squared" or any(
        np.ndim(arguments.get(name)) or arguments.get(name) not in (None, False) for name in set(arguments) - plain
    ):
        return None
    from sklearn.linear_model import ElasticNet

    alpha, l2 = arguments["alpha"], arguments.get("l2", 0.0)
    model = ElasticNet(
        alpha=alpha + l2, l1_ratio=alpha / (alpha + l2), fit_intercept=arguments["fit_intercept"],
        positive=arguments.get("positive", False), tol=1e-12, max_iter=2000,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(dense(case.X).astype(np.float64), case.y)
    return model.coef_, float(model.intercept_)


def _check_cv(case: Case, model: Any, outcome: Outcome) -> None:
    """The best mean squared error over folds is not above scikit-learn's by more than 2 % of the null model's."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    if case.problem.get("standardize") or case.problem.get("penalty_weights") is not None:
        return  # scikit-learn has neither
    peer = LassoCV(
        alphas=np.asarray(model.alphas_), cv=case.options["cv"], fit_intercept=case.problem["fit_intercept"],
        positive=case.problem.get("positive", False), tol=1e-8, max_iter=2000,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        peer.fit(dense(case.X).astype(np.float64), case.y)
    if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
        return  # no optimum to compare with: a path that stops early may predict better by chance
    ours, theirs = np.min(np.mean(model.mse_path_, axis=1)), np.min(np.mean(peer.mse_path_, axis=1))
    null = np.var(case.y) if case.problem["fit_intercept"] else np.mean(np.square(case.y))
    if not ours <= theirs + 0.02 * null + 1e-6 * theirs:
        outcome.found("cross-validation", f"best mean squared error {ours:.6g}, scikit-learn's is {theirs:.6g}")
