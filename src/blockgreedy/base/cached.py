"""Properties that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """``functools.cached_property`` of Python 3.12 and later, which has no lock.

    Earlier ones hold a lock of the class while they compute: a child of fork() waits for it for ever, and threads
    wait for each other whose objects have nothing in common. Without it two threads may compute the same; that of the
    first is kept, and only whole results are ever seen.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        found: T = instance.__dict__.setdefault(self.name, self.compute(instance))
        return found
