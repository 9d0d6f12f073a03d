"""Terminals that a test gives to a process."""

from __future__ import annotations

import contextlib
import os


def read_to_the_end(terminal: int) -> bytes:
    """All that was written to the other end of a pseudo-terminal, which is closed then."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux ends the reading of a closed terminal with an error
        while chunk := os.read(terminal, 65536):
            shown += chunk
    os.close(terminal)
    return shown
