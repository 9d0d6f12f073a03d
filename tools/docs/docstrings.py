"""Docstrings as Markdown for the API reference: parts that estimators share, and lists of parameters.

The package writes ``name : what it is`` where numpydoc has a type, so its sections are made lists here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from griffe import Docstring, Extension

from blockgreedy.estimators.parameters import CV_ATTRIBUTES, CV_PARAMETERS, PARAMETERS

_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$")
_COMMENT = re.compile(r"  # (.*)$")
_WRAPPED = 80  # a line of at least this length goes on in the next
_RULE = re.compile(r"-{3,}")
_SHARED = (("{cv}", CV_PARAMETERS), ("{common}", PARAMETERS), ("{cv_attributes}", CV_ATTRIBUTES))


class AsMarkdown(Extension):
    """What the reference shows: docstrings made Markdown, and the fields of records with the comments beside them."""

    def on_package(self, *, pkg: Any, **more: Any) -> None:
        for obj in _all_objects(pkg):
            if obj.docstring is not None:
                obj.docstring.value = as_markdown(_whole(obj.docstring.value))
            if obj.is_class and "dataclass" in obj.labels:
                _list_fields(obj)
            for name, member in list(obj.members.items()):
                silent = not member.is_alias and member.is_attribute and member.docstring is None
                if silent and "property" not in member.labels:
                    del obj.members[name]  # no more to say than its name


def _all_objects(obj: Any) -> Iterator[Any]:
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _all_objects(member)


def _whole(text: str) -> str:
    """With the parts that estimators share."""
    for name, part in _SHARED:
        text = text.replace(name, "\n".join(line.removeprefix("    ") for line in part.splitlines()))
    return text


def _list_fields(record: Any) -> None:
    """A list below the docstring, unless that has one."""
    text = "" if record.docstring is None else record.docstring.value
    fields = [
        member
        for name, member in record.members.items()
        if member.is_attribute and "property" not in member.labels and not name.startswith("_")
    ]
    if not fields or any(f"- `{field.name}" in text for field in fields):
        return
    lines = []
    for field in fields:
        comment = _COMMENT.search(record.lines_collection[record.filepath][field.endlineno - 1])
        lines.append(f"- `{field.name}`: {comment[1] if comment else f'`{field.annotation}`'}")
    made = "\n\n**Fields**\n\n" + "\n".join(lines)
    if record.docstring is None:
        record.docstring = Docstring(made.strip(), parent=record)
    else:
        record.docstring.value += made


def as_markdown(text: str) -> str:
    lines: list[str] = []
    inside = False  # an entry, whose next lines are indented
    for line, following in zip(source := text.splitlines(), [*source[1:], ""], strict=True):
        if _RULE.fullmatch(line):
            continue
        if _RULE.fullmatch(following):
            inside = False
            lines += ["", f"**{line}**", ""]
        elif entry := _ENTRY.match(line):
            if not inside and lines and lines[-1]:
                lines.append("")
            lines.append(f"- `{entry[1]}`: {entry[2]}")
            inside = True
        elif inside and line.startswith("    "):
            more = line.strip()
            if len(lines[-1]) < _WRAPPED and lines[-1].startswith("- ") and lines[-1][-1] not in ".,;:":
                lines[-1] += (
                    "." if re.match(r"[A-Z\"]", more) else ";"
                )  # what stands beside the name is a remark of its own
            lines.append(f"    {more}")
        else:
            if inside and line.strip():
                lines.append("")
                inside = False
            lines.append(line)
    return "\n".join(lines).replace("``", "`")
