"""What the docstrings of the estimators share."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

PARAMETERS = """fit_intercept : bool, default True
        Free of penalty and of bounds.
    standardize : bool, default False
        Penalise the weights of columns of variance 1; X is not touched and ``coef_`` is on its scale.
    penalty_weights : array of n_features, optional
        Factors of the L1 norm: 0 leaves a feature out of it, inf excludes the feature.
    positive : bool, default False
        Only weights of at least 0.
    lower, upper : float or array of n_features, optional
        Bounds on the weights, lower ≤ 0 ≤ upper.
    tol : float, default 1e-4
        Stop at a duality gap of tol times the objective of the null model. Small data (up to 20,000 entries) are
        solved to the last digits, which costs next to nothing there.
    max_iter, max_seconds : optional
        Budget of one solve, and of a fold's whole path in seconds; default: 1000 outer iterations (most fits take 5
        to 30), no limit in time.
    n_threads : int, optional
        Default: what the process may use, within the limits of joblib and threadpoolctl; -1: all of that, -2: all but
        one. Results do not depend on it.
    warm_start : bool, default False
        Start from the weights of the fit before.
    verbose : bool, default False
        Show progress on stderr: a line or a bar that is rewritten on a terminal, else a line every second.
    callback : callable, optional
        Called with a ``Record`` (iteration, objective, gap, nonzeros, …) every iteration; returning anything true
        ends the fit there.

    Attributes
    ----------
    coef_, sparse_coef_, intercept_ : weights (dense, and as scipy CSR) and intercept
    dual_gap_ : certified: no weights have an objective that is lower by more
    status_ : "converged", "max_iter", "max_seconds", "interrupted" or "stalled"
    n_iter_ : outer iterations, at least 1
    trace_ : Trace of the fit"""

CV_PARAMETERS = """alphas : array, or their number, optional
        The weights to choose from; default: ``n_alphas`` from the smallest that leaves no feature down to ``eps``
        times it, equally spaced in log.
    n_alphas : int, default 100
    eps : float, default 1e-3
    cv : int, splitter of scikit-learn or iterable of (train, test), default 5 folds
        A number means consecutive folds (stratified for classes), shuffled if ``random_state`` is given.
    scoring : "deviance" (default), name of a scorer or scorer of scikit-learn
        Deviance: mean squared error, or −2 mean log probability. A scorer sees targets and predictions; its X holds
        numbers of rows.
    selection : "min" (default) or "1se"
        The alpha of the best mean score, or the largest within one standard error of it.
    fold_tol : float, optional
        ``tol`` of the models of folds, at every alpha. Default: 100·tol at first, then 10·tol, tol and tol/100 at the
        few alphas among which that could change the choice. The model that is returned keeps ``tol``.
    n_jobs : int, optional
        Folds at a time, counted as joblib does; -1: as many as there are threads. Default: that where X has 300,000
        to 2 million entries, else one: with more, threads share the work inside of a fold, with less, there is too
        little of it.
    random_state : int, optional
        Shuffles the folds of a number given as ``cv``.
    """

CV_ATTRIBUTES = """
    alpha_, alpha_min_, alpha_1se_ : the alpha chosen; the one of the best score; the largest within a standard error
    alphas_ : all alphas, descending
    score_path_ : scores, greater is better: n_alphas × n_folds, or n_l1_ratio × n_alphas × n_folds
    cv_results_ : arrays by name: alpha, l1_ratio, mean_test_score, std_error, mean_nonzeros, split0_test_score, …
    oof_decision_ : array of n_samples (× n_classes with more than two classes)
        Out-of-fold predictions at the alpha chosen: the decision value (regression: the prediction) of each row by
        the model of the fold that held it out; their mean where several folds did, nan where none did."""


def with_parameters(estimator: Kind) -> Kind:
    """Puts the shared parts where a docstring says so."""
    text = estimator.__doc__ or ""
    for name, part in (("{cv}", CV_PARAMETERS), ("{common}", PARAMETERS), ("{cv_attributes}", CV_ATTRIBUTES)):
        text = text.replace(name, part)
    estimator.__doc__ = text
    return estimator
