"""A model as a header and arrays, which is what its file holds, and back; docs/model-format.md describes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from blockgreedy.base.names import CRITERIA
from blockgreedy.data.dataset import as_names
from blockgreedy.data.encoding import Encoding
from blockgreedy.models.aliases import Aliases
from blockgreedy.models.cross_validation import CrossValidation
from blockgreedy.models.model_file import FORMAT, VERSION
from blockgreedy.models.quality import CURVES, Quality
from blockgreedy.solvers.trace import COLUMNS, WHOLE_COLUMNS, Record, Trace

if TYPE_CHECKING:
    from blockgreedy.models.model import Model

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def to_plain(model: Model) -> tuple[Header, Arrays]:
    coefs = sp.csc_array(model.coefs)
    header: Header = {
        "format": FORMAT,
        "version": VERSION,
        "loss": model.loss,
        "n_features": model.n_features,
        "f_null": model.f_null,
        "statuses": list(model.statuses),
        "classes": None if model.classes is None else model.classes.tolist(),
        "index_base": model.index_base,
        "encoding": None if model.encoding is None else model.encoding.to_json(),
        "settings": dict(model.settings),
    }
    arrays: Arrays = {
        "alphas": model.alphas,
        "indptr": coefs.indptr.astype(np.int64),
        "features": coefs.indices.astype(np.int64),
        "weights": coefs.data,
        "intercepts": model.intercepts,
        "objectives": model.objectives,
        "gaps": model.gaps,
    }
    if model.feature_names is not None and model.encoding is None:
        names = as_names(np.asarray(model.feature_names))
        assert names is not None
        arrays["feature_names"] = names
    for name in ("deviance_explained", "support"):
        if getattr(model, name) is not None:
            arrays[name] = getattr(model, name)
    if model.aliases is not None:
        arrays |= model.aliases.to_arrays()
    if model.criteria is not None:
        arrays |= {f"criteria_{name}": model.criteria[name] for name in CRITERIA}
    if model.trace is not None:
        arrays |= {f"trace_{name}": model.trace[name] for name in COLUMNS}
    if model.cross_validation is not None:
        parts = {f.name: getattr(model.cross_validation, f.name) for f in fields(CrossValidation)}
        arrays |= {f"cv_{name}": part for name, part in parts.items() if isinstance(part, np.ndarray)}
        header["cv"] = {name: p for name, p in parts.items() if p is not None and not isinstance(p, np.ndarray)}
    if model.quality is not None:
        q = model.quality
        header["quality"] = {
            "rows": q.rows, "n_samples": q.n_samples, "scores": dict(q.scores), "baseline": dict(q.baseline),
        }  # fmt: skip
        arrays |= {f"quality_{name}": values for name, values in q.curves.items()}
    return header, arrays


def of_plain(header: Header, arrays: Arrays) -> dict[str, Any]:
    """The fields of a Model; what the file is too old to have is None."""
    encoding = Encoding.of_json(header.get("encoding"))
    n_features, n_alphas = header["n_features"], len(arrays["alphas"])
    if encoding is not None and encoding.n_features != n_features:
        raise ValueError(f"encoding has {encoding.n_features} features, expected {n_features}")
    weights = arrays["weights"], arrays["features"], arrays["indptr"]
    return {
        "loss": header["loss"],
        "alphas": arrays["alphas"],
        "coefs": sp.csc_array(weights, shape=(n_features, n_alphas)),
        "intercepts": arrays["intercepts"],
        "objectives": arrays["objectives"],
        "gaps": arrays["gaps"],
        "statuses": tuple(header["statuses"]),
        "f_null": float(header["f_null"]),
        "classes": None if header["classes"] is None else np.array(header["classes"]),
        "feature_names": arrays.get("feature_names") if encoding is None else encoding.feature_names,
        "index_base": header["index_base"],
        "encoding": encoding,
        "settings": header["settings"],
        "deviance_explained": arrays.get("deviance_explained"),
        "support": arrays.get("support"),
        "aliases": _aliases(arrays),
        "criteria": _named(arrays, "criteria_", CRITERIA) or None,
        "trace": _trace(arrays),
        "cross_validation": _cross_validation(header.get("cv"), arrays),
        "quality": _quality(header.get("quality"), arrays),
    }


def _named(arrays: Arrays, prefix: str, names: Iterable[str]) -> Arrays:
    """Those of the arrays that are there, without the prefix."""
    return {name: arrays[prefix + name] for name in names if prefix + name in arrays}


def _aliases(arrays: Arrays) -> Aliases | None:
    if "alias_indptr" not in arrays:
        return None
    return Aliases.of_arrays(arrays["alias_indptr"], arrays["alias_features"], np.unique(arrays["features"]))


def _trace(arrays: Arrays) -> Trace | None:
    found = _named(arrays, "trace_", COLUMNS)
    if not found:
        return None
    columns = [found[name].astype(int if name in WHOLE_COLUMNS else float).tolist() for name in COLUMNS]
    return Trace([Record(*row) for row in zip(*columns, strict=True)])


def _cross_validation(header: Header | None, arrays: Arrays) -> CrossValidation | None:
    if header is None:
        return None
    names = tuple(f.name for f in fields(CrossValidation))
    return CrossValidation(
        **({name: header[name] for name in names if name in header} | _named(arrays, "cv_", names))
    )


def _quality(header: Header | None, arrays: Arrays) -> Quality | None:
    if header is None:
        return None
    scores, baseline = ({k: float(v) for k, v in header[name].items()} for name in ("scores", "baseline"))
    return Quality(header["rows"], header["n_samples"], scores, baseline, _named(arrays, "quality_", CURVES))
