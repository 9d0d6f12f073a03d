"""The command line: one file per command, each with a record of its options."""

from blockgreedy.cli import fit, reproduce
from blockgreedy.cli.shell import app

__all__ = ["app", "fit", "main", "reproduce"]


def main() -> None:
    app(prog_name="blockgreedy")
