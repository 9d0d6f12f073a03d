"""Docstrings for the API reference: numpydoc, with the parts that estimators share put in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from griffe import Extension

from blockgreedy.estimators.parameters import with_shared_parts


class SharedParts(Extension):
    """What the reference shows: whole docstrings, and no fields that have no more to say than their names."""

    def on_package(self, *, pkg: Any, **more: Any) -> None:
        for obj in _all_objects(pkg):
            if obj.docstring is not None:
                obj.docstring.value = with_shared_parts(obj.docstring.value).replace("``", "`")
            for name, member in list(obj.members.items()):
                silent = not member.is_alias and member.is_attribute and member.docstring is None
                if silent and "property" not in member.labels:
                    del obj.members[name]


def _all_objects(obj: Any) -> Iterator[Any]:
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _all_objects(member)
