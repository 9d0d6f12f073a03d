"""Features that are interchangeable: columns of the data that are multiples of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.int64]


class Aliases(Mapping[int, list[int]]):
    """For each feature with a weight that has copies: the other columns that are multiples of it, ascending.

    Kept as groups of copies, since lists for all of a thousand copies with weights would hold a million features.
    """

    def __init__(self, groups: Iterable[Features], with_weight: Features) -> None:
        wanted = set(with_weight.tolist())
        self.groups = [group for group in groups if not wanted.isdisjoint(group.tolist())]
        group_of = {j: group for group in self.groups for j in group.tolist() if j in wanted}
        self._group_of = dict(sorted(group_of.items()))

    def __getitem__(self, feature: int) -> list[int]:
        group = self._group_of[feature]
        return list(group[group != feature].tolist())

    def __iter__(self) -> Iterator[int]:
        return iter(self._group_of)

    def __len__(self) -> int:
        return len(self._group_of)

    def __repr__(self) -> str:
        return f"Aliases(of {len(self):,} features)"

    def restricted_to(self, with_weight: Features) -> Aliases:
        return Aliases(self.groups, with_weight)

    def to_arrays(self) -> dict[str, Features]:
        """The groups one after the other, and where each begins and ends: what a file holds."""
        ends = np.cumsum([0, *(len(group) for group in self.groups)], dtype=np.int64)
        return {"alias_indptr": ends, "alias_features": np.concatenate([np.zeros(0, np.int64), *self.groups])}

    @classmethod
    def of_arrays(cls, ends: Features, features: Features, with_weight: Features) -> Aliases:
        groups: Sequence[Features] = np.split(features.astype(np.int64), ends[1:-1]) if len(ends) > 1 else []
        return cls(groups, with_weight)
