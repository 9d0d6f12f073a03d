"""Whole numbers that look like codes of categories (a shop, an hour) rather than quantities (a count, an age).

This is a guess, used for advice only. A column looks like codes if its values are whole numbers of at least -1, if
there are between 3 and 1,000 different ones, each in ten rows on average, and if neither of these says otherwise:

- its name. A word for a quantity (age, year, count, price …) means that the column does not look like codes, a word
  for a thing or for a time of clock or calendar (id, code, zip, site, hour, month …) that it does;
- its values. Numbers between 1900 and 2100 are years. Frequencies that rise and fall smoothly from value to value are
  those of counts or ages. Codes are about equally frequent, or their frequencies jump up and down.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from blockgreedy.data.column import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST, _ROWS_EACH, _YEARS = 1000, 10, (1900, 2100)
_QUANTITIES = frozenset((
    "age", "ages", "year", "years", "count", "counts", "num", "number", "n", "total", "sum", "amount", "price",
    "cost", "income", "salary", "balance", "qty", "quantity", "score", "rating", "size", "weight", "height",
    "width", "length", "area", "volume", "distance", "duration", "seconds", "minutes", "hours", "days", "weeks",
    "months", "temperature", "temp", "degree", "percent", "pct", "rate", "ratio", "level", "rank", "order",
    "times", "visits", "clicks",
))  # fmt: skip
_THINGS = frozenset((
    "id", "ids", "code", "codes", "zip", "zipcode", "postcode", "postal", "site", "shop", "store", "user",
    "customer", "item", "product", "brand", "model", "device", "browser", "os", "city", "country", "state",
    "region", "district", "county", "category", "cat", "class", "type", "kind", "group", "cluster", "segment",
    "channel", "campaign", "ad", "hour", "month", "weekday", "dow", "day", "quarter", "gender", "sex", "status",
    "sector", "department", "occupation", "job",
))  # fmt: skip


def look_like_codes(column: Column) -> bool:
    if column.kind not in ("whole", "real") or not column.is_whole():
        return False
    words = _words_of_name(column.name)
    if words & _QUANTITIES:
        return False
    values = column.numbers()
    values = values[~np.isnan(values)]
    if not len(values) or values.min() < -1:
        return False
    distinct, counts = _counted(values)
    if not 3 <= len(distinct) <= min(_MOST, len(values) / _ROWS_EACH):
        return False
    if words & _THINGS:
        return True
    is_year = _YEARS[0] <= distinct[0] and distinct[-1] <= _YEARS[1]
    return not is_year and not _is_smooth(distinct, counts)


def _words_of_name(name: str) -> set[str]:
    """device_type, deviceType and device-type2 are of the words device and type."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _counted(values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    least, most = values.min(), values.max()
    if most - least < 2**20:  # without sorting
        counts = np.bincount((values - least).astype(np.int64))
        there = np.flatnonzero(counts)
        return there + least, counts[there]
    return np.unique(values, return_counts=True)


def _is_smooth(distinct: NDArray[Any], counts: NDArray[Any]) -> bool:
    """Few gaps between the values, and frequencies that differ, but little from one value to the next.

    The sum of squared steps over that of squared deviations is 2 for frequencies in random order, and near 0 for a
    smooth curve.
    """
    if len(distinct) < 0.5 * (distinct[-1] - distinct[0] + 1):
        return False
    if len(counts) > 10:
        counts = counts[1:-1]  # limits, in which all values beyond them are counted
    away = counts - counts.mean()
    if np.sum(away**2) <= (2 * len(counts) + 10) * counts.mean():  # what chance makes of equal frequencies
        return False
    return bool(np.sum(np.diff(counts) ** 2) < 0.8 * np.sum(away**2))
