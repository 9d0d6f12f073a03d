"""How fast svmlight text is read, against scikit-learn, on one file that both read again and again (warm cache).

    python benchmarks/parser.py --megabytes 500 --threads 1,2

The file is generated text data as scikit-learn writes it (16 digits per value). Values are compared bit for bit.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import blockgreedy as bg


def make_file(path: Path, megabytes: float) -> None:
    part = bg.data.text_like(6_000, 200_000, 75.0, seed=1)
    dump_svmlight_file(part.X.astype(np.float64), part.y, str(path), zero_based=False)
    text = path.read_bytes()
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            file.write(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=500.0)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    threads = [int(k) for k in options.threads.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        make_file(path, options.megabytes)
        size = path.stat().st_size / 1e6
        seconds: dict[str, list[float]] = {}
        for _ in range(options.repeats):
            for k in threads:
                began = time.perf_counter()
                ours = bg.load(path, n_threads=k)
                seconds.setdefault(f"blockgreedy, {k} thread(s)", []).append(time.perf_counter() - began)
            began = time.perf_counter()
            X, y = load_svmlight_file(str(path))
            seconds.setdefault("scikit-learn", []).append(time.perf_counter() - began)
        equal = all(
            np.array_equal(getattr(ours.X, part), getattr(X, part)) for part in ("data", "indices", "indptr")
        ) and np.array_equal(ours.y, y)
    theirs = median(seconds["scikit-learn"])
    for name, times in seconds.items():
        middle = median(times)
        print(f"{name:26} {middle:6.2f} s  {size / middle:6.0f} MB/s  {theirs / middle:5.1f} × scikit-learn")
    print(f"{size:.0f} MB, {X.shape[0]:,} rows, {X.nnz:,} entries; values {'equal' if equal else 'NOT equal'}")


if __name__ == "__main__":
    main()
