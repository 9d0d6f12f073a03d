"""ONNX: ``register()`` tells skl2onnx how to convert our fitted estimators.

skl2onnx itself is imported when ``register`` is called (``pip install 'blockgreedy[onnx]'``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from blockgreedy import estimators
from blockgreedy.estimators.sparse_coef import dense_coef

_REGRESSORS = (
    estimators.Lasso,
    estimators.ElasticNet,
    estimators.HuberLasso,
    estimators.LassoCV,
    estimators.ElasticNetCV,
)
_LOGISTIC = (estimators.LogisticRegression, estimators.LogisticRegressionCV)
_MARGINS = (estimators.SquaredHingeClassifier,)
_OF_CLASSES = {"nocl": [True, False], "output_class_labels": [False, True], "raw_scores": [True, False]}


def register() -> None:
    """Registers a converter for each of our estimators with skl2onnx; ``skl2onnx.to_onnx`` then knows them.

    What they are part of (a ``Pipeline``, say) can be converted too. Converted models compute in double precision
    whatever the type of their input is, by the formulae of ``predict`` and ``predict_proba``.

    - Regressors have one output, of shape (n, 1) or (n, n_targets).
    - ``LogisticRegression`` and ``LogisticRegressionCV``: labels and probabilities, with skl2onnx's options
      ``zipmap``, ``nocl``, ``output_class_labels`` and ``raw_scores`` (decision values instead of probabilities; of
      two classes in two columns of opposite sign). The maps of ``zipmap=True`` are in single
      precision, as ONNX has them.
    - ``SquaredHingeClassifier``: labels, and decision values by the name of scores, of two classes in one column.

    Call it once in a process; to call it again does no harm.
    """
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes as of_regressor
    except ImportError as error:
        raise ImportError(f"blockgreedy.onnx needs skl2onnx: pip install 'blockgreedy[onnx]' ({error})") from error

    for kind in _REGRESSORS:
        update_registered_converter(kind, "BlockgreedyRegressor", of_regressor, _convert_regressor)
    with_probabilities = _OF_CLASSES | {"zipmap": [True, False, "columns"]}
    for kind in _LOGISTIC:
        update_registered_converter(
            kind, "BlockgreedyLogistic", _shape_of_classes, _convert_logistic, options=with_probabilities
        )
    for kind in _MARGINS:
        # Zip maps are of probabilities, of which there are none; but for a pipeline every classifier has the option.
        options = {"nocl": [True, False], "zipmap": [True, False]}
        update_registered_converter(
            kind, "BlockgreedyMargins", _shape_of_margins, _convert_margins,
            parser=_parse_margins, options=options,
        )  # fmt: skip


def _labels(scope: Any, model: Any) -> Any:
    """Whole numbers or strings; ONNX has no other labels."""
    classes = np.asarray(model.classes_)
    if scope.get_options(model, {"nocl": False})["nocl"]:
        return np.arange(len(classes))
    if classes.dtype.kind in "OU" and all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(str)
    if classes.dtype.kind in "biu" or (classes.dtype.kind == "f" and np.all(classes == np.round(classes))):
        return classes.astype(np.int64)
    raise ValueError(
        f"classes {classes.tolist()} cannot be labels in ONNX, which has whole numbers and strings: fit other "
        "labels, or set the option nocl=True to get numbers of classes"
    )


def _shape_of_classes(operator: Any) -> None:
    _declare(operator, of_two=2)


def _parse_margins(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, guess_tensor_type

    operator = scope.declare_local_operator("BlockgreedyMargins", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("label", Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("scores", guess_tensor_type(inputs[0].type)))
    return operator.outputs


def _shape_of_margins(operator: Any) -> None:
    _declare(operator, of_two=1)


def _declare(operator: Any, of_two: int) -> None:
    """The outputs' types and shapes. ``of_two``: how many scores there are of two classes."""
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from skl2onnx.common.utils import check_input_and_output_numbers

    check_input_and_output_numbers(operator, input_count_range=1, output_count_range=2)
    labels, n = _labels(operator.scope_inst, operator.raw_operator), operator.inputs[0].get_first_dimension()
    of_labels = StringTensorType if labels.dtype.kind == "U" else Int64TensorType
    operator.outputs[0].set_type(of_labels(shape=[n]))
    shape = [n, of_two if len(labels) == 2 else len(labels)]
    if operator.scope_inst.get_options(operator.raw_operator, {"zipmap": True})["zipmap"] is True and of_two == 2:
        operator.outputs[1].set_type(FloatTensorType(shape=shape))  # ONNX's ZipMap takes no doubles
    operator.outputs[1].type.shape = shape


