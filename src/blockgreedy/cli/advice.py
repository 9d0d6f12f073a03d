"""What a command notes about the data: the loss that labels suggest, columns that look as if they were misread."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.data import Dataset
from blockgreedy.data.dataset import label_text
from blockgreedy.problem.columns import as_columns
from blockgreedy.problem.passes import column_scales, core_matrix
from blockgreedy.problem.problem import Problem

_SHOWN = 8  # columns in a note
_FEW_CLASSES = 20  # whole numbers of so few values may be names of classes


def loss_for(y: NDArray[Any]) -> tuple[str, str]:
    """The loss that labels suggest, and the reason in words."""
    values = np.unique(y)
    if len(values) == 2:
        names = " and ".join(label_text(value) for value in values)
        return (
            "logistic",
            f"the labels have two values, {names}, so a logistic regression is fitted (--loss squared fits a "
            "regression)",
        )
    if y.dtype.kind == "U":
        raise ValueError(
            f"the labels are text with {len(values):,} different values; accepted are numbers, or text with two "
            "values. For more classes, fit one model per class, with labels that say whether a row is of that class"
        )
    classes = ". If they are classes, fit one model per class instead" if _look_like_classes(values) else ""
    return (
        "squared",
        f"the labels have {len(values):,} different values, so a regression (squared loss) is fitted{classes}",
    )


def _look_like_classes(values: NDArray[Any]) -> bool:
    return 2 < len(values) <= _FEW_CLASSES and bool(np.all(values == np.round(values)))


def codes_advice(columns: Sequence[str]) -> str:
    """Of columns of numbers whose values look like codes of categories."""
    one, names = len(columns) == 1, ",".join(columns[:_SHOWN])
    return (
        f"{_listed(columns)} {'looks' if one else 'look'} like codes of categories, but {'is' if one else 'are'} "
        f"taken as numbers. If {'it is' if one else 'they are'} categories: --categorical {shlex.quote(names)}"
    )


def large_columns(dataset: Dataset, problem: Problem) -> dict[str, float]:
    """Columns of numbers of a table that vary far more than its other columns, with their standard deviations.

    Beside features of categories, whose standard deviation is at most 0.5, that is more than 5; in a table of numbers
    alone, more than 100 times that of the column that varies least. Columns that look like codes are another matter.
    """
    encoding, design = dataset.encoding, problem.design
    names = [] if encoding is None else [source.name for source in encoding.columns if source.categories is None]
    if encoding is None or not names:
        return {}
    at = {columns[0]: first for columns, first, _ in encoding.groups if len(columns) == 1}
    places = np.array([at[name] for name in names])
    if design.is_tiled:  # the store knows them
        deviations = design.scales(None, True, 1)[places]
    else:
        deviations = column_scales(core_matrix(as_columns(design.take(places), 1)), None, True, 1)
    varying = deviations[deviations > 0]
    is_numbers_alone = len(names) == problem.n_features
    least = 100 * float(np.min(varying, initial=math.inf)) if is_numbers_alone else 5.0
    found = zip(names, deviations.tolist(), strict=True)
    return {name: value for name, value in found if value > least and name not in dataset.code_columns}


def scale_advice(columns: Mapping[str, float]) -> str:
    """Of columns that vary far more than others: the penalty hardly touches them."""
    one = len(columns) == 1
    names = _listed([f"{name} (standard deviation {value:.3g})" for name, value in columns.items()])
    return (
        f"{names} {'varies' if one else 'vary'} far more than the other features, so that the penalty hardly affects "
        f"{'it' if one else 'them'}, and alpha_max depends mostly on {'it' if one else 'them'}. --standardize puts "
        "all columns on one scale"
    )


def copies_advice(count: int) -> str:
    """Of features with weights that have copies: another of them could have the weight instead."""
    who = "1 feature with a weight has" if count == 1 else f"{count:,} features with weights have"
    return f"{who} copies in the data (columns equal up to sign and scale); the model's page and file list them"


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return f"{'column' if len(columns) == 1 else 'columns'} {', '.join(columns[:_SHOWN])}{more}"
