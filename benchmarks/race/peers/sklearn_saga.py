"""scikit-learn's LogisticRegression(solver="saga"), which also works in float32."""

from __future__ import annotations

import numpy as np

from . import decades
from .sklearn_liblinear import SklearnLiblinear


class SklearnSaga(SklearnLiblinear):
    name = "sklearn-saga"
    solver = "saga"
    tolerances = decades(1e0, 1e-9)


class SklearnSagaFloat32(SklearnSaga):
    name = "sklearn-saga-f32"
    tolerances = decades(1e0, 1e-6)
    default_tolerance = None
    dtype = np.float32


PEERS = [SklearnSaga(), SklearnSagaFloat32()]
