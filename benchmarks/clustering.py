"""Seconds that Algorithm 2 takes on KDDA-shaped data, per number of threads.

The paper's size (it reports "less than three seconds" on 48 cores):

    python benchmarks/clustering.py --features 20216830 --samples 8407752 --nonzeros 300000000 --threads 1,2
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from blockgreedy.data import kdda_like
from blockgreedy.partition import make_partition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=2_000_000)
    parser.add_argument("--samples", type=int, default=800_000)
    parser.add_argument("--nonzeros", type=int, default=30_000_000)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs is reported")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    began = time.perf_counter()
    X = kdda_like(args.samples, args.features, args.nonzeros, seed=args.seed).X
    print(f"{X.shape[1]:,} features, {X.shape[0]:,} samples, {X.nnz:,} nonzeros", end=" ")
    print(f"({time.perf_counter() - began:.1f} s to generate)")

    first = None
    for n_threads in map(int, args.threads.split(",")):
        seconds = []
        for _ in range(args.repeats):
            began = time.perf_counter()
            partition = make_partition(X, n_blocks=args.blocks, kind="clustered", n_threads=n_threads)
            seconds.append(time.perf_counter() - began)
        print(f"threads {n_threads:3d}: {min(seconds):.3f} s")
        first = first or partition
        if not np.array_equal(partition.block_of, first.block_of):
            raise SystemExit(f"{n_threads} threads gave another partition than the first run")
    load = first.nonzeros(X) if first else np.ones(1)
    print(f"all partitions equal; largest block holds {load.max() / load.mean():.1f} times the mean nonzeros")


if __name__ == "__main__":
    main()
