"""Amounts of memory: as people write them, and what is free."""

from __future__ import annotations

import re
from pathlib import Path

from blockgreedy.base.validate import shown

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST_BARE = 1 << 20  # a text without a unit that says less was meant in another unit
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def bytes_of(name: str, amount: int | str) -> int:
    """2147483648 for "2G", "2 GiB" or 2147483648 itself."""
    if isinstance(amount, int) and not isinstance(amount, bool) and amount > 0:
        return amount
    found = _AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    size = 0 if found is None else int(float(found[1]) * _UNITS[found[2].upper()])
    if size <= 0:
        raise ValueError(f"{name}={shown(amount)} must be a number of bytes, or text such as 500M or 2G")
    if isinstance(amount, str) and size < _LEAST_BARE and amount.strip().replace(".", "").isdigit():
        raise ValueError(f"{name}={shown(amount)} would be {bytes_text(size)}; write the unit, such as 500M or 2G")
    return size


def bytes_text(size: float) -> str:
    """In the units of ``bytes_of``."""
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GB"


def free() -> int | None:
    """Bytes that this process may still take without swapping; None where the system does not say."""
    found = [amount for amount in (_of_machine(), _of_container()) if amount is not None]
    return min(found) if found else None


def _of_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _of_container() -> int | None:
    """What the container's limit leaves; pages that hold files are given back and do not count."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = int((folder / "memory.max").read_text())  # "max" where there is none
        used = int((folder / "memory.current").read_text())
        facts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(facts.get("file", 0)))
    except (OSError, ValueError):
        return None
