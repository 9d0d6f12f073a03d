"""A store several times larger than the memory that is allowed: converted and fitted, against a fit in memory.

    python -m benchmarks.tiles.out_of_core --gib 4 --memory 1G --dir DIR [--only convert,tiles]

Generates text-like rows, writes them to an .npz file, converts that to a store and fits the store, each in a process
of its own whose peak of resident memory, mapped files included, is reported; then fits the same matrix in memory.
Keeps what it made in DIR. To make the limit a hard one, run ``--only convert,tiles`` in a memory cgroup.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import blockgreedy as bg
from blockgreedy.base.memory import bytes_of

BYTES_PER_ENTRY = 8  # float32 and a row number
PER_ROW, PER_COLUMN = 1000, 2000  # entries

WORK = """
import json, resource, sys, time
what, folder, memory, ratio, tol = json.loads(sys.argv[1])
import blockgreedy as bg
import numpy as np, scipy.sparse as sp
from blockgreedy.data.conversion import convert
from blockgreedy.data.store import Store
began = time.perf_counter()
facts = {}
if what == "convert":
    convert(folder + "/rows.npz", folder + "/made.store", memory=memory)
else:
    if what == "tiles":
        problem = bg.Problem(Store(folder + "/made.store"), loss="logistic", alpha=1.0, fit_intercept=True)
    else:
        data = Store(folder + "/made.store").dataset()
        problem = bg.Problem(data.X, data.y, loss="logistic", alpha=1.0, fit_intercept=True)
    facts["read"] = time.perf_counter() - began
    problem = problem.with_alpha(ratio * problem.alpha_max)
    began = time.perf_counter()
    solution = bg.solve(problem, tol=tol, **({"memory": memory} if what == "tiles" else {}))
    facts |= {"status": solution.status, "iterations": solution.n_iter, "objective": solution.objective,
              "gap": solution.gap / problem.null_model.objective, "nonzeros": int(np.count_nonzero(solution.coef)),
              "touched": int(solution.trace["nonzeros_touched"][-1])}
facts["seconds"] = time.perf_counter() - began
facts["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(facts))
"""


def measured(what: str, folder: Path, memory: int, ratio: float, tol: float) -> dict[str, float]:
    given = json.dumps([what, str(folder), memory, ratio, tol])
    done = subprocess.run([sys.executable, "-c", WORK, given], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def generate(path: Path, n_bytes: int) -> None:
    """A .npz file of rows."""
    n_entries = n_bytes // BYTES_PER_ENTRY
    data = bg.data.text_like(n_entries // PER_ROW, n_entries // PER_COLUMN, float(PER_ROW))
    rows = sp.csr_array(data.X)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    np.savez(path, format=b"csr", shape=rows.shape, y=np.asarray(data.y), **parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--ratio", type=float, default=0.01)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--only", default="convert,tiles,memory")
    options = parser.parse_args()
    folder, memory = options.dir, bytes_of("memory", options.memory)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "rows.npz").exists():
        generate(folder / "rows.npz", int(options.gib * 2**30))
    for what in options.only.split(","):
        print(what, json.dumps(measured(what, folder, memory, options.ratio, options.tol)), flush=True)


if __name__ == "__main__":
    main()
