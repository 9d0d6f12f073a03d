"""What the docstrings of the estimators share, for the places that they mark by a name in braces."""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_COMMON = """
    fit_intercept : bool, default True
        Fit an intercept, which has neither penalty nor bounds.
    standardize : bool, default False
        Apply the penalty as if every column had variance 1. X is not changed, and ``coef_`` is on the scale of X.
    penalty_weights : array of shape (n_features,), optional
        A factor of the L1 penalty for each feature: 0 leaves the feature unpenalised, inf excludes it.
    positive : bool, default False
        Restrict the weights to be at least 0.
    lower, upper : float or array of shape (n_features,), optional
        Bounds on the weights, lower ≤ 0 ≤ upper.
    tol : float, default 1e-4
        Stop at a duality gap of tol times the objective of the null model. Small data (up to 20,000 stored values)
        are solved to a relative gap of 1e-10 whatever ``tol`` is, which takes little time there.
    max_iter : int, optional
        Limit of Newton iterations (default: 1000; most fits take 5 to 30); in cross-validation of each model of a
        fold.
    max_seconds : float, optional
        Limit in seconds (default: none), of all classes or targets together; in cross-validation of the whole path of
        a fold. A fit ends within twice this and half a second.
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
    coef_ : ndarray of shape (n_features,) or (n_models, n_features)
        Weights.
    sparse_coef_ : scipy CSR matrix
        The same weights.
    intercept_ : float or ndarray of shape (n_models,)
        Intercept.
    dual_gap_ : float or ndarray of shape (n_models,)
        Duality gap: the objective is at most this much above the true minimum.
    status_ : str
        "converged", "max_iter", "max_seconds", "interrupted" or "stalled".
    n_iter_ : int or ndarray of shape (n_models,)
        Outer iterations, at least 1.
    trace_ : Trace or list of Trace
        The course of the fit.
"""

_CLASSES = """
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted; ``coef_`` has a row for each of them, or one row for two.
"""

_PENALTY = """
    alpha : float, optional
        Weight of the penalty against the mean loss. Overrides C if given; C must then have its default.
    C : float, default 1.0
        scikit-learn's: alpha = 1/(C·Σs), where Σs is the number of samples, or the sum of their weights (class
        weights included).
    l1_ratio : float, default 1.0
        Share of the L1 norm, from 0 to 1; the rest is a ridge penalty.
    class_weight : "balanced" or dict, optional
        Factors of the samples of each class.
"""

_PENALTY_ATTRIBUTES = """
    alpha_, C_ : float
        The weight of the penalty that was used, as ``alpha`` and as scikit-learn's C: 1/(alpha_·Σs).
"""

_CV = """
    alphas : array or int, optional
        The values of alpha to choose from, or their number; default: ``n_alphas`` values from alpha_max (the smallest
        alpha at which no feature is in the model) down to ``eps``·alpha_max, equally spaced on a log scale.
    n_alphas : int, default 100
        The number of alphas.
    eps : float, default 1e-3
        The smallest alpha as a fraction of the largest.
    cv : int, splitter of scikit-learn or iterable of (train, test), default 5
        A number means consecutive folds (stratified for classes), shuffled if ``random_state`` is given.
    scoring : str or callable, default "deviance"
        Deviance (mean squared error, or −2 mean log probability), or a scorer of scikit-learn or its name, or any
        function of a fitted model, held-out rows of X and their targets. What ``make_scorer`` made is called with
        targets and predictions, which is faster.
    selection : {"min", "1se"}, default "min"
        The alpha of the best mean score, or the largest alpha whose score is within one standard error of it.
    fold_tol : float, optional
        ``tol`` of the models in the folds, at every alpha. Default: 100·tol at first (tol on sparse X of less
        than 5,000 rows, but for the squared loss), then tol and tol/100 at the few alphas whose scores are too close
        to tell which is best. The final fit uses ``tol``.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads; -1: as many as there are threads, -2: one less, as in
        joblib. Default: -1 if X has between 300,000 and 2 million stored values, 2 up to 20 million, otherwise 1: on
        larger data all threads work on one fold, on smaller data there is too little work to divide. Folds of sparse
        X that are solved side by side count as one.
    random_state : int, optional
        Shuffles the rows before they are divided into folds, if ``cv`` is a number.
    store_coefs : bool, default False
        Keep the weights of the folds' models, as ``coefs_paths_`` and ``intercepts_paths_``.
"""

_CV_ATTRIBUTES = """
    alpha_ : float
        The chosen alpha, which is ``alpha_min_`` or ``alpha_1se_``.
    alpha_min_ : float
        The alpha of the best mean score.
    alpha_1se_ : float
        The largest alpha whose score is within one standard error of the best.
    alphas_ : ndarray of shape (n_alphas,)
        All alphas, descending.
    score_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)
        Scores, greater is better.
    n_iter_path_ : ndarray in the shape of ``score_path_``
        Iterations that the models of a fold took at an alpha, all classes together; ``n_iter_`` is of the final fit.
    coefs_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_models) of CSR matrices, with ``store_coefs``
        Weights of the folds' models, a row for each alpha. Scores are of these, which are rougher than ``tol``.
    intercepts_paths_ : ndarray of shape (n_folds, n_l1_ratios, n_models, n_alphas), with ``store_coefs``
        Their intercepts.
    cv_results_ : dict of str to ndarray
        alpha, l1_ratio, mean_test_score, std_error, mean_nonzeros, split0_test_score, …
    oof_decision_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Out-of-fold predictions at the chosen alpha: the decision value (regression: the prediction) of each row,
        computed by the model of the fold in which the row was held out. For rows held out in several folds it is the
        mean, for rows held out in none nan.
"""

PARTS = {
    "{common}": _COMMON,
    "{classes}": _CLASSES,
    "{penalty}": _PENALTY,
    "{penalty_attributes}": _PENALTY_ATTRIBUTES,
    "{cv}": _CV,
    "{cv_attributes}": _CV_ATTRIBUTES,
}


def with_parameters(estimator: Class) -> Class:
    """Puts the shared parts where the docstring of a class names them."""
    estimator.__doc__ = with_shared_parts(inspect.cleandoc(estimator.__doc__ or ""))
    return estimator


def with_shared_parts(text: str) -> str:
    """A docstring without its indentation, whose marks are replaced by the parts."""
    for name, part in PARTS.items():
        text = text.replace(name, textwrap.dedent(part).strip())
    return text
