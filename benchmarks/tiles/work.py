"""What fits by tiles do: the medians that plans assume (blockgreedy.backends.tiles.work), data set by data set.

    python -m benchmarks.tiles.work --data-dir DIR [--sets reuters,enron,news20,dorothea,text,kdda]

Logistic loss with intercept, certified to 1e-4, at three alphas, on one rank. Sizes of working sets are means over
the products. "text" and "kdda" are generated, with ten million entries.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmarks.tiles.plan_check import fit, made

import blockgreedy as bg
from blockgreedy.backends.tiles.communicator import Alone

RATIOS = (1e-3, 1e-2, 1e-1)
NAMES = ("iterations", "gradients", "products", "working_entries", "due", "relevant", "working_set / √n")


def data_of(name: str, folder: Path) -> Any:
    return made(name, 10e6) if name in ("text", "kdda") else bg.load(str(folder / f"{name}.npz"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA", "data"), type=Path)
    parser.add_argument("--sets", default="reuters,enron,news20,dorothea,text,kdda")
    options = parser.parse_args()
    found: dict[float, list[list[float]]] = {ratio: [] for ratio in RATIOS}
    print(f"| set | alpha/alpha_max | {' | '.join(NAMES)} |\n|---|---|{'---|' * len(NAMES)}")
    for name in options.sets.split(","):
        data = data_of(name, options.data_dir)
        X = sp.csc_array(data.X)
        shared = bg.Problem(X, np.asarray(data.y, dtype=np.float64), loss="logistic", alpha=1.0, fit_intercept=True)
        for ratio in RATIOS:
            problem = shared.with_alpha(ratio * shared.alpha_max)
            work = fit(Alone(), problem, (1, 1), 1e-4).work(X.nnz, X.shape[1])
            row = [work.iterations, work.gradients, work.products, work.working_entries, work.due, work.relevant,
                   work.working_set / np.sqrt(X.shape[0])]  # fmt: skip
            found[ratio].append(row)
            print(f"| {name} | {ratio:g} | {' | '.join(f'{value:.3g}' for value in row)} |", flush=True)
    for ratio, rows in found.items():
        print(f"| **median** | {ratio:g} | {' | '.join(f'{value:.3g}' for value in np.median(rows, axis=0))} |")


if __name__ == "__main__":
    main()
