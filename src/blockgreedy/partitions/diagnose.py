"""What to expect of blocks on a data set, before any run: bounds, balance, duplicates, and advice in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockgreedy.base.validate import shown, whole
from blockgreedy.partitions.bounds import Bound, RhoBlock
from blockgreedy.partitions.duplicates import Duplicates, find_duplicates
from blockgreedy.partitions.partition import Partition
from blockgreedy.partitions.spectrum import UnitColumns
from blockgreedy.partitions.theory import BUDGET, epsilon, max_safe_blocks_per_iter, rho_block, safe_step_scale
from blockgreedy.problem.columns import as_columns

_UNEVEN_LOAD, _UNEVEN_MASS = 1.5, 3.0  # max/mean from which a sentence is due


@dataclass(frozen=True)
class BlockDiagnosis:
    """One partition: what the theory says about running P of its blocks per iteration, and how even it is.

    Attributes
    ----------
    partition : Partition
        The blocks.
    blocks_per_iter : int
        P.
    rho : RhoBlock
        Bounds on rho_block.
    load_balance : Bound
        Entries of X in the heaviest block, over their mean.
    mass_balance : Bound or None
        The gradient mass likewise; None without y.
    split_duplicates : int
        Copies that lie in another block than the column they repeat.
    """

    partition: Partition = field(repr=False)
    blocks_per_iter: int
    rho: RhoBlock = field(repr=False)
    load_balance: Bound
    mass_balance: Bound | None
    split_duplicates: int

    @property
    def epsilon_lower(self) -> Bound:
        return self._epsilon(self.rho.lower, "lower")

    @property
    def epsilon_upper(self) -> Bound:
        return self._epsilon(self.rho.upper, "upper")

    @property
    def safe_blocks_per_iter(self) -> Bound:
        """The largest P that is proven to have epsilon < 1."""
        return self._safe(self.rho.upper, "lower")

    @property
    def most_blocks_per_iter(self) -> Bound:
        """No larger P has epsilon < 1."""
        return self._safe(self.rho.lower, "upper")

    @property
    def likely_safe_blocks_per_iter(self) -> Bound | None:
        """The same from a sample of the columns: no proof. None where the bounds are all certified."""
        return None if self.rho.estimate is None else self._safe(self.rho.estimate, "lower")

    @property
    def safe_step_scale(self) -> Bound:
        """The scale of added steps with the best guarantee at P; every scale below twice of it is safe."""
        return self._scale(self.rho.upper)

    @property
    def likely_safe_step_scale(self) -> Bound | None:
        """The same from a sample of the columns: no proof. None where the bounds are all certified."""
        return None if self.rho.estimate is None else self._scale(self.rho.estimate)

    def _epsilon(self, rho: Bound, side: Any) -> Bound:
        value = epsilon(self.blocks_per_iter, self.partition.n_blocks, rho.value)
        how = f"(P−1)(rho_block−1)/(B−1) with P={self.blocks_per_iter} and rho_block {rho}"
        return Bound("epsilon", value, "exact" if rho.side == "exact" else side, rho.kind, how)

    def _safe(self, rho: Bound, side: Any) -> Bound:
        value = max_safe_blocks_per_iter(self.partition.n_blocks, rho.value)
        how = f"largest P with epsilon < 1, rho_block {rho}"
        return Bound("blocks_per_iter", value, "exact" if rho.side == "exact" else side, rho.kind, how)

    def _scale(self, rho: Bound) -> Bound:
        value = safe_step_scale(self.blocks_per_iter, self.partition.n_blocks, rho.value)
        how = f"1/(1+epsilon) with P={self.blocks_per_iter} and rho_block {rho}"
        return Bound("step_scale", value, "exact" if rho.side == "exact" else "lower", rho.kind, how)

    def to_dict(self) -> dict[str, Any]:
        numbers = {
            "epsilon_lower": self.epsilon_lower,
            "epsilon_upper": self.epsilon_upper,
            "safe_blocks_per_iter": self.safe_blocks_per_iter,
            "most_blocks_per_iter": self.most_blocks_per_iter,
            "likely_safe_blocks_per_iter": self.likely_safe_blocks_per_iter,
            "safe_step_scale": self.safe_step_scale,
            "likely_safe_step_scale": self.likely_safe_step_scale,
            "load_balance": self.load_balance,
            "mass_balance": self.mass_balance,
        }
        return {
            "kind": self.partition.kind,
            "n_blocks": self.partition.n_blocks,
            "blocks_per_iter": self.blocks_per_iter,
            "rho_block": [bound.to_dict() for bound in self.rho.bounds],
            **{name: None if bound is None else bound.to_dict() for name, bound in numbers.items()},
            "split_duplicates": self.split_duplicates,
        }


@dataclass(frozen=True)
class Diagnosis:
    """The result of ``diagnose``: numbers for each partition by name (``diagnosis["random"]``), and advice.

    Attributes
    ----------
    n_samples, n_features, n_nonzeros : int
        The size of X.
    n_empty : int
        Columns without a nonzero (centred: or constant).
    center : bool
        Whether columns were centred.
    duplicates : Duplicates
        Columns that repeat others up to sign and scale.
    partitions : dict of str to BlockDiagnosis
        Bounds on rho_block and epsilon, the safe P and the balance of each partition.
    advice : tuple of str
        What to change, a sentence each.
    """

    n_samples: int
    n_features: int
    n_nonzeros: int
    n_empty: int
    center: bool
    duplicates: Duplicates = field(repr=False)
    partitions: dict[str, BlockDiagnosis]
    advice: tuple[str, ...] = field(repr=False, default=())

    def __getitem__(self, name: str) -> BlockDiagnosis:
        return self.partitions[name]

    def __str__(self) -> str:
        lines = [f"{self.n_samples:,} × {self.n_features:,}, {self.n_nonzeros:,} nonzeros"]
        for name, found in self.partitions.items():
            lines += [f"{name}: {line}" for line in str(found.rho).splitlines()]
            lines.append(f"{name}: epsilon {found.epsilon_lower.value:.4g} … {found.epsilon_upper.value:.4g}")
        return "\n".join([*lines, *self.advice])

    def _repr_html_(self) -> str:
        from blockgreedy.reports.plots import notebook_html

        facts = [("data", f"{self.n_samples:,} rows × {self.n_features:,} features, {self.n_nonzeros:,} nonzeros")]
        for name, found in self.partitions.items():
            span = f"{found.epsilon_lower.value:.3g} to {found.epsilon_upper.value:.3g}"
            balance = f"heaviest block {found.load_balance.value:.3g} × mean"
            blocks = f"{found.blocks_per_iter:,} of {found.partition.n_blocks:,} blocks per iteration"
            facts.append((name, f"{blocks}: epsilon {span} (below 1 is safe); {balance}"))
        facts += [("advice" if k == 0 else "", sentence) for k, sentence in enumerate(self.advice)]
        return notebook_html("Diagnosis", facts)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "n_samples": self.n_samples,
            "n_features": self.n_features,
            "n_nonzeros": self.n_nonzeros,
            "n_empty": self.n_empty,
            "center": self.center,
            "n_duplicates": self.duplicates.count,
            "duplicates": [list(pair) for pair in self.duplicates.examples()],
            "partitions": {name: found.to_dict() for name, found in self.partitions.items()},
            "advice": list(self.advice),
        }


def diagnose(
    X: Any,
    partition: Partition | Mapping[str, Partition],
    y: Any = None,
    *,
    blocks_per_iter: int | None = None,
    center: bool = False,
    budget: float = BUDGET,
    seed: int = 0,
    n_threads: int | None = None,
) -> Diagnosis:
    """Compute rho_block, epsilon, the safe P and step scale, and the balance of partitions of the columns of X.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_samples, n_features)
        For the theory its columns are scaled to norm 1.
    partition : Partition or dict of str to Partition
        One, or several by name to compare them.
    y : array of shape (n_samples,), optional
        Targets, for the gradient mass |x_j·y|/‖x_j‖, which suggests where nonzero weights will be.
    blocks_per_iter : int, optional
        The P for which epsilon is computed (default: all blocks, as in thread-greedy).
    center, budget, seed, n_threads
        See ``theory.rho_block``.

    Returns
    -------
    Diagnosis
        Bounds, balance and advice.

    Examples
    --------
    >>> import blockgreedy as bg
    >>> data = bg.data.text_like(200, 400, 10.0)
    >>> found = bg.diagnose(data.X, bg.make_partition(data.X, n_blocks=8))
    >>> found["random"].epsilon_upper.value >= found["random"].epsilon_lower.value
    True
    """
    named = {partition.kind: partition} if isinstance(partition, Partition) else partition
    is_mapping = isinstance(named, Mapping) and len(named) > 0
    if not is_mapping or not all(isinstance(blocks, Partition) for blocks in named.values()):
        raise TypeError(f"partition={shown(partition)} must be a Partition or a mapping of names to Partitions")
    columns = as_columns(X, n_threads)
    unit = UnitColumns(columns, center=center, n_threads=n_threads)
    duplicates = find_duplicates(columns, n_threads) if center else unit.copies
    found = {
        name: _diagnose_one(columns, y, unit, blocks, blocks_per_iter, duplicates, budget, seed)
        for name, blocks in named.items()
    }
    facts: dict[str, Any] = {
        "n_samples": unit.n_samples,
        "n_features": unit.n_features,
        "n_nonzeros": int(np.count_nonzero(columns.data if unit.is_sparse else columns)),
        "n_empty": int(np.count_nonzero(unit.scale == 0)),
        "center": bool(center),
        "duplicates": duplicates,
        "partitions": found,
    }
    return Diagnosis(**facts, advice=tuple(_advice(Diagnosis(**facts))))


def _diagnose_one(
    X: Any,
    y: Any,
    unit: UnitColumns,
    partition: Partition,
    blocks_per_iter: int | None,
    duplicates: Duplicates,
    budget: float,
    seed: int,
) -> BlockDiagnosis:
    asked = partition.n_blocks if blocks_per_iter is None else blocks_per_iter
    P = whole("blocks_per_iter", asked, 1, partition.n_blocks)
    loads = partition.nonzeros(X)
    mass = None if y is None else partition.mass(X, y)
    return BlockDiagnosis(
        partition=partition,
        blocks_per_iter=P,
        rho=rho_block(unit, partition, y=y, budget=budget, seed=seed),
        load_balance=_balance("load_balance", loads, "entries of X in the heaviest block, over their mean"),
        mass_balance=None if mass is None else _balance("mass_balance", mass, "|x_j·y|/‖x_j‖ likewise"),
        split_duplicates=duplicates.split(partition.block_of),
    )


def _balance(name: str, loads: Any, how: str) -> Bound:
    mean = float(np.mean(loads))
    return Bound(name, float(np.max(loads)) / mean if mean > 0 else 1.0, "exact", "certified", how)


def _advice(d: Diagnosis) -> list[str]:
    said = [*_advice_on_steps(d), *_advice_on_balance(d)]
    if d.duplicates.count:
        pairs = ", ".join(f"{i} and {j}" for i, j in d.duplicates.examples())
        split = ", ".join(f"{found.split_duplicates:,} in {name}" for name, found in d.partitions.items())
        said.append(
            f"{d.duplicates.count:,} columns repeat an earlier one up to sign and scale (e.g. {pairs}). Drop them: a "
            f"copy in another block than the original makes rho_block at least 2 (such copies: {split})."
        )
    if d.n_empty:
        what = "empty or constant" if d.center else "empty"
        said.append(f"{d.n_empty:,} columns are {what}: they can be dropped, no weight will ever be put on them.")
    return said


def _advice_on_steps(d: Diagnosis) -> list[str]:
    said = []
    for name, found in d.partitions.items():
        P, least, most = found.blocks_per_iter, found.epsilon_lower.value, found.epsilon_upper.value
        if P == 1:
            said.append(f"{name}: one block per iteration is safe with any update.")
        elif most < 1:
            said.append(f"{name}: update='add' is safe with {P} blocks per iteration (epsilon at most {most:.3g}).")
        else:
            state = f"is at least {least:.3g}" if least >= 1 else f"lies between {least:.3g} and {most:.3g}"
            said.append(
                f"{name}: with {P} blocks per iteration epsilon {state}; below 1 update='add' would be safe. "
                f"{_how_many(found)} Or shorten the steps: step_scale={found.safe_step_scale.value:.3g} is safe with "
                f"{P}. Or take update='joint' or 'sweep', which never raise the objective."
            )
    tightest = sorted(d.partitions.items(), key=lambda item: item[1].rho.upper.value)
    if len(tightest) > 1 and tightest[0][1].rho.upper.value < 0.99 * min(f.rho.lower.value for _, f in tightest[1:]):
        said.append(f"{tightest[0][0]} has the smallest rho_block for certain: it suits update='add' best.")
    return said


def _how_many(found: BlockDiagnosis) -> str:
    safe, most = int(found.safe_blocks_per_iter.value), int(found.most_blocks_per_iter.value)
    sure = f"Proven safe: {'up to ' if safe > 1 else ''}{safe}"
    likely = found.likely_safe_blocks_per_iter
    if likely is not None and likely.value > safe:
        sure += f" ({int(likely.value)} by an estimate)"
    return f"{sure}; beyond {most} nothing is promised."


def _advice_on_balance(d: Diagnosis) -> list[str]:
    said = []
    for name, found in d.partitions.items():
        load, mass = found.load_balance.value, math.nan if found.mass_balance is None else found.mass_balance.value
        can_balance = found.partition.kind != "balanced"
        balanced = ", or take partition='balanced'" if can_balance else ""
        if load >= _UNEVEN_LOAD:
            said.append(
                f"{name}: the heaviest block has {load:.3g} times the mean number of nonzeros. Threads that own "
                f"blocks would wait for it: use scan='slices'{balanced}."
            )
        if mass >= _UNEVEN_MASS:
            said.append(
                f"{name}: one block holds {mass:.3g} times its share of the first gradient. With a large alpha few "
                "blocks will hold any weight, so an iteration moves few features: raise per_block with "
                f"update='joint'{balanced}."
            )
    return said
