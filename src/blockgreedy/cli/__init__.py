"""The command line: one file per command, each with a record of its options."""

from blockgreedy.cli import (
    cluster,
    cv,
    data,
    data_convert,
    data_info,
    diagnose,
    fit,
    partition,
    path,
    predict,
    report,
    reproduce,
)
from blockgreedy.cli.shell import app

__all__ = [
    "app",
    "cluster",
    "cv",
    "data",
    "data_convert",
    "data_info",
    "diagnose",
    "fit",
    "main",
    "partition",
    "path",
    "predict",
    "report",
    "reproduce",
]


def main() -> None:
    app(prog_name="blockgreedy")
