# %% [markdown]
# # A statistician's path
#
# *For people who report coefficients: the whole path, a model chosen by BIC, a refit without shrinkage, and
# intervals that account for the choice.*
#
# The data are real and come with scikit-learn: 442 diabetes patients, ten measurements each, and the progression of
# the disease a year later. As in the paper that made them known (Efron, Hastie, Johnstone and Tibshirani, *Least
# Angle Regression*, 2004) all squares and products of the measurements are candidates too, 64 terms in all.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

import blockgreedy as bg

data = load_diabetes(as_frame=False, scaled=False)
measured = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
terms = PolynomialFeatures(degree=2, include_bias=False).fit(measured)
readable = ["age", "sex", "bmi", "pressure", "cholesterol", "ldl", "hdl", "tch", "ltg", "glucose"]
names = np.array([name.replace("^2", "²").replace(" ", " × ") for name in terms.get_feature_names_out(readable)])
expanded = terms.transform(measured)
keep = np.array([name != "sex²" for name in names])  # the square of a two-valued column is redundant
X, names, y = expanded[:, keep], names[keep], data.target
print(f"{X.shape[0]} patients, {X.shape[1]} candidate terms")

# %% [markdown]
# ## The whole path
#
# `standardize=True` penalises every term as if it had variance 1, while coefficients stay on the scale of X. The
# path starts at the penalty where no term is in the model and goes down in 80 steps. Every point comes with a
# proof: its objective is at most `gap` above the minimum.

# %%
problem = bg.Problem(X, y, alpha=1.0, fit_intercept=True, standardize=True)
path = bg.solve_path(problem, n_alphas=80, eps=0.003, tol=1e-6)
print(path)
print(f"largest gap, relative to the null model: {np.max(path.gaps) / problem.null_model.objective:.0e}")

# %% [markdown]
# ## Choosing by BIC
#
# Every further term fits the sample better. The information criteria add a penalty to −2 times the log-likelihood:
# AIC 2 for each term, BIC log n. EBIC adds to BIC the log of the number of models with that many terms. The number of
# nonzero coefficients is an unbiased estimate of the lasso's degrees of freedom (Zou, Hastie and Tibshirani, 2007),
# so the criteria apply directly to the shrunken models of the path.

# %%
criteria = {"AIC": path.aic(), "BIC": path.bic(), "EBIC": path.ebic()}
least = {name: int(np.argmin(values)) for name, values in criteria.items()}
for name, k in least.items():
    print(f"{name:4}  alpha {path.alphas[k]:6.3f}  {path.nonzeros[k]:2d} terms  R² {path.deviance_explained[k]:.3f}")

figure, (top, bottom) = plt.subplots(2, figsize=(7, 6.4), sharex=True, layout="constrained")
weights = path.coefs.toarray() * X.std(axis=0)[:, None]  # per standard deviation: comparable
strongest = np.argsort(-np.abs(weights[:, least["BIC"]]))[:5]
for j in np.argsort(np.abs(weights[:, -1])):
    axis_style = {"lw": 2.2} if j in strongest else {"lw": 0.7, "color": "0.6"}
    (line,) = top.plot(path.alphas, weights[j], **axis_style)
    if j in strongest:
        top.annotate(
            names[j], (path.alphas[-1], weights[j, -1]), xytext=(6, 0), textcoords="offset points",
            va="center", fontsize=8, color=line.get_color(), annotation_clip=False,
        )  # fmt: skip
top.set(ylabel="coefficient per standard deviation", xscale="log")
top.axvline(path.alphas[least["BIC"]], color="0.5", ls="--", lw=1)
for name, values in criteria.items():
    (line,) = bottom.plot(path.alphas, values - values.min(), lw=2, label=name)
    bottom.plot(path.alphas[least[name]], 0.0, "o", color=line.get_color())
bottom.set(xlabel="alpha", ylabel="criterion, above its minimum", ylim=(-4, 80))
bottom.axvline(path.alphas[least["BIC"]], color="0.5", ls="--", lw=1)
bottom.invert_xaxis()
bottom.legend()
figure.savefig("statistics-path.png", dpi=120)

# %% [markdown]
# ## Refit without shrinkage
#
# The lasso chooses and shrinks with one penalty. `path.refit(k)` fits the chosen terms again without penalty (the
# relaxed lasso), which removes the shrinkage and, for squared loss, is ordinary least squares on these terms.

# %%
k = least["BIC"]
chosen = path.points[k].features
refit = path.refit(k)
scale = X.std(axis=0)
order = chosen[np.argsort(np.abs(refit.coef[chosen] * scale[chosen]))]
figure, axis = plt.subplots(figsize=(7, 0.36 * len(order) + 1.1), layout="constrained")
rows = np.arange(len(order))
axis.hlines(rows, path.coef(k)[order] * scale[order], refit.coef[order] * scale[order], color="0.6")
axis.plot(path.coef(k)[order] * scale[order], rows, "o", label="lasso at the least BIC")
axis.plot(refit.coef[order] * scale[order], rows, "s", label="refit without penalty")
axis.set_yticks(rows, names[order])
axis.axvline(0, color="0.5", lw=1)
axis.set(xlabel="effect of one standard deviation on the progression score")
axis.legend()
figure.savefig("statistics-refit.png", dpi=120)
design = np.column_stack([np.ones(len(y)), X[:, chosen]])
by_hand = np.linalg.lstsq(design, y, rcond=None)[0]
print(f"largest difference from least squares by NumPy: {np.max(np.abs(by_hand[1:] - refit.coef[chosen])):.0e}")
assert np.allclose(by_hand[1:] * scale[chosen], refit.coef[chosen] * scale[chosen], atol=1e-3)

# %% [markdown]
# ## Intervals that account for the choice
#
# Confidence intervals of the refit on the same patients would be too short: the terms were chosen because they
# looked strong in these very data. The simplest honest way is to split the sample. One half chooses the terms by
# BIC; the other half, which was not used for the choice, estimates them with the textbook intervals.

# %%
rng = np.random.default_rng(0)
rows = rng.permutation(len(y))
choosing, estimating = rows[: len(y) // 2], rows[len(y) // 2 :]
half = bg.solve_path(
    bg.Problem(X[choosing], y[choosing], alpha=1.0, fit_intercept=True, standardize=True), n_alphas=80, eps=0.003
)
chosen = half.points[int(np.argmin(half.bic()))].features
design = np.column_stack([np.ones(len(estimating)), X[np.ix_(estimating, chosen)]])
coef, residual, *_ = np.linalg.lstsq(design, y[estimating], rcond=None)
freedom = len(estimating) - design.shape[1]
error = np.sqrt(residual[0] / freedom * np.diag(np.linalg.inv(design.T @ design)))
width = stats.t.ppf(0.975, freedom) * error
print("term                    estimate   95 % interval")
for j, b, w in zip(chosen, coef[1:], width[1:], strict=True):
    mark = "" if abs(b) > w else "   (contains 0)"
    print(f"{names[j]:22} {b:9.1f}   {b - w:6.1f} … {b + w:5.1f}{mark}")
assert 3 <= len(chosen) <= 15

# %% [markdown]
# **Where to go on:** [paths](../paths.md) explains the criteria and what they assume. From a shell, `blockgreedy
# path` computes the same path and marks the alphas of lowest BIC and EBIC; `blockgreedy predict --alpha bic`
# predicts with one of them ([command line](../command-line.md)).
# [Coming from glmnet](../migrate-glmnet.md) translates every argument.
