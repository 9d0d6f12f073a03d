# %% [markdown]
# # Far more features than samples
#
# *For people with 200 patients and 20,000 genes: which genes to follow up, and how much to trust the list.*
#
# Expression data have two properties that make a single lasso fit hard to interpret: there are a hundred times more
# features than samples, and genes come in correlated groups (pathways), so that a fit may pick any one member of a
# group. This page generates such data, so that the truth is known, and shows three tools: cross-validation for
# prediction, the elastic net for groups, and stability selection for a list one can defend. All three mean many
# fits, which is where a fast solver pays.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import blockgreedy as bg

rng = np.random.default_rng(1)
N_PATIENTS, N_GENES, PATHWAY = 200, 20_000, 20
activity = rng.normal(size=(N_PATIENTS, N_GENES // PATHWAY))  # of 1,000 pathways
X = np.sqrt(0.6) * np.repeat(activity, PATHWAY, axis=1) + np.sqrt(0.4) * rng.normal(size=(N_PATIENTS, N_GENES))
X = np.asfortranarray(X)  # each column contiguous in memory, so that no fit copies X
truth = np.zeros(N_GENES)
causal = np.arange(8) * 125 * PATHWAY + 7  # one gene in each of eight pathways
truth[causal] = [1.5, -1.4, 1.3, -1.2, 1.1, 1.0, -0.9, 0.8]
trait = 50 + X @ truth + 1.5 * rng.normal(size=N_PATIENTS)
print(f"{N_PATIENTS} patients, {N_GENES:,} genes, {len(causal)} of which act on the trait")
print(f"correlation of two genes of a pathway: {np.corrcoef(X[:, 0], X[:, 1])[0, 1]:.2f}")

# %% [markdown]
# ## Prediction: the lasso, alpha by cross-validation
#
# Ten folds with 60 values of `alpha` each are 600 fits. With so few patients one split of the rows into folds is
# noisy; the band shows how uncertain the curve is.

# %%
start = time.perf_counter()
lasso = bg.LassoCV(n_alphas=60, eps=0.05, cv=10, random_state=0).fit(X, trait)
seconds = time.perf_counter() - start
error, spread = lasso.mse_path_.mean(axis=1), lasso.mse_path_.std(axis=1, ddof=1) / np.sqrt(10)
chosen = np.flatnonzero(lasso.coef_)
print(f"600 fits in {seconds:.1f} s; alpha {lasso.alpha_:.3f}, {len(chosen)} genes, all {len(causal)} causal ones"
      f" among them: {set(causal) <= set(chosen)}")  # fmt: skip

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.plot(lasso.alphas_, error, lw=2)
axis.fill_between(lasso.alphas_, error - spread, error + spread, alpha=0.25)
axis.axhline(np.var(trait), color="0.5", ls=":", label="predicting the mean")
axis.axvline(lasso.alpha_min_, color="C2", label=f"best score: {len(chosen)} genes")
axis.axvline(lasso.alpha_1se_, color="C1", ls="--", label="within one standard error")
axis.set(xscale="log", xlabel="alpha", ylabel="squared error, held-out patients")
axis.invert_xaxis()
axis.legend()
figure.savefig("genomics-choice.png", dpi=120)

# %% [markdown]
# The best predictor has many more genes than those that act: cross-validation chooses for prediction, and a few
# dozen small wrong weights cost little there. As a list of genes to follow up it is far too long.
#
# ## Groups: the elastic net
#
# A causal gene has nineteen correlated neighbours. The lasso tends to take one gene of a pathway and drop the
# others; a ridge part in the penalty (`l1_ratio` below 1) lets neighbours share the weight. If the pathway is what
# you want to find, that is the more stable answer.

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
group = slice(causal[0] - 7, causal[0] + 13)
for axis, ratio in zip(axes, (1.0, 0.3), strict=True):
    net = bg.ElasticNet(alpha=lasso.alpha_1se_, l1_ratio=ratio).fit(X, trait)
    axis.bar(np.arange(PATHWAY), net.coef_[group], color=["C1" if j == 7 else "C0" for j in range(PATHWAY)])
    total = np.count_nonzero(net.coef_)
    axis.set(title=f"l1_ratio={ratio:g}: {total} genes in all", xlabel="genes of the first pathway", xticks=[])
axes[0].set_ylabel("weight (orange: the causal gene)")
figure.savefig("genomics-groups.png", dpi=120)

# %% [markdown]
# ## A list to defend: stability selection
#
# Fit a hundred random halves of the patients and count how often each gene is chosen. A gene that matters is chosen
# almost every time; one that fitted by chance is not. Each half is given by `sample_weight` 0 and 1, so that no data
# are copied. `alpha` is chosen so that the lasso on all patients has about 30 genes, more than expected to matter;
# the counts then shorten the list.

# %%
path = bg.solve_path(bg.Problem(X, trait, alpha=1.0, fit_intercept=True), n_alphas=60, eps=0.05)
alpha = path.alphas[path.index_of_nonzeros(30)]
start = time.perf_counter()
counts = np.zeros(N_GENES)
N_HALVES = 100
for _ in range(N_HALVES):
    half = np.zeros(N_PATIENTS)
    half[rng.permutation(N_PATIENTS)[: N_PATIENTS // 2]] = 1.0
    problem = bg.Problem(X, trait, alpha=alpha, fit_intercept=True, sample_weight=half)
    counts += bg.solve(problem).coef != 0
frequency = counts / N_HALVES
seconds = time.perf_counter() - start
print(f"{N_HALVES} fits in {seconds:.1f} s, {1e3 * seconds / N_HALVES:.0f} ms each")

order = np.argsort(-frequency)[:40]
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.bar(np.arange(40), frequency[order], color=["C1" if truth[j] else "C0" for j in order])
axis.axhline(0.6, color="0.5", ls=":")
axis.set(xlabel="the 40 genes chosen most often (orange: causal)", ylabel="share of halves that chose it", xticks=[])
figure.savefig("genomics-stability.png", dpi=120)
stable = np.flatnonzero(frequency >= 0.6)
print(f"chosen in at least 60 % of the halves: {len(stable)} genes, {np.count_nonzero(truth[stable])} of them causal")
assert np.count_nonzero(truth[stable]) >= 0.8 * len(stable)

# %% [markdown]
# The list is short and nearly all of it is right. What it lacks are genes of small effect: half of the patients are
# too few to find those every time. No method finds them in 200 patients without also listing genes that do nothing.
#
# **Where to go on:** [objective and scaling](../objective.md) on `standardize` for genes measured on different
# scales, [choosing alpha](../choosing-alpha.md), and [the statistician's path](statistics.md).
