"""A design matrix with one label per row."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import date
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.base.design import LabelledDesign

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockgreedy.data.encoding import Encoding

_SHOWN = 10  # names, in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(LabelledDesign):
    """A design matrix with one label per row.

    Attributes
    ----------
    X : sparse matrix or ndarray of shape (n_samples, n_features)
        The design matrix.
    y : ndarray of shape (n_samples,)
        Labels: numbers or text.
    feature_names : ndarray of shape (n_features,) or None
        Names of the columns, as text.
    name : str
        A name of the data set, for tables and figures.
    index_base : int or None
        Of svmlight text: the index of its first feature, 0 or 1.
    encoding : Encoding or None
        Of a table: how its columns became features.
    labelled : bool
        False if the file had no labels; y is then all 0.
    code_columns : tuple of str
        Of a table: columns used as numbers whose values look like codes of categories.

    Examples
    --------
    >>> import numpy as np
    >>> import blockgreedy as bg
    >>> bg.Dataset(np.eye(3), np.array([1, -1, 1]), name="tiny")
    Dataset('tiny', 3 x 3, 3 nonzeros, float64, y {-1: 1, 1: 2})
    """

    X: Any
    y: NDArray[Any]
    feature_names: NDArray[np.str_] | None = None
    name: str = ""
    index_base: int | None = None
    encoding: Encoding | None = None
    labelled: bool = True
    code_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if getattr(self.X, "ndim", None) != 2:
            raise ValueError(f"X must be a matrix with two dimensions, got {_describe(self.X)}")
        n_samples, n_features = self.X.shape
        if not isinstance(self.y, np.ndarray) or self.y.shape != (n_samples,):
            raise ValueError(
                f"y must be an array of shape ({n_samples},), one label per row of X, got {_describe(self.y)}"
            )
        if self.y.dtype.kind not in "biufU":
            raise ValueError(f"y must hold numbers or text, got dtype {self.y.dtype}")
        names = self.feature_names
        if names is not None and (not isinstance(names, np.ndarray) or names.shape != (n_features,)):
            raise ValueError(
                f"feature_names must be None or an array of shape ({n_features},), one name per column of X, "
                f"got {_describe(names)}"
            )
        object.__setattr__(self, "feature_names", as_names(names))

    @classmethod
    def of_file(cls, path: Path, X: Any, y: NDArray[Any], names: NDArray[np.str_] | None, **more: Any) -> Dataset:
        """A dataset with the name of the file; errors mention its path."""
        try:
            return cls(X, y, names, name=path.name.split(".")[0], **more)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def astype(self, dtype: Any) -> Dataset:
        return self if self.X.dtype == dtype else replace(self, X=self.X.astype(dtype))

    def __repr__(self) -> str:
        n_samples, n_features = self.X.shape
        title = f"{self.name!r}, " if self.name else ""
        size = f"{n_samples:,} x {n_features:,}, {self._nonzeros():,} nonzeros, {self.X.dtype}"
        return f"Dataset({title}{size}, y {{{self._labels()}}})"

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        n_samples, n_features = self.X.shape
        nonzeros = self._nonzeros()
        density = nonzeros / max(n_samples * n_features, 1)
        names = [] if self.feature_names is None else [str(name) for name in self.feature_names[:_SHOWN]]
        more = f", … ({n_features - _SHOWN:,} more)" if n_features > _SHOWN else ""
        facts = [
            ("rows", f"{n_samples:,}"),
            ("features", f"{n_features:,}"),
            ("nonzero entries", f"{nonzeros:,} ({100 * density:.3g} %), {self.X.dtype}"),
            ("labels", self._labels() if self.labelled else "none"),
            *([("feature names", ", ".join(names) + more)] if names else []),
        ]
        return notebook_html(f"Dataset {self.name}".strip(), facts)

    def _nonzeros(self) -> int:
        return int(np.count_nonzero(self.X) if isinstance(self.X, np.ndarray) else self.X.nnz)

    def _labels(self) -> str:
        values, counts = np.unique(self.y, return_counts=True)
        if values.size <= 10:
            return ", ".join(f"{label_text(value)}: {count:,}" for value, count in zip(values, counts, strict=True))
        return f"{values.size:,} values in [{label_text(values[0])}, {label_text(values[-1])}]"


def as_names(names: NDArray[Any] | None) -> NDArray[np.str_] | None:
    """Names as text, whatever holds them: pandas gives objects, h5py bytes, a frame without header numbers."""
    if names is None or names.dtype.kind == "U":
        return names
    return np.array([_name_text(k, name) for k, name in enumerate(names)], dtype=np.str_)


def _name_text(k: int, name: Any) -> str:
    # NaN and NaT differ from themselves: names that are missing
    if isinstance(name, (str, Real, np.bool_, date, np.datetime64)) and name == name:
        return str(name)
    if isinstance(name, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return name.decode()
    raise ValueError(f"feature_names[{k}]={name!r} cannot be taken as text; accepted are text, numbers and dates")


def label_text(label: Any) -> str:
    """1 rather than 1.0, and no digit lost: labels are told apart by it."""
    return repr(float(label)).removesuffix(".0") if isinstance(label, (float, np.floating)) else str(label)


def _describe(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {shape}"
