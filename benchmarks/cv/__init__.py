"""Cross-validation: 5 folds × 100 alphas, ours against scikit-learn's, celer's and glmnet's.

    python -m benchmarks.cv                  # all sets: hours; what has run is kept
    python -m benchmarks.cv --problems reuters --n-alphas 20 --results DIR
    python -m benchmarks.cv.report           # results/cv.csv → results/cv.md

Everybody gets the same folds and the same alphas, without intercept, two threads or processes, and the tolerance that
its users get who set none. How good a cross-validation is shows in its curve, the mean loss on the held-out rows at
each alpha: ``curve_error`` is its largest distance, relative to its value at alpha_max, to a curve that was solved
one fold and one alpha at a time with tol = 1e-5.

cell.py       what is asked: X, y, loss, alphas and folds
peers.py      how each package is asked
reference.py  the curve
measure.py    rows
memory.py     the peak of a fit
report.py     rows → markdown
designs.py    whether the choice is that of tight folds, on correlated columns
"""
