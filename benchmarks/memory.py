"""Peak memory of a fit beyond its input, as a part of the CSC matrix.

Each case runs in a process of its own: the matrix is in memory in the stated format, the peak is reset, then a
problem is built and a few iterations of the method are run. Linux only (/proc).

    python benchmarks/memory.py --data-dir DIR      (or BLOCKGREEDY_DATA=DIR; without it: generated data)
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

CASE = """
import sys, numpy as np, blockgreedy as bg
path, form, method = sys.argv[1:]
data = bg.load(path) if path.endswith(".npz") else bg.data.shaped(path)
X = data.X.asformat(form)
y = data.y
del data
def status(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
size = X.data.nbytes + X.indices.nbytes + 4 * (X.shape[1] + 1)
small = bg.data.text_like(200, 300, 10.0)  # whatever a first call loads is not the fit's
bg.solve(bg.Problem(small.X, small.y, loss="logistic", alpha=1e-3), method, max_iter=20)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
problem = bg.Problem(X, y, loss="logistic", alpha=1e-5)
bg.solve(problem, method, max_iter=20, tol=0)
print(size, status("VmHWM") - before)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", default=os.environ.get("BLOCKGREEDY_DATA"))
    folder = parser.parse_args().data_dir
    for name in ("reuters", "news20"):
        path = str(Path(folder) / f"{name}.npz") if folder else name
        for form in ("csc", "csr"):
            for method in ("thread-greedy", "greedy", "scd"):
                command = [sys.executable, "-c", CASE, path, form, method]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                size, beyond = map(int, output.split())
                print(
                    f"{name:8s} from {form}  {method:14s} matrix {size / 1e6:7.1f} MB, peak beyond input "
                    f"{beyond / 1e6:7.1f} MB = {beyond / size:.2f} x"
                )


if __name__ == "__main__":
    main()
