"""Docstrings as Markdown for the API reference: parts that estimators share, and lists of parameters.

The package writes ``name : what it is`` where numpydoc has a type, so its sections are made lists here.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

from blockgreedy.estimators.parameters import CV_ATTRIBUTES, CV_PARAMETERS, PARAMETERS

_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$")
_RULE = re.compile(r"-{3,}")
_SHARED = (("{cv}", CV_PARAMETERS), ("{common}", PARAMETERS), ("{cv_attributes}", CV_ATTRIBUTES))


class AsMarkdown(Extension):
    def on_object(self, *, obj: Any, **more: Any) -> None:
        if obj.docstring is None:
            return
        text = obj.docstring.value
        for name, part in _SHARED:
            text = text.replace(name, "\n".join(line.removeprefix("    ") for line in part.splitlines()))
        obj.docstring.value = as_markdown(text)


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
            if not lines[-1].endswith((".", ",", ";", ":")) and re.match(r"[A-Z\"]", more):
                lines[-1] += "."  # what stands beside the name is a remark of its own
            lines.append(f"    {more}")
        else:
            if inside and line.strip():
                lines.append("")
                inside = False
            lines.append(line)
    return "\n".join(lines).replace("``", "`")
