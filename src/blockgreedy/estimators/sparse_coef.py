"""Weights of fitted estimators, dense or sparse."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted


def dense_coef(estimator: Any) -> NDArray[Any]:
    """``coef_`` as an array in the shape that the fit gave it, also after ``sparsify``."""
    coef: Any = estimator.coef_
    if not hasattr(coef, "toarray"):
        return np.asarray(coef)
    rows = np.asarray(coef.toarray())
    return rows[0] if np.ndim(estimator.intercept_) == 0 else rows


class SparseCoefMixin:
    """``coef_`` can be held sparse, as that of scikit-learn's classifiers."""

    coef_: Any

    @property
    def sparse_coef_(self) -> sp.csr_matrix:
        """``coef_`` as a sparse matrix with a row for each target."""
        check_is_fitted(self)
        coef: Any = self.coef_
        return sp.csr_matrix(coef if hasattr(coef, "toarray") else np.atleast_2d(coef))

    def sparsify(self) -> Self:
        """Holds ``coef_`` as a sparse matrix, with a row for each model: less memory, and smaller files.

        Predictions stay the same; a new fit makes it dense again.
        """
        self.coef_ = self.sparse_coef_
        return self

    def densify(self) -> Self:
        """Holds ``coef_`` as an array again, in the shape that the fit gave it."""
        check_is_fitted(self)
        self.coef_ = dense_coef(self)
        return self
