"""Files that appear complete or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, suffix: str) -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes its place at the end, unless writing failed."""
    if path.suffix.lower() != suffix:
        raise ValueError(f"path must end in {suffix}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path must lie in an existing folder, got {str(path)!r}")
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
