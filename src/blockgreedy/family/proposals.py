"""Proposals: the step that each of some features would take, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockgreedy.base.cached import cached_property
from blockgreedy.base.validate import one_of
from blockgreedy.family.asked import numbers

if TYPE_CHECKING:
    from blockgreedy.problem.penalties import Penalty

Array = NDArray[np.float64]
Features = NDArray[np.intp]

_Values = TypeVar("_Values", bound=NDArray[Any])

Score = Literal["gain", "step", "subgradient"]
SCORES: tuple[Score, ...] = get_args(Score)
_COMPUTED = ("target", "gain", "subgradient", "moves")  # when asked for, once


class Proposals:
    """The proposed steps of some features, one entry of each array for each feature.

    A proposal minimises the quadratic model ``grad·η + curvature/2·η² + r(w + η)`` of the objective along its
    feature, r the penalty. The arrays are read-only; what no rule asks for is not computed.

    Attributes
    ----------
    features : ndarray of int
        Block after block, in the order in which the blocks were selected; ascending within a block.
    blocks : ndarray of int
        The block of each feature.
    w, grad, curvature : ndarray
        Weight, derivative of the loss, and the curvature that the step was made with.
    step : ndarray
        η, what would be added to the weight (the paper's η_j).
    target : ndarray
        w + step.
    gain : ndarray
        By how much the step lowers the quadratic model: if the curvature is a bound, the objective falls by at least
        this much when the step is taken alone.
    subgradient : ndarray
        The distance of 0 from the subdifferential of the objective along the feature: 0 exactly where it is optimal.
    moves : ndarray of bool
        Whether the step is more than rounding.
    """

    def __init__(
        self,
        features: Features,
        blocks: NDArray[np.int32],
        w: Array,
        grad: Array,
        curvature: Array,
        penalty: Penalty,
        target: Array | None = None,
        gain: Array | None = None,
    ) -> None:
        """``penalty``: that of these features. ``target`` and ``gain``: where a rule of its own found them."""
        self.features, self.blocks = _read_only(features), _read_only(blocks)
        self.w, self.grad, self.curvature = _read_only(w), _read_only(grad), _read_only(curvature)
        self._penalty, self._is_given = penalty, target is not None
        if target is not None:
            self.__dict__["target"] = _read_only(target)
        if gain is not None:
            self.__dict__["gain"] = _read_only(gain)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Proposals({len(self):,} features of {len(np.unique(self.blocks)):,} blocks)"

    # Of a run that blows up they are not finite; the loop sees that at its next check.

    @cached_property
    def target(self) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return _frozen(self._penalty.prox(self.w, self.grad, self.curvature))

    @cached_property
    def step(self) -> Array:
        with np.errstate(invalid="ignore"):
            return _frozen(self.target - self.w)

    @cached_property
    def gain(self) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return _frozen(self._penalty.gain(self.w, self.target, self.grad, self.curvature))

    @cached_property
    def subgradient(self) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return _frozen(self._penalty.subgradient_distance(self.w, self.grad))

    @cached_property
    def moves(self) -> NDArray[np.bool_]:
        if self._is_given:
            return _frozen(np.asarray(self.target != self.w))
        with np.errstate(over="ignore", invalid="ignore"):
            return _frozen(self._penalty.moves(self.w, self.target, self.grad, self.curvature))

    def score(self, by: Score) -> Array:
        """The gain, |step| or the subgradient of each feature; 0 for those that do not move."""
        one_of("by", by, SCORES)
        found = np.abs(self.step) if by == "step" else self.gain if by == "gain" else self.subgradient
        return np.where(self.moves, found, 0.0)

    def with_steps(self, step: ArrayLike, gain: ArrayLike | None = None) -> Proposals:
        """The same features with other steps; without ``gain``, the decrease of the quadratic model by each."""
        found = numbers("step", step, len(self))
        return self._with_targets(self.w + found, None if gain is None else numbers("gain", gain, len(self)))

    def _with_targets(self, target: Array, gain: Array | None) -> Proposals:
        return Proposals(self.features, self.blocks, self.w, self.grad, self.curvature, self._penalty, target, gain)

    def at(self, places: NDArray[np.intp]) -> Proposals:
        """Some of them, by their places in the arrays."""
        some = Proposals(
            self.features[places],
            self.blocks[places],
            self.w[places],
            self.grad[places],
            self.curvature[places],
            self._penalty.at(places),
        )
        some._is_given = self._is_given
        for name in _COMPUTED:
            if name in self.__dict__:
                some.__dict__[name] = _frozen(self.__dict__[name][places])
        return some

    def inside(self) -> Proposals:
        """With targets that keep the bounds, where rounding of steps that a rule found left them."""
        if not self._is_given:
            return self
        return self._with_targets(np.clip(self.target, self._penalty.lower, self._penalty.upper), self.gain)

    def outside(self) -> NDArray[np.intp]:
        """The places of targets that leave the bounds by more than rounding."""
        slack = 1e-9 * (1 + np.abs(self.w))
        low, high = self.target < self._penalty.lower - slack, self.target > self._penalty.upper + slack
        return np.flatnonzero(low | high)


def _frozen(values: _Values) -> _Values:
    values.flags.writeable = False
    return values


def _read_only(values: _Values) -> _Values:
    """The array itself, or a view of it that cannot be written to: it may belong to a rule."""
    return _frozen(values.view()) if values.flags.writeable else values
