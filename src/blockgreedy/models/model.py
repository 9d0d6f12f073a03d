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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.design import TiledDesign
from blockgreedy.base.names import CRITERIA
from blockgreedy.base.surroundings import surroundings
from blockgreedy.base.validate import one_of
from blockgreedy.data.encoding import Encoding
from blockgreedy.models.aliases import Aliases
from blockgreedy.models.cross_validation import CrossValidation
from blockgreedy.models.extras import aliases_of, support_of, unless_memory_ends
from blockgreedy.models.model_file import read_model, write_model
from blockgreedy.models.plain import of_plain, to_plain
from blockgreedy.models.quality import Quality, measure
from blockgreedy.problem.losses import LOSSES
from blockgreedy.solvers.criteria import lowest
from blockgreedy.solvers.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from blockgreedy.data import Dataset
    from blockgreedy.problem.problem import Problem
    from blockgreedy.solvers.solution import Solution
    from blockgreedy.solvers.solution_path import SolutionPath

Array = NDArray[np.float64]

__all__ = ["CrossValidation", "Model"]


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model that can be saved, loaded and used for predictions, without the data it was fitted on.

    It holds the weights for one alpha (``fit``, ``cv``) or for each of the K alphas of a path; ``at(alpha)`` selects
    one of a path. ``Model.of_solution(problem, solution)`` and ``Model.of_path(path)`` make one.

    Attributes
    ----------
    loss : str
        Name of the loss.
    alphas : ndarray of shape (K,)
        Descending.
    coefs : sparse matrix of shape (n_features, K)
        Weights.
    intercepts, objectives : ndarray of shape (K,)
        The intercept and the objective at each alpha.
    gaps : ndarray of shape (K,)
        The objective is at most this much above the true minimum.
    statuses : tuple of str
        How each fit ended.
    f_null : float
        Objective of the null model.
    classes : ndarray of shape (2,) or None
        The negative and the positive class.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features.
    index_base : int or None
        Of svmlight files: the index of the first feature.
    encoding : Encoding or None
        Of tables: how columns became features.
    settings : mapping
        What was asked for, and of which data.
    deviance_explained : ndarray of shape (K,) or None
        Share of the null model's loss that is explained.
    trace : Trace or None
        The course of the fit.
    cross_validation : CrossValidation or None
        What is known of each alpha after a cross-validation.
    quality : Quality or None
        How well the model predicts: on held-out rows if there are any, else on the training rows.
    support : ndarray of shape (n_features,) or None
        Number of training rows in which each feature is not 0.
    criteria : mapping of str to ndarray, or None
        Of a path: "aic", "bic" and "ebic" at each alpha.
    aliases : mapping of int to list of int, or None
        Of each feature with a weight that has copies in the data: the other columns that are multiples of it.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(300, 400, 10.0)
    >>> problem = bg.Problem(data, loss="logistic", alpha=0.001)
    >>> model = bg.Model.of_solution(problem, bg.solve(problem))
    >>> model.decision(data.X).shape
    (300,)
    """

    loss: str
    alphas: Array
    coefs: Any = field(repr=False)
    intercepts: Array = field(repr=False)
    objectives: Array = field(repr=False)
    gaps: Array = field(repr=False)
    statuses: tuple[str, ...] = field(repr=False)
    f_null: float
    classes: NDArray[Any] | None = None
    feature_names: NDArray[np.str_] | None = field(default=None, repr=False)
    index_base: int | None = None
    encoding: Encoding | None = field(default=None, repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    deviance_explained: Array | None = field(default=None, repr=False)
    trace: Trace | None = field(default=None, repr=False)
    cross_validation: CrossValidation | None = field(default=None, repr=False)
    quality: Quality | None = field(default=None, repr=False)
    support: NDArray[np.int64] | None = field(default=None, repr=False)
    criteria: Mapping[str, Array] | None = field(default=None, repr=False)
    aliases: Aliases | None = field(default=None, repr=False)

    @classmethod
    def of_solution(
        cls,
        problem: Problem,
        solution: Solution,
        dataset: Dataset | None = None,
        settings: Mapping[str, Any] | None = None,
        memory: int | str | None = None,
    ) -> Model:
        """``memory``: what a problem of a store may take to find out which features have copies, as in ``solve``."""
        s, more = solution.checked_for(problem), (dataset, settings, memory)
        return cls.of_weights(problem, s.coef, s.intercept, s.objective, s.gap, s.status, s.trace, *more)

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
        memory: int | str | None = None,
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
            **_common(problem, features, dataset, settings, memory),
        )

    @classmethod
    def of_path(
        cls, path: SolutionPath, dataset: Dataset | None = None, settings: Mapping[str, Any] | None = None
    ) -> Model:
        return cls(
            alphas=path.alphas,
            coefs=path.coefs,
            intercepts=path.intercepts,
            objectives=path.objectives,
            gaps=path.gaps,
            statuses=tuple(path.statuses),
            deviance_explained=path.deviance_explained,
            criteria=path.criteria.to_choose_by(),
            **_common(path.problem, np.unique(path.coefs.indices), dataset, settings),
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

    def at(self, alpha: float | str) -> Model:
        """The model at one alpha: the nearest on a log scale, or the one that "aic", "bic" or "ebic" chooses."""
        if isinstance(alpha, str):
            k = self._chosen_by(alpha)
        elif not alpha > 0:
            raise ValueError(f"alpha={alpha!r} must be above 0")
        else:
            with np.errstate(divide="ignore"):
                k = int(np.argmin(np.abs(np.log(self.alphas / alpha))))
        explained = None if self.deviance_explained is None else self.deviance_explained[[k]]
        criteria = None if self.criteria is None else {name: v[[k]] for name, v in self.criteria.items()}
        coefs = self.coefs[:, [k]]
        return replace(
            self, alphas=self.alphas[[k]], coefs=coefs, intercepts=self.intercepts[[k]],
            objectives=self.objectives[[k]], gaps=self.gaps[[k]], statuses=(self.statuses[k],),
            deviance_explained=explained, criteria=criteria, quality=self.quality if len(self) == 1 else None,
            aliases=None if self.aliases is None else self.aliases.restricted_to(coefs.indices),
        )  # fmt: skip

    def _chosen_by(self, criterion: str) -> int:
        one_of("alpha", criterion, CRITERIA)
        if self.criteria is None:
            raise ValueError(
                f"alpha={criterion!r}: this model has no information criteria; paths of the squared and the logistic "
                "loss have them (solve_path, blockgreedy path), in files of version 2 or later"
            )
        return lowest(criterion, self.criteria[criterion])

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
        """A figure of the first of these that the model has: path, cross-validation, convergence, largest weights."""
        from blockgreedy.reports.plots import (
            chosen_features,
            convergence_figure,
            path_figure,
            scores_figure,
            weights_figure,
        )

        drawn = self.alphas > 0  # at alpha = 0 there is no place on a logarithmic axis
        if len(self) > 1 and np.any(drawn):
            coefs = sp.csr_array(self.coefs)
            shown = chosen_features(coefs, n_named)
            names = [self.name_of(int(j)) for j in shown[:n_named]]
            return path_figure(self.alphas[drawn], coefs[shown].toarray()[:, drawn], names, self.nonzeros[drawn])
        found = self.cross_validation
        if found is not None:
            means, chosen = (found.alphas, found.shown, found.std_error), (found.alpha_min, found.alpha_1se)
            return scores_figure(*means, found.shown_folds, chosen, found.scoring)
        if self.trace is not None and len(self.trace) > 1:
            return convergence_figure(self.trace, float(self.objectives[0]))
        return weights_figure(self.at(float(self.alphas[0]) or 1.0).top())

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        facts = [("loss", self.loss), ("alphas", f"{len(self)}")] if len(self) > 1 else [("loss", self.loss)]
        for name, values in (("alpha", self.alphas), ("objective", self.objectives), ("nonzeros", self.nonzeros)):
            facts.append((name, " … ".join(f"{v:.8g}" for v in (values[[0, -1]] if len(values) > 1 else values))))
        statuses = ", ".join(dict.fromkeys(self.statuses))
        facts += [("gap", f"{np.max(self.gaps, initial=0.0):.3g}"), ("status", statuses)]
        facts += [("features", f"{self.n_features:,}")]
        top = self.top(10) if len(self) == 1 else []
        return notebook_html("Model", facts, "What the model looks like", self.plot if len(self) else None, top)

    # ------------------------------------------------------------------------------------------ predictions

    def decision(self, X: Any) -> Array:
        """X @ coef + intercept, of a model with one alpha. X may be a ``Store``, which is read a tile at a time."""
        self._one()
        X = X if sp.issparse(X) or isinstance(X, TiledDesign) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            shape = X.shape
            raise ValueError(f"X has shape {shape}, expected two dimensions with {self.n_features:,} columns")
        product = X.combine(self.coef) if isinstance(X, TiledDesign) else X @ self.coef
        decision = np.asarray(product, dtype=np.float64) + self.intercept
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
        loss = LOSSES[self.loss]()
        if not loss.gives_probabilities:
            raise ValueError(f"loss={self.loss!r} gives no probabilities; the logistic loss does")
        return np.column_stack([loss.probabilities(-decision), loss.probabilities(decision)])

    def measure(self, X: Any, y: ArrayLike, *, rows: str, sample_weight: ArrayLike | None = None) -> Quality:
        """How well it predicts y: AUC, log loss, R², … beside those of a constant prediction.

        ``rows`` describes the rows in words, to be shown with the scores, such as "20 % of the rows, held out".
        """
        return measure(self.loss, self.classes, self.decision(X), y, rows=rows, sample_weight=sample_weight)

    # ------------------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ``.npz`` or ``.json`` file, atomically: under a temporary name, then renamed."""
        write_model(Path(path), *to_plain(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Reads a file that ``save`` wrote. No code in it is executed; a file without a valid model is an error."""
        header, arrays = read_model(Path(path))
        try:
            return cls(**of_plain(header, arrays))
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as a model: {error}") from error


def _common(
    problem: Problem,
    with_weight: NDArray[np.int64],
    dataset: Dataset | None,
    settings: Mapping[str, Any] | None,
    memory: int | str | None = None,
) -> dict[str, Any]:
    return {
        "loss": problem.loss.name,
        "f_null": problem.null_model.objective,
        "classes": problem.classes,
        "support": unless_memory_ends("the numbers of rows", lambda: support_of(problem)),
        "aliases": unless_memory_ends("copies of features", lambda: aliases_of(problem, with_weight, memory)),
        "settings": dict(settings or {}) | surroundings(),
        **(
            {"feature_names": problem.feature_names}
            if dataset is None
            else {
                "feature_names": dataset.feature_names,
                "index_base": dataset.index_base,
                "encoding": dataset.encoding,
            }
        ),
    }
