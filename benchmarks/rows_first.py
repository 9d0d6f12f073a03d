"""A cold fit from rows (CSR) against the same fit from columns (CSC): seconds, and peak memory beyond the input.

    python benchmarks/rows_first.py --data-dir DIR                     (or BLOCKGREEDY_DATA=DIR)
    python benchmarks/rows_first.py --before OTHER/.venv/bin/python    also measures another installation

Problem and solve to a relative gap of 1e-4 on one thread, at three alphas, for the logistic loss with and without
intercept and for the squared loss; and ``fit`` of LogisticRegression and Lasso. Seconds are CPU seconds,
medians of interleaved runs; every set is measured in a process of its own, installations in turn. The first fit of a
process, which has to ask the system for memory, is one of them. Memory: Linux only (/proc), the largest of all runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

SETS = ("reuters", "enron", "dorothea", "news20", "crosses", "reuters-shaped")
RATIOS = (0.1, 0.01, 0.001)
MODELS: dict[str, dict[str, Any]] = {
    "logistic": {"loss": "logistic"},
    "logistic, intercept": {"loss": "logistic", "fit_intercept": True},
    "squared": {"loss": "squared"},
    "LogisticRegression": {"loss": "logistic", "fit_intercept": True},
    "Lasso": {"loss": "squared", "fit_intercept": True},
}

CASE = """
import json, sys, time, numpy as np, scipy.sparse as sp, blockgreedy as bg
path, models, ratios, repeats, patience = json.loads(sys.argv[1])
if path.endswith(".npz"):
    data = bg.load(path)
else:
    data = bg.data.crosses_like() if path == "crosses" else bg.data.shaped(path)
dtype = data.X.dtype if data.X.dtype.kind == "f" else np.float32
csr = sp.csr_matrix(data.X, dtype=dtype)
csr.sort_indices()
csc, y = csr.tocsc(), np.asarray(data.y, dtype=np.float64)
def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
def fit(X, alpha, model, estimator):
    if estimator:
        return estimator(alpha=alpha, tol=1e-4, n_threads=1).fit(X, y)
    return bg.solve(bg.Problem(X, y, alpha=alpha, n_threads=1, **model), tol=1e-4)
for name, model in models.items():
    estimator = getattr(bg, name, None)
    largest = bg.Problem(csc, y, alpha=1.0, n_threads=1, **model).alpha_max
    for ratio in ratios:
        seconds, peaks, spent = {"csc": [], "csr": []}, {}, 0.0
        for repeat in range(repeats):
            for form, X in (("csc", csc), ("csr", csr)):
                open("/proc/self/clear_refs", "w").write("5")
                before, began = status("VmRSS"), time.process_time()
                solution = fit(X, ratio * largest, model, estimator)
                seconds[form].append(time.process_time() - began)
                peaks[form] = max(peaks.get(form, 0), status("VmHWM") - before)
                spent += seconds[form][-1]
            if spent > patience and repeat:
                break
        print(json.dumps({
            "model": name, "ratio": ratio, "seconds": seconds, "peaks": peaks,
            "proven": (solution.status_ if estimator else solution.status) == "converged",
            "input": csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes,
        }), flush=True)
"""


def measure(python: str, path: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    given = [path, MODELS, RATIOS, options.repeats, options.patience]
    command = [python, "-c", CASE, json.dumps(given)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def line_of(cell: dict[str, Any]) -> tuple[float, str]:
    csc, csr = (median(cell["seconds"][form]) for form in ("csc", "csr"))
    peaks = " | ".join(f"{cell['peaks'][form] / cell['input']:.2f}" for form in ("csc", "csr"))
    return csr / csc, f"{1000 * csc:.1f} | {1000 * csr:.1f} | {csr / csc:.2f} | {peaks}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA", ""))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--before", help="the python of another installation")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--patience", type=float, default=20.0, help="CPU seconds of a cell after which two runs do")
    options = parser.parse_args()
    pythons = {"before": options.before, "now": sys.executable} if options.before else {"now": sys.executable}
    titles = " | ".join(f"{when}: CSC ms | CSR ms | ratio | peak/input CSC | CSR" for when in pythons)
    print(f"| set | model | alpha/max | {titles} | proven |\n|{'---|' * (4 + 5 * len(pythons))}", flush=True)
    ratios: dict[str, list[float]] = {when: [] for when in pythons}
    for name in options.sets.split(","):
        stored = Path(options.data_dir) / f"{name}.npz"
        path = str(stored) if options.data_dir and stored.exists() else name.removesuffix("-shaped")
        runs = {when: measure(python, path, options) for when, python in pythons.items()}
        for cells in zip(*runs.values(), strict=True):
            described = [line_of(cell) for cell in cells]
            for when, (ratio, _) in zip(pythons, described, strict=True):
                ratios[when].append(ratio)
            texts = " | ".join(text for _, text in described)
            proven = "yes" if cells[-1]["proven"] else "no"
            print(f"| {name} | {cells[0]['model']} | {cells[0]['ratio']:g} | {texts} | {proven} |", flush=True)
    for when, values in ratios.items():
        print(f"\n{when}: CSR/CSC median {median(values):.2f}, worst {max(values):.2f} of {len(values)} cells")


if __name__ == "__main__":
    main()
