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

# Types in files of skops (``trusted=`` of its ``load``) that hold fitted estimators of ours.
SKOPS_TYPES = [
    *(
        f"{kind.__module__}.{kind.__name__}"
        for kind in (
            *(Lasso, ElasticNet, HuberLasso, LogisticRegression, SquaredHingeClassifier),
            *(LassoCV, ElasticNetCV, LogisticRegressionCV, TableEncoder),
        )
    ),
    "blockgreedy.solvers.trace.Record",
    "blockgreedy.solvers.trace.Trace",
    "blockgreedy.data.encoding.Cross",
    "blockgreedy.data.encoding.Encoding",
    "blockgreedy.data.encoding.Source",
    "scipy.sparse._csr.csr_matrix",  # weights after sparsify()
]
