"""The options of a command as a table, asked of the command line itself so that they cannot be out of date."""

from __future__ import annotations

import re
from typing import Any

import typer

from blockgreedy.cli import app


def all_commands() -> dict[str, Any]:
    """Every command that does something, by what one types after ``blockgreedy``."""
    found: dict[str, Any] = {}

    def walk(group: Any, words: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*words, name))
            else:
                found[" ".join((*words, name))] = command

    walk(typer.main.get_command(app), ())
    return found


def options_table(name: str) -> str:
    """Usage, and a row for each argument and option, under the panels of ``--help``."""
    command = all_commands()[name]
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    usage = " ".join(["blockgreedy", name, *(_called(argument) for argument in arguments)])
    lines = [f"`{usage}`", "", "| option | default | |", "|---|---|---|"]
    lines += [f"| `{_called(argument)}` | | {_cell(argument.help)} |" for argument in arguments]
    panels: dict[str, list[Any]] = {}
    for parameter in options:
        panels.setdefault(getattr(parameter, "rich_help_panel", None) or "More", []).append(parameter)
    for panel, members in panels.items():
        lines.append(f"| **{panel}** | | |")
        for parameter in members:
            names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
            lines.append(f"| {names} | {_default(parameter)} | {_cell(parameter.help)} |")
    return "\n".join(lines)


def _called(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 or name.endswith(("…", "...")) else f"{name}…"


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or value == "" or callable(value):
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _cell(text: str | None) -> str:
    """Without rich's markup, in one line."""
    plain = re.sub(r"\[/?[a-z ]*\]", "", text or "")
    return " ".join(plain.replace("|", "\\|").replace("<", "&lt;").split())
