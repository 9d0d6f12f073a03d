"""What rules return, checked: an error names the rule, what it returned and what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockgreedy.base.validate import shown
from blockgreedy.family.asked import array_of
from blockgreedy.family.proposals import Array, Features, Proposals


class RuleError(ValueError):
    """A rule returned what an iteration cannot be made of."""


def name_of(rule: Callable[..., Any]) -> str:
    return getattr(rule, "__name__", type(rule).__name__)


def _fault(step: str, rule: Callable[..., Any], value: Any, what: str) -> RuleError:
    return RuleError(f"{step}={name_of(rule)} returned {shown(value)}: {what}")


def _whole_numbers(step: str, rule: Callable[..., Any], value: Any, what: str) -> NDArray[np.integer[Any]]:
    """A flat array of whole numbers, all different; of their own type, which may hold more than an index can."""
    found = array_of(value)
    if found.ndim == 1 and found.size == 0:
        return np.zeros(0, dtype=np.intp)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        hint = "; np.flatnonzero makes them of a mask" if found.dtype.kind == "b" else ""
        raise _fault(step, rule, value, f"it must be a list or flat array of {what}, as whole numbers{hint}")
    ordered = np.sort(found)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise _fault(step, rule, value, f"{twice[0]} is in it twice")
    return found


def checked_blocks(rule: Callable[..., Any], value: Any, n_blocks: int) -> NDArray[np.intp]:
    """What ``select`` returned."""
    blocks = _whole_numbers("select", rule, value, "blocks")
    wrong = blocks[(blocks < 0) | (blocks >= n_blocks)]
    if len(wrong):
        raise _fault("select", rule, value, f"{wrong[0]} is no block; blocks are 0 to {n_blocks - 1}")
    return blocks.astype(np.intp)


def checked_features(
    rule: Callable[..., Any], value: Any, proposals: Proposals, place_of: NDArray[np.intp]
) -> Features:
    """The places, among the proposals, of the features that ``accept`` returned.

    ``place_of``: of each proposed feature its place; of the others it says anything.
    """
    features = _whole_numbers("accept", rule, value, "features")
    inside = (features >= 0) & (features < len(place_of))
    places = place_of[np.where(inside, features, 0).astype(np.intp)]
    known = inside & (places < len(proposals))
    known[known] = proposals.features[places[known]] == features[known]
    if not np.all(known):
        wrong = features[~known][0]
        raise _fault("accept", rule, value, f"{wrong} is not among the proposed features (proposals.features)")
    return places


def checked_proposals(
    rule: Callable[..., Any], value: Any, model: Proposals, is_finite: Callable[[], bool]
) -> Proposals:
    """What ``propose`` returned: proposals, steps, or steps and gains. ``model``: those of the curvature bound."""
    if isinstance(value, Proposals):
        if not np.array_equal(value.features, model.features):
            raise _fault("propose", rule, value, "its features are not those that it was asked about")
        found, gains = value, value.__dict__.get("gain")
    else:
        steps, gains = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        gains = None if gains is None else _numbers("propose", rule, gains, len(model), "gains")
        found = model.with_steps(_numbers("propose", rule, steps, len(model), "steps"), gains)
    _refuse_bad_targets("propose", rule, found, is_finite)
    if gains is not None and np.any(np.isnan(gains)) and is_finite():
        raise _fault("propose", rule, gains, "gains must not be nan")
    return found.inside()


def checked_steps(rule: Callable[..., Any], value: Any, accepted: Proposals, is_finite: Callable[[], bool]) -> Array:
    """The weights that follow from the steps that ``update`` returned."""
    found = accepted.with_steps(_numbers("update", rule, value, len(accepted), "steps"))
    _refuse_bad_targets("update", rule, found, is_finite)
    return found.inside().target


def _numbers(step: str, rule: Callable[..., Any], value: Any, count: int, what: str) -> Array:
    found = array_of(value)
    if found.shape != (count,) or found.dtype.kind not in "iuf":
        shape = f" of shape {found.shape}" if isinstance(value, np.ndarray) else ""
        raise _fault(step, rule, value, f"that is{shape} not {count} {what}, one number for each feature")
    return found.astype(np.float64)


def _refuse_bad_targets(step: str, rule: Callable[..., Any], found: Proposals, is_finite: Callable[[], bool]) -> None:
    """``is_finite``: whether the run itself still is; of one that blew up no rule can make steps."""
    finite = np.isfinite(found.target)
    if not np.all(finite):
        if is_finite():
            k = int(np.flatnonzero(~finite)[0])
            raise RuleError(
                f"{step}={name_of(rule)} returned the step {found.step[k]} for feature {found.features[k]}: steps "
                "must be finite"
            )
        return
    outside = found.outside()
    if len(outside):
        k = int(outside[0])
        raise RuleError(
            f"{step}={name_of(rule)} returned the step {found.step[k]:g} for feature {found.features[k]}, which "
            f"takes its weight from {found.w[k]:g} to {found.target[k]:g}, outside of lower ≤ w ≤ upper"
        )
