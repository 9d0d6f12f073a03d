"""What the commands share: the app, how options are declared and how a command fails."""

import contextlib
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import cleandoc, signature
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

import typer
import typer.core
from rich.console import Console

import blockgreedy
from blockgreedy.base.threads import resolve_threads
from blockgreedy.cli.texts import FAILED, NOT_CONVERGED, WRONG_USE

Command = TypeVar("Command", bound=Callable[..., Any])


def _as_flags(options: list[Any]) -> list[Any]:
    """Options without a value get no <bool> behind their names in the help."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


class _Command(typer.core.TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))


class _Group(typer.core.TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))


class App(typer.Typer):
    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, context_settings={"help_option_names": ["--help", "-h"]}, **settings)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Command], Command]:
        return super().command(name, cls=_Command, **more)


app = App(
    help="Fit L1-regularised models (lasso, elastic net, sparse logistic regression) to large sparse data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blockgreedy {blockgreedy.__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")


@app.callback()
def _about(version: Annotated[bool, _VERSION] = False) -> None:
    pass


Options = TypeVar("Options")


def takes(record: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Shows typer the fields of a record as the options of a command that takes the record."""

    names = _option_names(record)

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        def call(**values: Any) -> None:
            _OPTIONS.set(names)
            with failures(code=WRONG_USE):
                resolve_threads(values.get("n_threads"))
            try:
                command(record(**values))
            except OSError as error:
                if error.filename is not None:
                    raise
                end_stdout()
                if not isinstance(error, BrokenPipeError):  # `… | head` has seen enough, and that is no failure
                    fail(f"the results cannot be written to stdout: {error.strerror}", FAILED)

        call.__name__, call.__doc__ = command.__name__, _flowing(command.__doc__ or "")
        call.__signature__ = signature(record)  # type: ignore[attr-defined]
        call.__annotations__ = get_type_hints(record, include_extras=True)
        return call

    return decorate


# The arguments of the library that the running command has options for: {"n_threads": "--threads"}.
_OPTIONS: ContextVar[dict[str, str]] = ContextVar("options", default={})  # noqa: B039


def _option_names(record: type[Any]) -> dict[str, str]:
    found = {}
    for field, hint in get_type_hints(record, include_extras=True).items():
        for info in (getattr(record, field, None), *getattr(hint, "__metadata__", ())):
            declared = (getattr(info, "default", None), *(getattr(info, "param_decls", None) or ()))
            named = [text for text in declared if isinstance(text, str) and text.startswith("--")]
            if named:
                found[field] = named[0].split("/")[0]
    return found


def in_options(message: str) -> str:
    """A message of the library in the words of the command line: ``n_threads=0`` is ``--threads 0`` there.

    Only what stands alone is an argument: in ``fill=price=median`` price is not, whatever it is called.
    """
    options = _OPTIONS.get()
    if not options:
        return message
    names = "|".join(map(re.escape, options))
    message = re.sub(rf"^({names}):", lambda found: f"{options[found[1]]}:", message)
    alone = rf"(?<![\w=,'\"./-])({names})="
    message = re.sub(rf"{alone}True\b", lambda found: options[found[1]], message)
    quoted = r"'[^']*'"

    def option(found: re.Match[str]) -> str:
        value = found[2] or ""
        listed = ",".join(text[1:-1] for text in re.findall(quoted, value))
        return f"{options[found[1]]} {shlex.quote(listed) if value else ''}"

    return re.sub(rf"{alone}(?=\S)(\[{quoted}(?:, {quoted})*\]|{quoted})?", option, message)


def _flowing(text: str) -> str:
    """Paragraphs as single lines, for the terminal to wrap; those that begin with a backspace keep their lines."""
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else " ".join(part.split("\n")) for part in parts)


def end_stdout() -> None:
    """What is left to print goes nowhere, so that Python does not try again, and complain, when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def option(panel: str, default: Any, names: str, help: str, choices: Any = None, **more: Any) -> Any:
    """A field of a record of options. ``choices`` is a Literal type; its names are listed in the help."""
    if choices is not None:
        more = {"metavar": "<name>", **more}  # the names in this column would leave no room for the help
        help = f"{', '.join(get_args(choices))}. {help}"
    return typer.Option(default, *names.split(), help=help, rich_help_panel=panel, **more)


class Results(Console):
    """Where a command prints its results: stdout, with text as it is."""

    def __init__(self) -> None:
        # mpirun gives its ranks a terminal of their own, whatever it writes to itself
        by_mpirun = "OMPI_COMM_WORLD_SIZE" in os.environ
        super().__init__(markup=False, highlight=False, force_terminal=False if by_mpirun else None)

    def on_broken_pipe(self) -> None:
        """`… | head` has seen enough: ``takes`` ends the command. rich itself would exit with 1."""
        raise BrokenPipeError


def note(message: str) -> None:
    """A line on stderr about a choice that was made for the user."""
    typer.secho(f"Note: {message}", err=True, fg="cyan")


@contextlib.contextmanager
def warnings_as_lines(kind: type[Warning]) -> Iterator[None]:
    """Inside, what the library warns of goes to stderr as one line, not as a Python warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", kind)
        show = warnings.showwarning

        def show_as_line(message: Any, category: Any, *place: Any, **more: Any) -> None:
            if issubclass(category, kind):
                typer.secho(f"Warning: {in_options(str(message))}", err=True, fg="yellow")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_as_line
        yield


@dataclass
class Stage:
    """What an error of this stage of a command means for its exit code."""

    code: int


@contextlib.contextmanager
def failures(interrupted: str = "interrupted", *, code: int = FAILED) -> Iterator[Stage]:
    """Inside, errors that the library explains become one line and an exit code; Ctrl-C becomes ``interrupted``."""
    stage = Stage(code)
    try:
        yield stage
    except (ValueError, TypeError) as error:
        fail(in_options(str(error)), stage.code)
    except (OSError, MemoryError, ImportError) as error:
        fail(str(error) or "out of memory", FAILED)
    except KeyboardInterrupt:
        fail(interrupted, NOT_CONVERGED)


def complain(message: str, code: int) -> int:
    typer.secho(f"Error: {message}", err=True, fg="red")
    return code


def fail(message: str, code: int) -> NoReturn:
    raise typer.Exit(complain(message, code))


@contextlib.contextmanager
def waiting(for_what: str, quiet: bool) -> Iterator[None]:
    """A line on a terminal while something runs of which no end is known."""
    console = Console(stderr=True, markup=False)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(for_what):
        yield
