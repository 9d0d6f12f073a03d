"""Where a process was when it hung or died, from what faulthandler wrote."""

from __future__ import annotations

import re


def frames(stack: str) -> str:
    """The innermost calls of the thread that ran the case, on one line, from what faulthandler wrote."""
    thread = stack.split("most recent call first")[-1]
    calls = re.findall(r'File ".*?([^/"]+)", line (\d+) in (\S+)', thread)
    return " < ".join(f"{file}:{line} {function}" for file, line, function in calls[:6])
