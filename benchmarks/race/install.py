"""Installs the peers at the versions that pyproject.toml fixes, into the environment that runs this.

A package that does not install is not dropped silently: pip's error is kept in ``failed.json`` beside the
environment, and the race prints it. liblinear-multicore has the same module name as liblinear-official and goes into
a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAILED = Path(sys.prefix) / "failed.json"
MULTICORE = Path(sys.prefix) / "liblinear-multicore"


def requirements(*extras: str) -> list[str]:
    command = [sys.executable, ROOT / "tools" / "requirements.py", *extras]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def pip(*arguments: object) -> str:
    """Installs; returns the error, or nothing."""
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *map(str, arguments)], capture_output=True)
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace")[-2000:]


def main() -> None:
    needed = requirements()
    peers = [line for line in requirements("bench") if line not in needed]
    failed = {}
    if pip(*needed, *peers):  # together first, so that pip finds versions that agree
        error = pip(*needed)
        if error:
            sys.exit(error)
        failed = {line: error for line in peers if (error := pip(line))}
    for line in [line for line in requirements("bench-multicore") if line not in needed]:
        if error := pip("--no-deps", "--upgrade", "--target", MULTICORE, line):
            failed[line] = error
    FAILED.write_text(json.dumps(failed, indent=2))
    for line, error in failed.items():
        print(f"{line} did not install:\n{error}\n", file=sys.stderr)


if __name__ == "__main__":
    main()
