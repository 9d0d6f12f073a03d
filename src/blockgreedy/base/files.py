"""Files that appear complete or not at all: every file of the package is written through this one.

A file is written beside its place under a hidden name, brought to the disk, and then renamed. If the disk is full or
the process is killed, its name stands for the old file or for the new one, never for a part of it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO, TextIO

_MOST_LINKS = 40  # of a chain of symbolic links, as in Linux


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *suffixes: str) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` at the end, unless writing to it failed.

    A new file gets the mode that the umask says, a replaced one keeps its mode and its owner. Symbolic links stay:
    the file that they lead to is replaced. Devices, pipes and ``/dev/stdout`` cannot be replaced; they get the bytes
    at the end. ``suffixes`` are the endings that the name may have.
    """
    path = Path(path)
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"path must end in {' or '.join(suffixes)}, got {str(path)!r}")
    target = Path(os.path.realpath(path))
    straight = _open_straight(path)
    if straight is not None:
        with straight, io.BytesIO() as memory:  # archives go back in what they wrote, pipes do not
            yield memory
            straight.write(memory.getbuffer())
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must lie in an existing folder, got {str(path)!r}")
    unfinished = target.with_name(f".{target.name[:32]}.{secrets.token_hex(4)}.tmp")
    with _removed_at_the_end(unfinished):
        raw = _create(unfinished, target)
        try:
            file = io.BufferedRandom(raw)
            yield file
            file.flush()
            os.fsync(raw.fileno())  # or a power failure could leave the new name on an empty file
        finally:
            raw.close()  # and not the buffer, which would try once more to write to a full disk
        unfinished.replace(target)


_unfinished: set[Path] = set()


@contextlib.contextmanager
def _removed_at_the_end(path: Path) -> Iterator[None]:
    """However it ends, by SIGTERM too where nobody else hears it: batch systems and `timeout` send it."""
    process, hears = os.getpid(), threading.current_thread() is threading.main_thread()
    hears = hears and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() == process:  # and not a child, whose parent is still writing
            for left in list(_unfinished):
                left.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    _unfinished.add(path)
    if hears:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        _unfinished.discard(path)
        if hears:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def replacing_text(path: str | os.PathLike[str], *suffixes: str) -> Iterator[TextIO]:
    """The same for text: UTF-8, with the ends of lines as they are written."""
    with replacing(path, *suffixes) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


def growing(path: Path, *, anew: bool) -> IO[bytes]:
    """A file that is written over several runs, as a download is; its name must say that it is not complete."""
    return path.open("wb" if anew else "ab")


def _create(unfinished: Path, target: Path) -> io.FileIO:
    """An empty file that nobody may read who may not read the file it is to replace."""
    old = os.stat(target) if target.exists() else None
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is write-protected", str(target))
    mode = 0o666 if old is None else 0o600
    try:
        raw = io.FileIO(unfinished, "x+", opener=lambda name, flags: os.open(name, flags, mode))
    except PermissionError as error:
        reason = "the folder is write-protected, and a file is written beside its place before it is renamed"
        raise PermissionError(error.errno, reason, str(target)) from error
    if old is not None and hasattr(os, "fchmod"):
        with contextlib.suppress(PermissionError):  # only the administrator may give files away
            os.fchown(raw.fileno(), old.st_uid, old.st_gid)
        os.fchmod(raw.fileno(), stat.S_IMODE(old.st_mode))
    return raw


def _open_straight(path: Path) -> IO[bytes] | None:
    """What cannot be replaced, opened; None for files, whether they are there or not."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        return open(os.dup(descriptor), "wb")
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        is_file = True
    return None if is_file else path.open("wb")


def _descriptor(path: Path) -> int | None:
    """1 for /dev/stdout, N for /dev/fd/N: the place of an open file, which renaming would take away from its user."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdigit():
            return int(path.name)
        if not path.is_symlink():
            break
        path = Path(folder, os.readlink(path))
    return None
