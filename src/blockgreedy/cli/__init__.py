"""The command line: one file per command, each with a record of its options."""

from blockgreedy.cli import diagnose, fit
from blockgreedy.cli.shell import app

__all__ = ["app", "diagnose", "fit", "main"]


def main() -> None:
    app(prog_name="blockgreedy")
