"""scikit-learn's callbacks (``set_callbacks``, since its version 1.9): what they hear of a fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Has no callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        @functools.wraps(method)
        def same(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            return method(estimator, *args, **kwargs)

        return same


Fit = TypeVar("Fit", bound=Callable[..., Any])

# Frames between the caller of a fit that is decorated below and the fit itself, which warnings have to look past.
FRAMES = 2


class FitTasks:
    """The tasks of one fit: the fit itself, and in it iterations, or models of folds and then iterations."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self.estimator = estimator
        self.facts = {"X": X, "y": y}
        if sample_weight is not None:
            self.facts["metadata"] = {"sample_weight": sample_weight}
        self.context = estimator._init_callback_context(max_subtasks=None)
        self.context.call_on_fit_task_begin(estimator=estimator, **self.facts)

    def step(self, name: str) -> bool:
        """One more subtask is done; whether a callback wants the fit to end."""
        subtask = self.context.subcontext(task_name=name)
        subtask.call_on_fit_task_begin(estimator=self.estimator, **self.facts)
        return bool(subtask.call_on_fit_task_end(estimator=self.estimator, **self.facts))

    def end(self) -> None:
        """The attributes are set: callbacks that ask for the fitted estimator get it."""
        self.context.call_on_fit_task_end(estimator=self.estimator, **self.facts, reconstruction_attributes={})


def hears_callbacks(fit: Fit) -> Fit:
    """For ``fit``: sets callbacks up and tears them down, whatever becomes of the fit."""

    @functools.wraps(fit)
    def wrapped(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return fit(estimator, *args, **kwargs)
        finally:
            vars(estimator).pop("_fit_tasks", None)

    return cast(Fit, with_callbacks(wrapped))


def begin_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """At the beginning of a fit, once X and y are checked."""
    if getattr(estimator, "_skl_callbacks", None):
        estimator._fit_tasks = FitTasks(estimator, X, y, sample_weight)


def tasks_of(estimator: Any) -> FitTasks | None:
    """Those of the fit under way, if it has callbacks."""
    found: FitTasks | None = getattr(estimator, "_fit_tasks", None)
    return found


def heard_by_both(callback: Callable[[Any], Any] | None, tasks: FitTasks | None) -> Callable[[Any], Any] | None:
    """The parameter ``callback`` and scikit-learn's callbacks as one; each may end the fit."""
    if tasks is None:
        return callback

    def both(record: Any) -> bool:
        ends = callback is not None and bool(callback(record))
        return tasks.step("iteration") or ends

    return both
