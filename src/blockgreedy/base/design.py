"""What a Problem accepts in place of X and y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LabelledDesign:
    """A base class for matrices that know their labels and the names of their columns, such as ``Dataset``."""

    X: Any
    y: NDArray[Any]
    feature_names: NDArray[np.str_] | None
    labelled: bool  # False where y is made up
