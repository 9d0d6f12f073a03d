"""The settings of the block-greedy family, checked, and the named presets that fix some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blockgreedy.base.names import (
    FAMILY_METHODS,
    GREEDY_RULES,
    NAMED_SCALES,
    SCAN_MODES,
    UPDATES,
    FamilyMethod,
    GreedyRule,
    NamedScale,
    ScanMode,
    Update,
)
from blockgreedy.base.validate import above_zero, flag, number, one_of, seed_of, shown, whole

# What each preset fixes (p = every feature a block of its own, B = all blocks) and what it only suggests.
PRESETS: dict[FamilyMethod, dict[str, Any]] = {
    "block-greedy": {},
    "scd": {"n_blocks": "p", "blocks_per_iter": 1},
    "shotgun": {"n_blocks": "p"},
    "greedy": {"n_blocks": 1, "blocks_per_iter": 1},
    "thread-greedy": {"blocks_per_iter": "B"},
}
_DEFAULT_BLOCKS = 32
_DEFAULT_SHOTGUN = 8
_LEAST_SCALE, _MOST_SCALE = 1e-12, 1e12  # beyond, steps are lost in the rounding of the weights


@dataclass(frozen=True)
class FamilyOptions:
    """Algorithm 1's settings; see ``solve`` for what they mean."""

    n_blocks: int
    blocks_per_iter: int
    per_block: int = 1
    update: Update = "joint"
    greedy_rule: GreedyRule = "gain"
    scan: ScanMode = "slices"
    atomic: bool = False
    inner_tol: float = 1e-3
    max_sweeps: int | None = None  # 1 for joint, 10 for sweep
    seed: int = 0
    step_scale: float = 1.0  # of update="add": curvatures are divided by it
    asynchronous: bool = False

    def __post_init__(self) -> None:
        whole("per_block", self.per_block, 1)
        if self.max_sweeps is not None:
            whole("max_sweeps", self.max_sweeps, 1, 2**31)
        seed_of("seed", self.seed)
        one_of("update", self.update, UPDATES)
        if self.max_sweeps is not None and self.update not in ("joint", "sweep"):
            raise ValueError(
                f"max_sweeps={self.max_sweeps} needs update='joint' or 'sweep', not {self.update!r}, which makes none"
            )
        one_of("greedy_rule", self.greedy_rule, GREEDY_RULES)
        one_of("scan", self.scan, SCAN_MODES)
        above_zero("inner_tol", self.inner_tol)
        for name in ("atomic", "asynchronous"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))  # the core takes Python's own
            if getattr(self, name) and self.update not in ("add", "line-search"):
                raise ValueError(f"{name}=True needs update='add' or 'line-search', not {self.update!r}")
        object.__setattr__(self, "step_scale", number("step_scale", checked_scale(self.step_scale, self.update)))

    @property
    def sweeps(self) -> int:
        """Most sweeps of one update."""
        return self.max_sweeps or (1 if self.update == "joint" else 10)

    @property
    def may_diverge(self) -> bool:
        return self.update in ("add", "line-search")

    @property
    def round(self) -> int:
        """⌈B/P⌉ iterations, in which every block has one chance on average; an intercept is then fitted anew."""
        return max(1, -(-self.n_blocks // self.blocks_per_iter))

    @property
    def check_every(self) -> int:
        """Iterations between two looks at the gap: ten chances for every block."""
        return 10 * self.round


def checked_scale(asked: Any, update: Update) -> float | NamedScale:
    """What was asked for as ``step_scale``, if it is a scale or the name of one and the update has any use for it."""
    if not isinstance(asked, str) or asked not in NAMED_SCALES:
        try:
            scale = number("step_scale", asked)
        except ValueError:
            scale = float("nan")
        if not _LEAST_SCALE <= scale <= _MOST_SCALE:
            raise ValueError(
                f"step_scale={shown(asked)} must be 'theory', 'paper' or a number from {_LEAST_SCALE:g} to "
                f"{_MOST_SCALE:g}"
            )
        if scale == 1:
            return 1.0
        asked = scale
    if update != "add":
        raise ValueError(f"step_scale={shown(asked)} needs update='add', not {update!r}, which finds its own steps")
    found: float | NamedScale = asked
    return found


def resolve_blocks(
    method: str, n_features: int, n_blocks: int | None, blocks_per_iter: int | None, from_partition: int | None
) -> tuple[int, int]:
    """(B, P) from the preset, what was asked for and the partition's number of blocks, or a clear refusal."""
    fixed = PRESETS[one_of("method", method, FAMILY_METHODS)]
    if from_partition is not None:
        if n_blocks is not None and whole("n_blocks", n_blocks, 1) != from_partition:
            raise ValueError(f"n_blocks={n_blocks} does not match the partition, which has {from_partition} blocks")
        n_blocks = from_partition
    if "n_blocks" in fixed:
        wanted = n_features if fixed["n_blocks"] == "p" else fixed["n_blocks"]
        if n_blocks is not None and whole("n_blocks", n_blocks, 1) != wanted:
            raise ValueError(
                f"method={method!r} needs n_blocks={wanted}, got n_blocks={n_blocks}; use method='block-greedy'"
            )
        n_blocks = wanted
    if n_blocks is None:
        n_blocks = min(_DEFAULT_BLOCKS, n_features)
    n_blocks = whole("n_blocks", n_blocks, 1, n_features)
    if "blocks_per_iter" in fixed:
        wanted = n_blocks if fixed["blocks_per_iter"] == "B" else fixed["blocks_per_iter"]
        if blocks_per_iter is not None and whole("blocks_per_iter", blocks_per_iter, 1) != wanted:
            raise ValueError(
                f"method={method!r} needs blocks_per_iter={wanted}, got "
                f"blocks_per_iter={blocks_per_iter}; use method='block-greedy'"
            )
        blocks_per_iter = wanted
    if blocks_per_iter is None:
        blocks_per_iter = min(_DEFAULT_SHOTGUN, n_blocks) if method == "shotgun" else n_blocks
    return n_blocks, whole("blocks_per_iter", blocks_per_iter, 1, n_blocks)
