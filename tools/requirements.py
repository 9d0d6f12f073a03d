"""Prints what pyproject.toml asks for, one requirement per line: dependencies plus the named extras.

The Makefile installs these before building, so that the build itself can run without isolation and stay
incremental.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
extras = project["project"]["optional-dependencies"]


def expand(name: str) -> list[str]:
    own = f"{project['project']['name']}["
    found = []
    for line in extras[name]:
        found += expand(line[len(own) : -1]) if line.startswith(own) else [line]
    return found


lines = project["project"]["dependencies"] + project["build-system"]["requires"]
for extra in sys.argv[1:]:
    lines += expand(extra)
print("\n".join(dict.fromkeys(lines)))
