"""Paths: 100 alphas from alpha_max to alpha_max/1000, ours against the packages that have paths, or can be looped.

    python -m benchmarks.paths               # all sets and peers: hours; what has run is kept
    python -m benchmarks.paths --problems reuters --n-alphas 20 --solvers blockgreedy celer --results DIR
    python -m benchmarks.paths.report        # results/paths.csv → results/paths.md

A path is as good as its worst point: its error is the largest over the alphas of (f(w_k) − f*_k)/f(0), f* being ours
at tol = 1e-7. What counts is the time of a solver's loosest tolerance whose path has an error of at most 1e-5.

cell.py       what is asked: X, y, loss and alphas
peers.py      how each package is asked
reference.py  f* of each alpha, with its gap
measure.py    tolerances from loose to tight, then repeats; rows
report.py     rows → markdown
"""
