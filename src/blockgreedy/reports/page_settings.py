"""How a result came about, as a table on its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from blockgreedy.reports.page import Section


def settings_section(part: Section, settings: Mapping[str, Any]) -> None:
    if "command" in settings:
        part.text("The command that made this:")
        part.code(str(settings["command"]))
    rows = [[str(name), plain(value)] for name, value in settings.items() if name != "command"]
    if rows:
        part.table(["setting", "value"], rows, "Run settings")


def data_name(settings: Mapping[str, Any]) -> str:
    return PurePath(str(settings["data"])).name if settings.get("data") else ""


def span(low: Any, high: Any) -> str:
    return f"{low:,}" if low == high else f"{low:,} … {high:,}"


def plain(value: Any) -> str:
    """A setting in words: None is nothing, numbers in six digits, lists with commas."""
    if value is None:
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(int(value)) >= 10_000 else str(value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.10g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {plain(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(plain, value))
    return str(value)
