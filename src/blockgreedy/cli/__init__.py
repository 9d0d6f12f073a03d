"""The command line: one file per command, each with a record of its options."""

from blockgreedy.cli import data, diagnose, fit, partition, reproduce
from blockgreedy.cli.shell import app

__all__ = ["app", "data", "diagnose", "fit", "main", "partition", "reproduce"]


def main() -> None:
    app(prog_name="blockgreedy")
