"""Seconds that making blocks takes on KDDA-shaped data, per kind and number of threads.

The paper's size (it reports "less than three seconds" on 48 cores for its Algorithm 2, the kind "clustered"):

    python benchmarks/clustering.py --features 20216830 --samples 8407752 --nonzeros 300000000 --threads 1,2
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from blockgreedy.data import kdda_like
from blockgreedy.partitions.partition import make_partition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=2_000_000)
    parser.add_argument("--samples", type=int, default=800_000)
    parser.add_argument("--nonzeros", type=int, default=30_000_000)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--kinds", default="clustered,capped,balanced")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs is reported")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    began = time.perf_counter()
    data = kdda_like(args.samples, args.features, args.nonzeros, seed=args.seed)
    X = data.X
    print(f"{X.shape[1]:,} features, {X.shape[0]:,} samples, {X.nnz:,} nonzeros", end=" ")
    print(f"({time.perf_counter() - began:.1f} s to generate)")

    for kind in args.kinds.split(","):
        made = []
        for n_threads in map(int, args.threads.split(",")):
            seconds = []
            for _ in range(args.repeats):
                began = time.perf_counter()
                made.append(make_partition(X, data.y, n_blocks=args.blocks, kind=kind, n_threads=n_threads))
                seconds.append(time.perf_counter() - began)
            print(f"{kind}, threads {n_threads:3d}: {min(seconds):.3f} s")
        if any(not np.array_equal(partition.block_of, made[0].block_of) for partition in made):
            raise SystemExit(f"{kind}: another number of threads gave another partition")
        nonzeros, mass = made[0].nonzeros(X), made[0].mass(X, data.y)
        uneven = (
            f"{nonzeros.max() / nonzeros.mean():.2f} in nonzeros, {mass.max() / mass.mean():.2f} in gradient mass"
        )
        print(f"{kind}: all partitions equal; largest block / mean: {uneven}")


if __name__ == "__main__":
    main()
