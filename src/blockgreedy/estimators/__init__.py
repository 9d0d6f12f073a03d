"""scikit-learn estimators, thin over ``solve``. ``import blockgreedy`` loads them when one is asked for."""

from blockgreedy.estimators.classifiers import LogisticRegression, SquaredHingeClassifier
from blockgreedy.estimators.regressors import ElasticNet, HuberLasso, Lasso

__all__ = ["ElasticNet", "HuberLasso", "Lasso", "LogisticRegression", "SquaredHingeClassifier"]
