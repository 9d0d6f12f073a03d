"""The files of a command: checked before any work, written one by one, and listed if they were written."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from blockgreedy.cli.shell import complain, fail, failures, warnings_as_lines
from blockgreedy.cli.texts import FAILED, WRONG_USE
from blockgreedy.models.extras import LeftOutWarning
from blockgreedy.models.model import Model

Input = tuple[str, Path]  # what it is, for messages, and where


@dataclass(frozen=True)
class Output:
    """A file that a command writes if ``path`` is given."""

    option: str  # as it is typed
    path: Path | None
    what: str  # for messages: "the model"
    suffixes: tuple[str, ...] = ()
    is_drawn: bool = False  # needs matplotlib

    @property
    def name(self) -> str:
        return self.option.lstrip("-")


def model_output(path: Path | None) -> Output:
    return Output("--model", path, "the model", (".npz", ".json"))


def report_output(path: Path | None, option: str = "--report") -> Output:
    return Output(option, path, "the report", (".html",), is_drawn=True)


class Outputs:
    """What a command writes, and what it reads: no output may take the place of an input or of another output.

    ``code`` is 0, or the exit code once something could not be written; ``written`` has what was.
    """

    def __init__(self, inputs: Sequence[Input], *outputs: Output) -> None:
        self.wanted = [output for output in outputs if output.path is not None]
        self.written: dict[str, Path] = {}
        self.code = 0
        with failures():
            self._check(inputs)

    def _check(self, inputs: Sequence[Input]) -> None:
        for k, output in enumerate(self.wanted):
            path = _given(output)
            for what, read in inputs:
                if _is_same(path, read):
                    fail(f"{output.option} {path} would replace {what}; give it another name", WRONG_USE)
            for other in self.wanted[:k]:
                if _is_same(path, _given(other)):
                    both = f"{other.option} {other.path} and {output.option} {path}"
                    fail(f"{both} are the same file; give one of them another name", WRONG_USE)
            if path.is_dir() or not path.parent.is_dir():
                fail(f"{output.option} must name a file in an existing folder, got {str(path)!r}", WRONG_USE)
            if output.suffixes and path.suffix.lower() not in output.suffixes:
                fail(f"{output.option} must end in {' or '.join(output.suffixes)}, got {str(path)!r}", WRONG_USE)
            if output.suffixes and path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
                missing = "pyarrow, which is missing: pip install 'blockgreedy[data]'"
                fail(f"{output.option} {path} needs {missing}", FAILED)
            if output.is_drawn and find_spec("matplotlib") is None:
                missing = "matplotlib, which is missing: pip install 'blockgreedy[report]'"
                fail(f"{output.option} needs {missing}", FAILED)

    def write(self, name: str, write: Callable[[Path], Any]) -> None:
        """If it is asked for. What goes wrong is said, and the rest can still be written."""
        for output in self._named(name):
            path = _given(output)
            try:
                write(path)
            except (OSError, ValueError, MemoryError) as error:
                reason = getattr(error, "strerror", None) or str(error) or "not enough memory"
                self.code = complain(f"{output.what} cannot be written to {path}: {reason}", FAILED)
            else:
                self.written[name] = path

    def write_model(self, make: Callable[[], Model], report: str = "report") -> Model | None:
        """The model and its page, where they are asked for; returns the model, if it was made."""
        if not (self._named("model") or self._named(report)):
            return None
        with warnings_as_lines(LeftOutWarning):
            model = make()
        self.write("model", model.save)
        self.write(report, lambda path: _write_page(model, path))
        return model

    def _named(self, name: str) -> list[Output]:
        return [output for output in self.wanted if output.name == name]


def _write_page(model: Model, path: Path) -> None:
    from blockgreedy.reports.model_page import model_page

    model_page(model).save(path)


def _given(output: Output) -> Path:
    assert output.path is not None
    return output.path


def _is_same(one: Path, other: Path) -> bool:
    """One file, under whatever names, or one place for a file that is not there yet. Devices keep nothing."""
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def show_files(console: Any, written: Mapping[str, Path]) -> None:
    for name, path in written.items():
        console.print(f"{name}: {path}", highlight=False)
