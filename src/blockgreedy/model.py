"""A fitted model as a thing of its own: to keep in a file, to look at, to predict with.

    model = Model.of_solution(problem, solution, dataset)
    model.save("model.npz")
    Model.load("model.npz").predict(X)

It holds one vector of weights per alpha (one after a fit, many after a path), the certificate of each, and how all of
it came about. Files are plain: ``.npz`` (arrays and one JSON text) or ``.json``; loading executes nothing.
docs/model-format.md describes them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from blockgreedy.data.dataset import as_names
from blockgreedy.data.encoding import Encoding
from blockgreedy.model_file import CV_ARRAYS, FORMAT, VERSION, read_model, write_model
from blockgreedy.trace import COLUMNS, WHOLE_COLUMNS, Record, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from blockgreedy.data import Dataset
    from blockgreedy.path import Path
    from blockgreedy.problem import Problem
    from blockgreedy.solve import Solution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CrossValidation:
    """Scores of held-out rows along the alphas; greater is better."""

    scoring: str
    alphas: Array
    mean: Array
    std_error: Array
    nonzeros: Array  # mean over the folds
    alpha_min: float
    alpha_1se: float
    n_folds: int

    @property
    def shown(self) -> Array:
        """The means as people read them: a deviance is above 0, and lower is better."""
        return -self.mean if self.scoring == "deviance" else self.mean

    @property
    def better(self) -> str:
        return "lower" if self.scoring == "deviance" else "greater"


@dataclass(frozen=True, eq=False)
class Model:
    loss: str
    alphas: Array  # K of them, descending
    coefs: Any = field(repr=False)  # sparse, n_features × K
    intercepts: Array = field(repr=False)
    objectives: Array = field(repr=False)
    gaps: Array = field(repr=False)  # nobody's objective is lower by more
    statuses: tuple[str, ...] = field(repr=False)
    f_null: float  # objective of the null model
    classes: NDArray[Any] | None = None  # the negative and the positive one
    feature_names: NDArray[np.str_] | None = field(default=None, repr=False)
    index_base: int | None = None  # of svmlight files
    encoding: Encoding | None = field(default=None, repr=False)  # of tables
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)  # what was asked for, and of which data
    deviance_explained: Array | None = field(default=None, repr=False)
    trace: Trace | None = field(default=None, repr=False)
    cross_validation: CrossValidation | None = field(default=None, repr=False)

    # ------------------------------------------------------------------------------------------ from results

    @classmethod
    def of_solution(
        cls,
        problem: Problem,
        solution: Solution,
        dataset: Dataset | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Model:
        s = solution
        return cls.of_weights(problem, s.coef, s.intercept, s.objective, s.gap, s.status, s.trace, dataset, settings)

    @classmethod
    def of_weights(
        cls,
        problem: Problem,
        coef: Array,
        intercept: float,
        objective: float,
        gap: float,
        status: str,
        trace: Trace | None = None,
        dataset: Dataset | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Model:
        features = np.flatnonzero(coef)
        ends = np.array([0, len(features)])
        return cls(
            alphas=np.array([problem.alpha]),
            coefs=sp.csc_array((coef[features], features, ends), shape=(problem.n_features, 1)),
            intercepts=np.array([intercept]),
            objectives=np.array([objective]),
            gaps=np.array([gap]),
            statuses=(status,),
            trace=trace,
            **_common(problem, dataset, settings),
        )

    @classmethod
    def of_path(cls, path: Path, dataset: Dataset | None = None, settings: Mapping[str, Any] | None = None) -> Model:
        return cls(
            alphas=path.alphas,
            coefs=path.coefs,
            intercepts=path.intercepts,
            objectives=path.objectives,
            gaps=path.gaps,
            statuses=tuple(path.statuses),
            deviance_explained=path.deviance_explained,
            **_common(path.problem, dataset, settings),
        )

    # ------------------------------------------------------------------------------------------------- facts

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_features(self) -> int:
        return int(self.coefs.shape[0])

    @property
    def nonzeros(self) -> NDArray[np.int64]:
        return np.asarray(np.diff(self.coefs.indptr), dtype=np.int64)

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    def at(self, alpha: float) -> Model:
        """The one of these models whose alpha is nearest, by ratio."""
        if not alpha > 0:
            raise ValueError(f"alpha={alpha!r} must be above 0")
        with np.errstate(divide="ignore"):
            k = int(np.argmin(np.abs(np.log(self.alphas / alpha))))
        explained = None if self.deviance_explained is None else self.deviance_explained[[k]]
        return replace(
            self, alphas=self.alphas[[k]], coefs=self.coefs[:, [k]], intercepts=self.intercepts[[k]],
            objectives=self.objectives[[k]], gaps=self.gaps[[k]], statuses=(self.statuses[k],),
            deviance_explained=explained,
        )  # fmt: skip

    @property
    def coef(self) -> Array:
        """Weights, zeros included, of a model with one alpha."""
        self._one()
        return np.asarray(self.coefs.toarray()[:, 0], dtype=np.float64)

    @property
    def intercept(self) -> float:
        self._one()
        return float(self.intercepts[0])

    def name_of(self, feature: int) -> str:
        if self.feature_names is not None:
            return str(self.feature_names[feature])
        return f"feature {feature + (self.index_base or 0)}"

    def top(self, k: int = 20) -> list[tuple[str, float]]:
        """The k features of largest |weight|, of a model with one alpha."""
        self._one()
        column = self.coefs[:, [0]]
        order = np.argsort(-np.abs(column.data), kind="stable")[:k]
        return [(self.name_of(int(column.indices[i])), float(column.data[i])) for i in order]

    def _one(self) -> None:
        if len(self) != 1:
            raise ValueError(f"this model has {len(self)} alphas; choose one with at(alpha)")

    # -------------------------------------------------------------------------------------------------- looks

    def plot(self, *, n_named: int = 6) -> Figure:
        """The path, or how the fit converged, or the largest weights: what this model has, as a matplotlib figure."""
        from blockgreedy.plots import chosen_features, convergence_figure, path_figure, weights_figure

        drawn = self.alphas > 0  # at alpha = 0 there is no place on a logarithmic axis
        if len(self) > 1 and np.any(drawn):
            coefs = sp.csr_array(self.coefs)
            shown = chosen_features(coefs, n_named)
            names = [self.name_of(int(j)) for j in shown[:n_named]]
            return path_figure(self.alphas[drawn], coefs[shown].toarray()[:, drawn], names, self.nonzeros[drawn])
        if self.trace is not None and len(self.trace) > 1:
            return convergence_figure(self.trace, float(self.objectives[0]))
        return weights_figure(self.at(float(self.alphas[0]) or 1.0).top())

    def _repr_html_(self) -> str:
        from blockgreedy.plots import notebook_html

        facts = [("loss", self.loss), ("alphas", f"{len(self)}")] if len(self) > 1 else [("loss", self.loss)]
        for name, values in (("alpha", self.alphas), ("objective", self.objectives), ("nonzeros", self.nonzeros)):
            facts.append((name, " … ".join(f"{v:.8g}" for v in (values[[0, -1]] if len(values) > 1 else values))))
        statuses = ", ".join(dict.fromkeys(self.statuses))
        facts += [("gap", f"{np.max(self.gaps, initial=0.0):.3g}"), ("status", statuses)]
        facts += [("features", f"{self.n_features:,}")]
        if len(self) == 1:
            facts += [("largest weights", ", ".join(f"{name} {weight:+.3g}" for name, weight in self.top(5)))]
        return notebook_html("Model", facts, "What the model looks like", self.plot if len(self) else None)

    # ------------------------------------------------------------------------------------------ predictions

    def decision(self, X: Any) -> Array:
        """X @ coef + intercept, of a model with one alpha."""
        self._one()
        X = X if sp.issparse(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            shape = X.shape
            raise ValueError(f"X has shape {shape}, expected two dimensions with {self.n_features:,} columns")
        decision = np.asarray(X @ self.coef, dtype=np.float64) + self.intercept
        if not np.all(np.isfinite(decision)):
            row = int(np.flatnonzero(~np.isfinite(decision))[0])
            raise ValueError(f"X holds NaN or infinite values: row {row + 1} has no prediction")
        return decision

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes, or predicted targets."""
        return self.labels_of(self.decision(X))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, for the logistic loss."""
        return self.probabilities_of(self.decision(X))

    def labels_of(self, decision: Array) -> NDArray[Any]:
        return decision if self.classes is None else np.asarray(self.classes[(decision > 0).astype(int)])

    def probabilities_of(self, decision: Array) -> Array:
        if self.loss != "logistic":
            raise ValueError(f"loss={self.loss!r} gives no probabilities; the logistic loss does")
        return np.column_stack([expit(-decision), expit(decision)])

    # ------------------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes ``.npz`` or ``.json``, complete or not at all."""
        write_model(FilePath(path), *self._to_plain())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Reads what ``save`` wrote; nothing in the file is executed, and what makes no model is refused."""
        header, arrays = read_model(FilePath(path))
        try:
            return cls._of_plain(header, arrays)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as a model: {error}") from error

    def _to_plain(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        coefs = sp.csc_array(self.coefs)
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "loss": self.loss,
            "n_features": self.n_features,
            "f_null": self.f_null,
            "statuses": list(self.statuses),
            "classes": None if self.classes is None else self.classes.tolist(),
            "index_base": self.index_base,
            "encoding": None if self.encoding is None else self.encoding.to_json(),
            "settings": dict(self.settings),
        }
        arrays: dict[str, NDArray[Any]] = {
            "alphas": self.alphas,
            "indptr": coefs.indptr.astype(np.int64),
            "features": coefs.indices.astype(np.int64),
            "weights": coefs.data,
            "intercepts": self.intercepts,
            "objectives": self.objectives,
            "gaps": self.gaps,
        }
        if self.feature_names is not None and self.encoding is None:
            names = as_names(np.asarray(self.feature_names))
            assert names is not None
            arrays["feature_names"] = names
        if self.deviance_explained is not None:
            arrays["deviance_explained"] = self.deviance_explained
        if self.trace is not None:
            arrays |= {f"trace_{name}": self.trace[name] for name in COLUMNS}
        if self.cross_validation is not None:
            parts = {f.name: getattr(self.cross_validation, f.name) for f in fields(CrossValidation)}
            arrays |= {f"cv_{name}": part for name, part in parts.items() if isinstance(part, np.ndarray)}
            header["cv"] = {name: part for name, part in parts.items() if not isinstance(part, np.ndarray)}
        return header, arrays

    @classmethod
    def _of_plain(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
        encoding = Encoding.of_json(header.get("encoding"))
        n_features, n_alphas = header["n_features"], len(arrays["alphas"])
        if encoding is not None and encoding.n_features != n_features:
            raise ValueError(f"encoding has {encoding.n_features} features, expected {n_features}")
        coefs = sp.csc_array((arrays["weights"], arrays["features"], arrays["indptr"]), shape=(n_features, n_alphas))
        trace = None
        if f"trace_{COLUMNS[0]}" in arrays:
            columns = [
                arrays[f"trace_{name}"].astype(int if name in WHOLE_COLUMNS else float).tolist() for name in COLUMNS
            ]
            trace = Trace([Record(*row) for row in zip(*columns, strict=True)])
        cross = None
        if header.get("cv") is not None:
            own = {name.removeprefix("cv_"): arrays[name] for name in CV_ARRAYS}
            parts = header["cv"] | own
            cross = CrossValidation(**{f.name: parts[f.name] for f in fields(CrossValidation)})
        return cls(
            loss=header["loss"],
            alphas=arrays["alphas"],
            coefs=coefs,
            intercepts=arrays["intercepts"],
            objectives=arrays["objectives"],
            gaps=arrays["gaps"],
            statuses=tuple(header["statuses"]),
            f_null=float(header["f_null"]),
            classes=None if header["classes"] is None else np.array(header["classes"]),
            feature_names=arrays.get("feature_names") if encoding is None else encoding.feature_names,
            index_base=header["index_base"],
            encoding=encoding,
            settings=header["settings"],
            deviance_explained=arrays.get("deviance_explained"),
            trace=trace,
            cross_validation=cross,
        )


def _common(problem: Problem, dataset: Dataset | None, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "loss": problem.loss.name,
        "f_null": problem.null_model.objective,
        "classes": problem.classes,
        "settings": dict(settings or {}),
        **(
            {}
            if dataset is None
            else {
                "feature_names": dataset.feature_names,
                "index_base": dataset.index_base,
                "encoding": dataset.encoding,
            }
        ),
    }
