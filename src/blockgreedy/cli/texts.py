"""Exit codes, and the help of options that several commands have.

Exit codes: 0 done (converged), 3 not converged, 2 wrong use, 1 any other error.
"""

NOT_CONVERGED, WRONG_USE, FAILED = 3, 2, 1
NO_POINT = "interrupted before there was a result to report"
ALPHAS = "Number of alphas, from alpha_max (all weights are 0) downwards."
EPS = "The smallest alpha, as a fraction of alpha_max."
L1_RATIO = "Elastic net: share of alpha that goes to the L1 penalty (1: lasso); the rest goes to the ridge penalty."
TOL = (
    "Accuracy: stop when the objective is proven to be at most tol × (objective of the null model) above the "
    "minimum. The null model has all weights 0."
)
THREADS = "Number of threads (default: all available). Results do not depend on it."
MAX_LOAD = (
    "For capped blocks: the most nonzeros of a block, as a multiple of the mean (default: 1.1). 1: even blocks;"
    " inf: clustered ones."
)
