"""The race: time to a given suboptimality, against the packages a Python user would otherwise pick.

    make bench                                               # everything: hours
    make bench RACE="--problems reuters --ratios 0.1 --limit 20"
    make bench-report                                        # tables and figures from results/race-*.csv

problems.py   what is solved: cells of (problem, loss, alpha/alpha_max), and their objective in plain NumPy
peers/        one file per peer: how it is asked to solve a cell
worker.py     a process per solver, killed when a fit passes the limit
measure.py    rounds over tolerances, rows, time to target
report.py     rows → markdown and figures
from_rows.py  whole fits from the CSR that users hold, with an intercept; row_peers.py: who races there
first_fit.py  a fresh process from import to coefficients
certificate.py  our gap recomputed, and what the certificate costs
"""
