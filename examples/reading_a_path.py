"""Reading a regularisation path: when features enter, how much they explain, and which point to choose.

The data are generated: 300 samples, 1,000 correlated features, and a target that depends on eight of them. It takes a
second.

    python examples/reading_a_path.py [picture.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import blockgreedy as bg

Array = NDArray[np.float64]


def make_data(seed: int = 0) -> tuple[Array, Array, Array]:
    """(X, y, true weights). A feature has a correlation of 0.6 with the next."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 1_000))
    for j in range(1, X.shape[1]):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    truth = np.zeros(X.shape[1])
    truth[50::120] = [3.0, -2.5, 2.0, -2.0, 1.5, 1.5, -1.0, 1.0]
    return X, X @ truth + 2.0 * rng.normal(size=len(X)) + 10.0, truth


def main(picture: Path) -> None:
    X, y, truth = make_data()
    problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True)  # solve_path does not use this alpha
    path = bg.solve_path(problem, n_alphas=60, eps=0.01, tol=1e-6)
    print(path, end="\n\n")

    print("   k   alpha  nonzeros  explained      gap")
    for k in range(0, len(path), 6):
        share = path.deviance_explained[k]
        print(f"{k:4d}  {path.alphas[k]:6.3f}  {path.nonzeros[k]:8d}  {share:9.3f}  {path.gaps[k]:.1e}")

    # More features always explain more of the sample. Information criteria penalise each feature; EBIC also penalises
    # the number of sets of features to choose from, which matters if there are more features than samples.
    true = np.flatnonzero(truth)
    print("\nchoice                  k  nonzeros  true ones  error of the weights  after refit")
    choices = {"about 8 features": path.index_of_nonzeros(8), "least BIC": int(np.argmin(path.bic())),
               "least EBIC": int(np.argmin(path.ebic()))}  # fmt: skip
    for name, k in choices.items():
        found = path.points[k].features
        refit = path.refit(k)  # the same features without penalty, so that their weights are not shrunk
        errors = [np.linalg.norm(coef - truth) for coef in (path.coef(k), refit.coef)]
        hits = np.intersect1d(found, true).size
        print(f"{name:20} {k:4d}  {len(found):8d}  {hits:4d} of {len(true)}  {errors[0]:20.2f}  {errors[1]:11.2f}")

    k = choices["least EBIC"]
    refit = path.refit(k)
    print(f"\nfeature   truth  at alpha {path.alphas[k]:.2f}   refit")
    for j in np.union1d(true, path.points[k].features):
        print(f"{j:7d}  {truth[j]:6.2f}  {path.coef(k)[j]:13.2f}  {refit.coef[j]:6.2f}")

    path.plot(n_named=len(true)).savefig(picture)
    print(f"\nweights and nonzeros against alpha: {picture}")
    if path.status != "converged" or not np.all(path.gaps <= 1e-6 * problem.null_model.objective):
        sys.exit("the certificate does not hold")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "path.png")
