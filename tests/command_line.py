"""Commands of the command line, run inside the process of the tests."""

from typer.testing import CliRunner

from blockgreedy.cli import app

ENVIRONMENT = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def run(*arguments, **environment):
    return CliRunner(env=ENVIRONMENT | environment).invoke(app, [str(argument) for argument in arguments])


def fit(*arguments):
    return run("fit", *arguments)
