"""The names that options accept, each list written once; the core counts them in this order."""

from typing import Literal

Update = Literal["add", "line-search", "sweep", "joint"]
GreedyRule = Literal["gain", "step"]
ScanMode = Literal["slices", "blocks"]
Method = Literal["auto", "block-greedy", "scd", "shotgun", "greedy", "thread-greedy"]
Status = Literal["converged", "max_iter", "max_seconds", "interrupted", "diverged", "stalled"]
