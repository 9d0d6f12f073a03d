"""TableEncoder: tables that Python holds → sparse matrices, in the form of a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from blockgreedy.base.validate import float_type
from blockgreedy.data.encode import encode, fit_encoding, refuse_columns
from blockgreedy.data.encoding import Encoding
from blockgreedy.data.frames import columns_of, has_names
from blockgreedy.data.treatment import Crosses, Fill, Names, Treatment
from blockgreedy.estimators.doc_link import DocLinkMixin


class TableEncoder(DocLinkMixin, TransformerMixin, BaseEstimator):
    """Encodes tables as sparse matrices: one-hot categories and their crosses. ``load`` does the same for files.

    A table is a data frame of pandas or polars (a LazyFrame is collected), a table of pyarrow, a dict of arrays, a
    structured array or an array with two dimensions; pandas, polars and pyarrow are optional. Columns of text are
    categories, a column of numbers is one feature. Missing and unseen categories are encoded as all zeros; one
    warning counts the unseen ones.

    Parameters
    ----------
    categorical : str or list of str, optional
        Columns of numbers that are categories: a list, or text such as ``"site,hour"``. A pattern such as
        ``"site_*"`` matches several columns; ``"all"`` means all columns of text, booleans or whole numbers.
    drop : str or list of str, optional
        Columns to leave out, given in the same way.
    fill : float, str or dict, optional
        Replaces missing numbers: a number, ``"mean"`` or ``"median"`` of the column in ``fit``, or different values
        for columns: ``"price=0,age=median"`` or a dict. Default: missing numbers are an error.
    cross : str or list of str, optional
        Crosses of columns of categories, with a feature for each combination that occurs: ``"site,hour"``, a list of
        these, or ``"all:2"`` (``"all:3"``) for all pairs (triples) of such columns.
    min_count : int, default 1
        Categories and combinations that occur in fewer rows of the table in ``fit`` have no feature.
    names : list of str, optional
        Names for the columns of an array with two dimensions (default: x0, x1, …).
    dtype : float64 or float32, default float64
        Type of the matrix.
    n_threads : int, optional
        Default: all cores that the process may use. The result does not depend on it.

    Attributes
    ----------
    encoding : Encoding
        How columns became features; ``load(path, encoding=…)`` reads files in the same way.
    n_features_in_ : int
        Number of columns of the table that ``fit`` saw.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> encoder = bg.TableEncoder()
    >>> encoder.fit_transform({"city": ["Rome", "Oslo", "Rome"], "age": [31, 45, 27]}).toarray()
    array([[ 0.,  1., 31.],
           [ 1.,  0., 45.],
           [ 0.,  1., 27.]])
    >>> encoder.get_feature_names_out().tolist()
    ['city=Oslo', 'city=Rome', 'age']
    """

    def __init__(
        self,
        categorical: Names = None,
        drop: Names = None,
        fill: Fill = None,
        cross: Crosses = None,
        min_count: int = 1,
        *,
        names: list[str] | None = None,
        dtype: Any = np.float64,
        n_threads: int | None = None,
    ) -> None:
        self.categorical = categorical
        self.drop = drop
        self.fill = fill
        self.cross = cross
        self.min_count = min_count
        self.names = names
        self.dtype = dtype
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learns categories, combinations and fills; refuses what ``transform`` would refuse of the same table."""
        columns, _ = self._fit(X)
        refuse_columns(columns, self.encoding_)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        columns, words = self._fit(X)
        return encode(columns, self.encoding, dtype=self.dtype, known=words, n_threads=self.n_threads)

    def _fit(self, X: Any) -> tuple[Any, Any]:
        treatment = Treatment.of(self.categorical, self.drop, self.fill, self.cross, self.min_count)
        float_type("dtype", self.dtype)
        columns = columns_of(X, self.names)
        if not len(next(iter(columns.values()))):
            raise ValueError("the table has no rows to learn an encoding from")
        plan = treatment.plan({name: column.kind for name, column in columns.items()})
        self.encoding_, words = fit_encoding([columns[name] for name in plan.roles], plan, n_threads=self.n_threads)
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        return columns, words

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        columns = columns_of(X, self.names)
        if not has_names(X) and len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} features, but TableEncoder is expecting {self.n_features_in_} features as "
                "input: columns without names are told apart by their places, so there must be as many as in fit"
            )
        return encode(columns, self.encoding, dtype=self.dtype, n_threads=self.n_threads)

    @property
    def encoding(self) -> Encoding:
        check_is_fitted(self)
        return self.encoding_

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """``price`` for a column of numbers, ``site=a`` for a category, ``site=a × hour=3`` for a combination."""
        return self.encoding.feature_names.astype(object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = True
        return tags
