"""The lines of a script that are about ranks and stores."""

from __future__ import annotations

import math

from hunt.case import SMALL_SETS, Case


def is_stored(case: Case) -> bool:
    return case.grid is not None and case.grid.groups is not None


def rank_imports(case: Case) -> list[str]:
    if case.grid is None:
        return []
    lines = ["from blockgreedy.backends.tiles import tuning"] if case.grid.small_sets else []
    lines += ["from blockgreedy.backends.tiles.threads import run_in_threads"]
    return lines + (["import tempfile"] if is_stored(case) else [])


def rank_settings(case: Case) -> list[str]:
    if case.grid is None or not case.grid.small_sets:
        return []
    return [f"tuning.{name} = {number}" for name, number in SMALL_SETS.items()]


def store_lines(case: Case) -> list[str]:
    assert case.grid is not None
    assert case.grid.groups is not None
    row_groups, n_blocks = case.grid.groups
    columns = f"column_groups={n_blocks}"
    if case.grid.shuffled:
        columns = f'partition=bg.make_partition(sp.csc_array(X), n_blocks={n_blocks}, kind="random")'
    return [
        "folder = tempfile.TemporaryDirectory()",
        'store = bg.data.convert(bg.Dataset(sp.csc_array(X), y), folder.name + "/made.store", '
        f"row_groups={row_groups}, {columns})",
    ]


def on_ranks(case: Case, name: str, function: str, arguments: list[str]) -> list[str]:
    """``name`` = what a call returns: with a grid on rank 0, and whether the others and a second run say the same."""
    if case.grid is None:
        return [f"{name} = {function}({', '.join(filter(None, arguments))})"]
    size = math.prod(case.grid.shape)
    given = ", ".join(filter(None, [*arguments, f"cluster=ranks, grid={case.grid.shape}, n_threads=n_threads"]))
    points = "[one]" if name == "solution" else "one.points"
    weights = "coef" if name == "solution" else "values"
    return [
        "def work(ranks, n_threads=1):",
        f"    return {function}({given})",
        f"{name}, *others = run_in_threads({size}, work)",
        *(["seen.clear()"] if case.stop is not None else []),
        f"others += run_in_threads({size}, lambda ranks: work(ranks, 2))",
        "def bits(one):",
        f"    return [(point.{weights}.tobytes(), point.dual.tobytes()) for point in {points}]",
        f'print("the same on all ranks, and again:", all(bits({name}) == bits(other) for other in others))',
    ]
