"""Our estimators under scikit-learn's signatures, for its own tests: parameters are translated where they map."""

from __future__ import annotations

import inspect

import numpy as np
import sklearn.linear_model as sk

import blockgreedy as bg

SHARED = ("fit_intercept", "tol", "max_iter", "verbose")


def guest(ours, theirs, translate, finish=None):
    """A class with the name and the parameters of ``theirs`` that fits as ``ours``.

    translate(self, X, y, weights) gives our parameters, finish(self) adds their attributes.
    """
    signature = inspect.signature(theirs.__init__)

    def __init__(self, *arguments, **named):
        bound = signature.bind(self, *arguments, **named)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    def fit(self, X, y, sample_weight=None, check_input=True, **more):
        model = ours(**translate(self, X, y, sample_weight))
        if hasattr(self, "_skl_callbacks"):  # of set_callbacks
            model.set_callbacks(*self._skl_callbacks)
        if getattr(self, "warm_start", False):
            vars(model).update({name: value for name, value in vars(self).items() if name in ("coef_", "intercept_")})
        try:
            model.fit(X, y, sample_weight, **more)
        finally:
            vars(self).update({name: value for name, value in vars(model).items() if name.endswith("_")})
        if finish is not None:
            finish(self)
        return self

    __init__.__signature__ = signature
    return type(theirs.__name__, (ours,), {"__init__": __init__, "fit": fit, "penalty": None})


def shared(model, *more):
    """Parameters that are called the same."""
    return {name: getattr(model, name) for name in (*SHARED, *more) if hasattr(model, name)}


def linear(model, X, y, weights):
    return shared(model, "alpha", "l1_ratio", "positive", "warm_start")


def linear_cv(model, X, y, weights):
    """``selection`` and ``random_state`` are about the order of features there, about choice and folds here."""
    options = shared(model, "l1_ratio", "positive", "eps", "alphas", "cv", "n_jobs")
    n_alphas = vars(model).get("n_alphas")  # until scikit-learn 1.8; "deprecated" there unless given
    return options if n_alphas is None or isinstance(n_alphas, str) else options | {"n_alphas": n_alphas}


def ratio_of(penalty, ratio):
    """Of the parameter ``penalty``, deprecated in scikit-learn 1.8, and l1_ratio."""
    return ratio if penalty == "elasticnet" else {"l1": 1.0, "l2": 0.0}.get(penalty, 0.0 if ratio is None else ratio)


def logistic(model, X, y, weights):
    options = shared(model, "class_weight", "warm_start")
    C = np.inf if model.penalty is None else model.C
    return options | {"C": C, "l1_ratio": ratio_of(model.penalty, model.l1_ratio)}


def ratios_of(model):
    ratios = [None] if model.l1_ratios is None or isinstance(model.l1_ratios, str) else list(model.l1_ratios)
    return [ratio_of(model.penalty, ratio) for ratio in ratios]


def costs_of(model):
    """Ascending, as our alphas descend."""
    return np.logspace(-4, 4, model.Cs) if isinstance(model.Cs, int) else np.sort(np.asarray(model.Cs, dtype=float))


def logistic_cv(model, X, y, weights):
    """``Cs`` multiply the sum of the losses of all rows."""
    total = len(y) if weights is None else np.sum(weights)
    scoring = "accuracy" if isinstance(model.scoring, str) and model.scoring == "warn" else model.scoring
    options = shared(model, "class_weight", "cv", "n_jobs")
    return options | {"alphas": 1 / (costs_of(model) * total), "l1_ratio": ratios_of(model), "scoring": scoring}


def name_costs(model):
    model.Cs_, model.l1_ratios_ = costs_of(model), np.array(ratios_of(model))
    model.C_ = model.Cs_[np.argmin(np.abs(np.log(model.Cs_ / model.C_)))]
    n_folds = model.score_path_.shape[-1]
    scores = model.score_path_.reshape(len(model.l1_ratios_), len(model.Cs_), n_folds).transpose(2, 0, 1)
    if model.use_legacy_attributes is False:
        model.scores_ = scores
        return
    by_cost = scores[:, 0] if len(model.l1_ratios_) == 1 else scores.transpose(0, 2, 1)
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    model.scores_ = dict.fromkeys(classes, by_cost)
    model.C_, model.l1_ratio_ = np.full(len(classes), model.C_), np.full(len(classes), model.l1_ratio_)


GUESTS = {
    "Lasso": guest(bg.Lasso, sk.Lasso, linear),
    "ElasticNet": guest(bg.ElasticNet, sk.ElasticNet, linear),
    "LassoCV": guest(bg.LassoCV, sk.LassoCV, linear_cv),
    "ElasticNetCV": guest(bg.ElasticNetCV, sk.ElasticNetCV, linear_cv),
    "LogisticRegression": guest(bg.LogisticRegression, sk.LogisticRegression, logistic),
    "LogisticRegressionCV": guest(bg.LogisticRegressionCV, sk.LogisticRegressionCV, logistic_cv, name_costs),
}
