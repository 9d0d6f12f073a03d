"""The values that options accept by name: one list each, for Python, for the command line and for the core.

Each list is a ``Literal``, which type checkers and the command line read, and the tuple of the same names, which
checks of arguments read. Names that the core knows by number stand in the order of its enumerations.
"""

from __future__ import annotations

from typing import Literal, get_args

LossName = Literal["squared", "logistic", "squared_hinge", "huber"]  # LossKind in the core
LOSS_NAMES: tuple[LossName, ...] = get_args(LossName)

Update = Literal["add", "line-search", "sweep", "joint"]  # UpdateRule in the core
UPDATES: tuple[Update, ...] = get_args(Update)

GreedyRule = Literal["gain", "step"]  # likewise in the core
GREEDY_RULES: tuple[GreedyRule, ...] = get_args(GreedyRule)

NamedScale = Literal["theory", "paper"]
NAMED_SCALES: tuple[NamedScale, ...] = get_args(NamedScale)

ScanMode = Literal["slices", "blocks"]  # likewise in the core
SCAN_MODES: tuple[ScanMode, ...] = get_args(ScanMode)

FamilyMethod = Literal["block-greedy", "scd", "shotgun", "greedy", "thread-greedy"]
FAMILY_METHODS: tuple[FamilyMethod, ...] = get_args(FamilyMethod)
Method = Literal["auto", FamilyMethod]
METHODS: tuple[Method, ...] = get_args(Method)

OnDivergence = Literal["stop", "continue"]
ON_DIVERGENCE: tuple[OnDivergence, ...] = get_args(OnDivergence)

Status = Literal["converged", "max_iter", "max_seconds", "interrupted", "diverged", "stalled"]
STATUSES: tuple[Status, ...] = get_args(Status)

PartitionKind = Literal["random", "contiguous", "clustered", "balanced", "capped"]
PARTITION_KINDS: tuple[PartitionKind, ...] = get_args(PartitionKind)

Criterion = Literal["aic", "bic", "ebic"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

Selection = Literal["min", "1se"]  # which alpha a cross-validation chooses
SELECTIONS: tuple[Selection, ...] = get_args(Selection)

GeneratedSet = Literal["reuters", "news20", "realsim", "kdda"]  # the paper's data sets, as generated data
GENERATED_SETS: tuple[GeneratedSet, ...] = get_args(GeneratedSet)
