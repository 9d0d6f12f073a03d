"""What the docstrings of the estimators share."""

from __future__ import annotations

from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

PARAMETERS = """fit_intercept : bool, default True
        Fit an intercept, which has neither penalty nor bounds.
    standardize : bool, default False
        Apply the penalty as if every column had variance 1. X is not changed, and ``coef_`` is on the scale of X.
    penalty_weights : array of n_features, optional
        A factor of the L1 penalty for each feature: 0 leaves the feature unpenalised, inf excludes it.
    positive : bool, default False
        Restrict the weights to be at least 0.
    lower, upper : float or array of n_features, optional
        Bounds on the weights, lower ≤ 0 ≤ upper.
    tol : float, default 1e-4
        Stop at a duality gap of tol times the objective of the null model. Small data (up to 20,000 stored values)
        are solved to a relative gap of 1e-10 whatever ``tol`` is, which takes little time there.
    max_iter, max_seconds : optional
        Limits of a fit: Newton iterations (default: 1000; most fits take 5 to 30) and seconds (default: no limit). In
        cross-validation max_iter limits each model of a fold, max_seconds the whole path of a fold.
    n_threads : int, optional
        Default: all cores that the process may use, within the limits of joblib and threadpoolctl; -1: all of these,
        -2: all but one. Results do not depend on it.
    warm_start : bool, default False
        Start from the weights of the previous fit.
    verbose : bool, default False
        Show progress on stderr: a line or a bar that is rewritten on a terminal, else a line every second.
    callback : callable, optional
        Called with a ``Record`` (iteration, objective, gap, nonzeros, …) every iteration; returning anything true
        ends the fit there.

    Attributes
    ----------
    coef_, sparse_coef_, intercept_ : weights (dense, and as scipy CSR) and intercept
    dual_gap_ : duality gap: the objective is at most this much above the true minimum
    status_ : "converged", "max_iter", "max_seconds", "interrupted" or "stalled"
    n_iter_ : outer iterations, at least 1
    trace_ : Trace of the fit"""

CV_PARAMETERS = """alphas : array, or their number, optional
        The values of alpha to choose from; default: ``n_alphas`` values from alpha_max (the smallest alpha at which
        no feature is in the model) down to ``eps``·alpha_max, equally spaced on a log scale.
    n_alphas : int, default 100
    eps : float, default 1e-3
    cv : int, splitter of scikit-learn or iterable of (train, test), default 5 folds
        A number means consecutive folds (stratified for classes), shuffled if ``random_state`` is given.
    scoring : "deviance" (default), name of a scorer or scorer of scikit-learn
        Deviance: mean squared error, or −2 mean log probability. A scorer is called with targets and predictions; in
        place of X it receives row numbers.
    selection : "min" (default) or "1se"
        The alpha of the best mean score, or the largest alpha whose score is within one standard error of it.
    fold_tol : float, optional
        ``tol`` of the models in the folds, at every alpha. Default: 100·tol at first, then 10·tol, tol and tol/100 at
        the few alphas whose scores are too close to tell which is best. The final fit uses ``tol``.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads; -1: as many as there are threads, -2: one less, as in
        joblib. Default: -1 if X has between 300,000 and 2 million stored values, otherwise 1: on larger data all
        threads work on one fold, on smaller data there is too little work to divide.
    random_state : int, optional
        Shuffles the rows before they are divided into folds, if ``cv`` is a number.
    """

CV_ATTRIBUTES = """
    alpha_ : the chosen alpha, which is alpha_min_ or alpha_1se_
    alpha_min_, alpha_1se_ : the alpha of the best mean score; the largest within one standard error of it
    alphas_ : all alphas, descending
    score_path_ : scores, greater is better: n_alphas × n_folds, or n_l1_ratio × n_alphas × n_folds
    cv_results_ : arrays by name: alpha, l1_ratio, mean_test_score, std_error, mean_nonzeros, split0_test_score, …
    oof_decision_ : array of n_samples (× n_classes with more than two classes)
        Out-of-fold predictions at the chosen alpha: the decision value (regression: the prediction) of each row,
        computed by the model of the fold in which the row was held out. For rows held out in several folds it is the
        mean, for rows held out in none nan."""


def with_parameters(estimator: Kind) -> Kind:
    """Puts the shared parts where a docstring says so."""
    text = estimator.__doc__ or ""
    for name, part in (("{cv}", CV_PARAMETERS), ("{common}", PARAMETERS), ("{cv_attributes}", CV_ATTRIBUTES)):
        text = text.replace(name, part)
    estimator.__doc__ = text
    return estimator
