"""A user's first fit: a fresh process with a CSR matrix in hand, the clock from the import to the coefficients.

Reuters at alpha_max / 10, every peer at its own default tolerance; how good the answer is stands beside the time.
Conversions from CSR, compiling and everything that a package does at import count.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import problems
from .peers import Peer, available, find_peer
from .report import RESULTS, seconds
from .worker import THREAD_VARIABLES


def child(folder: Path, peer_name: str, loss: problems.Loss, alpha: float, n_threads: int) -> None:
    """Inside the fresh process: prints the seconds and leaves the coefficients in the folder."""
    data = problems.receive(folder)
    cell = problems.Cell(data.X.copy(), data.y(loss), loss, alpha)
    peer = find_peer(peer_name)
    tolerance = peer.default_tolerance or math.nan
    began = time.perf_counter()
    coef = peer.fit(peer.prepare(cell, n_threads), tolerance / alpha if peer.relative_to_alpha else tolerance)
    elapsed = time.perf_counter() - began
    np.save(folder / "coef.npy", np.asarray(coef, dtype=np.float64))
    print(json.dumps({"seconds": elapsed, "tolerance": peer.default_tolerance}), file=sys.__stdout__)


def fresh(folder: Path, peer: Peer, loss: str, alpha: float, n_threads: int, limit: float) -> float:
    """Seconds of one fresh process; raises what went wrong."""
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(n_threads))
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name, "--child", peer.name, "--loss", loss]
    command += ["--alpha", repr(alpha), "--threads", str(n_threads), "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return float(json.loads(done.stdout.strip().splitlines()[-1])["seconds"])


def measure(peers: list[Peer], name: str, ratio: float, repeats: int, limit: float) -> list[dict[str, object]]:
    data = problems.load(name)
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="first-fit-") as text:
        folder = Path(text)
        problems.hand_over(data, folder)
        for loss in problems.LOSSES:
            alpha = ratio * data.alpha_max(loss)
            for peer in [p for p in peers if p.default_tolerance and p.accepts(loss, "sparse", data.X.shape[1])]:
                row: dict[str, object] = {"problem": name, "loss": loss, "ratio": ratio, "solver": peer.name}
                row |= {"version": peer.version(), "tolerance": peer.default_tolerance}
                try:
                    times = [fresh(folder, peer, loss, alpha, 1, limit) for _ in range(repeats)]
                    objective = data.objective(np.load(folder / "coef.npy"), loss, alpha)
                    row |= {"seconds": statistics.median(times), "objective": objective}
                except subprocess.TimeoutExpired:
                    row["message"] = f"passed {limit:g} s"
                except RuntimeError as error:
                    row["message"] = str(error)[:200]
                rows.append(row)
                print(f"{loss} {peer.name}: {row.get('seconds', row.get('message'))}", flush=True)
            best = reference(data, loss, alpha)
            own = [row for row in rows if row["loss"] == loss and "objective" in row]
            best = min([best] + [float(row["objective"]) for row in own])  # type: ignore[arg-type]
            for row in own:
                row["suboptimality"] = (float(row["objective"]) - best) / data.f_null(loss)  # type: ignore[arg-type]
    return rows


def reference(data: problems.Data, loss: problems.Loss, alpha: float) -> float:
    """Ours at 1e-12, in this process."""
    peer = find_peer("blockgreedy")
    coef = peer.fit(peer.prepare(data.cell(loss, alpha), 1), 1e-12)
    return data.objective(coef, loss, alpha)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race.first_fit", description=__doc__)
    parser.add_argument("--problem", default="reuters", choices=problems.NAMES)
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    for name, kind in (("--child", str), ("--loss", str), ("--alpha", float), ("--threads", int), ("--folder", Path)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.folder, options.child, options.loss, options.alpha, options.threads)
        return
    if options.problem in (gone := problems.missing((options.problem,))):
        sys.exit(gone[options.problem])
    peers, absent = available()
    for name, reason in absent.items():
        print(f"not raced: {name}: {reason}")
    rows = measure(peers, options.problem, options.ratio, options.repeats, options.limit)
    columns = ("problem", "loss", "ratio", "solver", "version", "tolerance", "seconds", "suboptimality", "message")
    with (options.results / "race-first-fit.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print("\n| loss | solver | first fit | suboptimality |\n|---|---|---|---|")
    for row in sorted(rows, key=lambda r: (str(r["loss"]), float(r.get("seconds", math.inf)))):  # type: ignore[arg-type]
        reached = f"{row['suboptimality']:.1e}" if "suboptimality" in row else str(row.get("message"))
        print(f"| {row['loss']} | {row['solver']} | {seconds(float(row.get('seconds', math.nan)))} | {reached} |")  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
