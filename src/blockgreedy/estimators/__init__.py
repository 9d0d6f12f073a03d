"""scikit-learn estimators, thin over ``solve`` and ``solve_path``. ``import blockgreedy`` loads them on demand."""

from blockgreedy.estimators.classifiers import LogisticRegression as LogisticRegression
from blockgreedy.estimators.classifiers import SquaredHingeClassifier as SquaredHingeClassifier
from blockgreedy.estimators.cv_models import ElasticNetCV as ElasticNetCV
from blockgreedy.estimators.cv_models import LassoCV as LassoCV
from blockgreedy.estimators.cv_models import LogisticRegressionCV as LogisticRegressionCV
from blockgreedy.estimators.encoder import TableEncoder as TableEncoder
from blockgreedy.estimators.regressors import ElasticNet as ElasticNet
from blockgreedy.estimators.regressors import HuberLasso as HuberLasso
from blockgreedy.estimators.regressors import Lasso as Lasso