class _Graph:
    """Nodes of one operator, each with one output and a name of its own."""

    def __init__(self, scope: Any, container: Any) -> None:
        from skl2onnx.proto import onnx_proto

        self.scope, self.container, self.types = scope, container, onnx_proto.TensorProto

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name: str = output or self.scope.get_unique_variable_name(kind.lower())
        unique = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, list(inputs), name, name=unique, **attributes)
        return name

    def constant(self, values: Any, kind: int) -> str:
        name: str = self.scope.get_unique_variable_name("constant")
        values = np.asarray(values)
        self.container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
        return name

    def decision(self, operator: Any) -> str:
        """Xw + b in double precision, a column for each model."""
        model, double = operator.raw_operator, self.types.DOUBLE
        rows = self.node("Cast", operator.inputs[0].full_name, to=double)
        weights = self.constant(np.atleast_2d(dense_coef(model)).T.astype(np.float64), double)
        product = self.node("MatMul", rows, weights)
        return self.node("Add", product, self.constant(np.atleast_1d(model.intercept_).astype(np.float64), double))

    def finish(self, values: str, variable: Any) -> None:
        """As an output, in the type that it is declared with."""
        from skl2onnx.common.data_types import guess_proto_type

        self.node("Cast", values, output=variable.full_name, to=guess_proto_type(variable.type))

    def label(self, decision: str, operator: Any) -> None:
        labels = _labels(self.scope, operator.raw_operator)
        is_text = labels.dtype.kind == "U"
        if len(labels) == 2:
            zero = self.constant(np.zeros(1), self.types.DOUBLE)
            above = self.node("Cast", self.node("Greater", decision, zero), to=self.types.INT64)
            chosen = self.node("Reshape", above, self.constant([-1], self.types.INT64))
        else:
            chosen = self.node("ArgMax", decision, axis=1, keepdims=0)
        known = self.constant(labels, self.types.STRING if is_text else self.types.INT64)
        self.node("Gather", known, chosen, output=operator.outputs[0].full_name, axis=0)

    def log_probability(self, decision: str) -> str:
        """min(d, 0) − log(1 + exp(−|d|)): onnxruntime has no Softplus in double precision."""
        ones, zero = (self.constant(np.full(1, value), self.types.DOUBLE) for value in (1.0, 0.0))
        decay = self.node("Exp", self.node("Neg", self.node("Abs", decision)))
        return self.node("Sub", self.node("Min", decision, zero), self.node("Log", self.node("Add", ones, decay)))

    def both_signs(self, decision: str) -> str:
        """Of two classes, the decision value of each."""
        return self.node("Concat", self.node("Neg", decision), decision, axis=1)


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(scope, container)
    graph.finish(graph.decision(operator), operator.outputs[0])


def _convert_logistic(scope: Any, operator: Any, container: Any) -> None:
    graph, model = _Graph(scope, container), operator.raw_operator
    decision = graph.decision(operator)
    graph.label(decision, operator)
    is_binary = len(model.classes_) == 2
    scores = graph.both_signs(decision) if is_binary else decision
    if not container.get_options(model, {"raw_scores": False})["raw_scores"]:
        if is_binary:
            scores = graph.node("Sigmoid", scores)
        else:  # each class against the rest, scaled to add up to 1: the softmax of log probabilities
            scores = graph.node("Softmax", graph.log_probability(scores), axis=1)
    graph.finish(scores, operator.outputs[1])


def _convert_margins(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(scope, container)
    decision = graph.decision(operator)
    graph.label(decision, operator)
    graph.finish(decision, operator.outputs[1])
