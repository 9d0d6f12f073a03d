"""scikit-learn estimators, thin over ``solve`` and ``solve_path``. ``import blockgreedy`` loads them on demand."""

from blockgreedy.estimators.classifiers import LogisticRegression, SquaredHingeClassifier
from blockgreedy.estimators.cv_models import ElasticNetCV, LassoCV, LogisticRegressionCV
from blockgreedy.estimators.encoder import TableEncoder
from blockgreedy.estimators.regressors import ElasticNet, HuberLasso, Lasso

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberLasso",
    "Lasso",
    "LassoCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "SquaredHingeClassifier",
    "TableEncoder",
]
