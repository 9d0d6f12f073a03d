"""The catalogue: public sets of the LIBSVM collection, as their pages and the papers that use them describe them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

BASE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_COMPRESSED = (".bz2", ".xz", ".gz")


@dataclass(frozen=True)
class PublicSet:
    """A file of the LIBSVM collection of data sets.

    Attributes
    ----------
    name, url : str
        Its key in ``SETS``, and where it is fetched from.
    n_samples, n_features : int
        As published; a test set has the number of features of its training set.
    nonzeros : int or None
        As published in papers.
    checksum : str or None
        ``algorithm:digest`` from a public source. The collection itself publishes none.
    """

    name: str
    url: str
    n_samples: int
    n_features: int
    nonzeros: int | None = None
    checksum: str | None = None

    @property
    def file_name(self) -> str:
        """The name in the cache: that of the collection, with ``.svm`` added if it has no such ending."""
        stem, compression = self.url.rsplit("/", 1)[-1], ""
        for suffix in _COMPRESSED:
            if stem.endswith(suffix):
                stem, compression = stem.removesuffix(suffix), suffix
        return f"{stem}{'' if stem.endswith('.svm') else '.svm'}{compression}"


def _read_catalogue() -> dict[str, PublicSet]:
    """The rows of ``collection.csv``.

    Its checksums are from public code that verifies its downloads with them; where two such sources have a file, they
    agree. No SHA-256, and nothing for the files without one, was found.
    """
    with Path(__file__).with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        row["name"]: PublicSet(
            row["name"], f"{BASE}/{row['kind']}/{row['file']}", int(row["n_samples"]), int(row["n_features"]),
            int(row["nonzeros"]) if row["nonzeros"] else None, row["checksum"] or None,
        )
        for row in rows
    }  # fmt: skip


SETS = _read_catalogue()
