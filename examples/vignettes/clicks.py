# %% [markdown]
# # Clicks: integer codes and crosses
#
# *For people who predict clicks, fraud or churn from a log: raw CSV in, probabilities out, no feature code in
# between.*
#
# Logs store categories as integers: site 17, device 2, campaign 40. Fitted as numbers they make no sense ("site 34
# is twice site 17"). Fitted as categories they still miss effects of two columns together, such as a campaign that
# works on phones only. A *cross* of two columns has a feature for each pair of values. There are many such
# features, but the L1 penalty keeps only the useful ones, so all pairs of columns can be crossed.
#
# The log is generated here, so that the truth is known: 40,000 impressions, five columns of codes, about 9 %
# clicks.

# %%
import csv
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

import blockgreedy as bg

rng = np.random.default_rng(0)
SIZES = {"site": 60, "device": 4, "campaign": 40, "hour": 24, "position": 6}
effects = {name: rng.normal(scale=0.3, size=size) for name, size in SIZES.items()}
pairs = {  # what no sum of single effects can express
    ("campaign", "device"): rng.normal(scale=1.5, size=(40, 4)) * (rng.random((40, 4)) < 0.5),
    ("site", "campaign"): rng.normal(scale=1.5, size=(60, 40)) * (rng.random((60, 40)) < 0.1),
}


def write_log(path, n_rows):
    log = {name: rng.integers(size, size=n_rows) for name, size in SIZES.items()}
    score = sum(effects[name][codes] for name, codes in log.items()) - 2.6
    score += sum(table[log[a], log[b]] for (a, b), table in pairs.items())
    click = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["click", *log])
        writer.writerows(zip(click, *log.values(), strict=True))
    return click


def shell(command):
    """Runs a line as a terminal would."""
    print("$", command, flush=True)
    program, *rest = command.split()
    subprocess.run([sys.executable, "-m", program, *rest], check=True)


write_log("clicks.csv", 40_000)
clicked = write_log("tomorrow.csv", 10_000)
with open("clicks.csv") as file:
    print(file.read(60))

# %% [markdown]
# ## Look first
#
# `data info` shows every column, how many values it has, and how it would be treated. Integers with few values are
# pointed out: they may be codes.

# %%
shell("blockgreedy data info clicks.csv --target click")

# %% [markdown]
# ## Two models and two predictions, without Python
#
# `--categorical all` reads every column as categories. `--cross all:2` adds all pairs of columns, and `--min-count
# 10` leaves out combinations that occur in fewer than ten rows. The label has two values, so the loss is logistic.
# Each model remembers its encoding: `predict` takes the raw CSV of the next day as it is.

# %%
shell("blockgreedy cv clicks.csv --target click --categorical all --alphas 30 --eps 0.004 --model plain.npz --quiet")
shell(
    "blockgreedy cv clicks.csv --target click --categorical all --cross all:2 --min-count 10"
    " --alphas 30 --eps 0.004 --model crossed.npz --report crossed.html --quiet"
)

# %%
shell("blockgreedy predict plain.npz tomorrow.csv --target click --what probabilities --out plain.csv --score")
shell("blockgreedy predict crossed.npz tomorrow.csv --target click --what probabilities --out crossed.csv --score")

# %% [markdown]
# ## What the crosses bring
#
# The area under the ROC curve is the probability that a click is ranked above an impression without one. On the
# right: impressions in ten groups by predicted probability, and how often they were really clicked. Points on the
# diagonal mean that a predicted 20 % is 20 %.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
area = {}
for name in ("plain", "crossed"):
    predicted = np.loadtxt(f"{name}.csv", delimiter=",", skiprows=1)[:, 1]  # columns p(0) and p(1)
    area[name] = roc_auc_score(clicked, predicted)
    left.plot(*roc_curve(clicked, predicted)[:2], lw=2, label=f"{name}: AUC {area[name]:.3f}")
    groups = np.array_split(np.argsort(predicted), 10)
    right.plot([predicted[g].mean() for g in groups], [clicked[g].mean() for g in groups], "o-", label=name)
left.plot([0, 1], [0, 1], color="0.5", ls=":")
left.set(xlabel="share of other impressions ranked above", ylabel="share of clicks found")
right.axline((0, 0), slope=1, color="0.5", ls=":")
right.set(xlabel="predicted probability", ylabel="observed share of clicks")
left.legend(loc="lower right")
right.legend(loc="upper left")
figure.savefig("clicks-quality.png", dpi=120)
print(f"AUC on tomorrow's log: plain {area['plain']:.3f}, with crosses {area['crossed']:.3f}")
assert area["crossed"] > area["plain"] + 0.02

# %% [markdown]
# ## The same in Python, and the truth beside the estimate
#
# `bg.load` takes the same options. Because the data are generated, the weights of campaign × device can be compared
# with the true effects.

# %%
data = bg.load("clicks.csv", target="click", categorical="all", cross="all:2", min_count=10)
problem = bg.Problem(
    data.X, data.y, loss="logistic", alpha=bg.Model.load("crossed.npz").alphas[0], fit_intercept=True
)
solution = bg.solve(problem)
print(solution)

weights = dict(zip(data.feature_names.tolist(), solution.coef, strict=True))
estimate = np.zeros((40, 4))
for name, weight in weights.items():
    parts = dict(part.split("=") for part in name.replace(" × ", "×").split("×"))
    if set(parts) == {"campaign", "device"}:
        estimate[int(parts["campaign"]), int(parts["device"])] = weight
figure, axes = plt.subplots(1, 2, figsize=(8, 2.4), sharey=True, layout="constrained")
for axis, table, title in zip(axes, (pairs["campaign", "device"], estimate), ("truth", "model"), strict=True):
    picture = axis.imshow(table.T, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
    axis.set(title=title, xlabel="campaign", yticks=range(4))
axes[0].set_ylabel("device")
figure.colorbar(picture, ax=axes, label="weight")
figure.savefig("clicks-crosses.png", dpi=120)
agreement = np.corrcoef(pairs["campaign", "device"].ravel(), estimate.ravel())[0, 1]
print(f"{np.count_nonzero(solution.coef):,} of {len(weights):,} features; correlation with the truth {agreement:.2f}")
assert agreement > 0.5

# %% [markdown]
# **Where to go on:** [one-hot columns and crosses](../crosses.md) has all options of the encoding, [big
# files](../big-files.md) the next order of magnitude.
