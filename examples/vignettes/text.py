# %% [markdown]
# # Text classification
#
# *For people who classify documents: from raw text to a model that fits on a slide, and a check of what it
# learned.*
#
# The texts are real and already on your disk: the paragraphs of SciPy's documentation. The question is whether a
# paragraph is about **statistics** (`scipy.stats`) or about **signal processing** (`scipy.signal`). It is a small
# task with the usual properties of text: tens of thousands of possible features (words and pairs of words), most of
# them useless, and a few that give the answer away.

# %%
import inspect
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import signal, stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import blockgreedy as bg


def paragraphs(module):
    """Every paragraph of at least ten words in the docstrings of a module, each once."""
    found = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some names are deprecated
        members = [getattr(module, name) for name in module.__all__]
    for member in members:
        for part in re.split(r"\n\s*\n", inspect.getdoc(member) or ""):
            if len(re.findall(r"[a-z]{3,}", part)) >= 10 and ">>>" not in part:
                found.add(" ".join(part.split()))
    return sorted(found)


documents = {"statistics": paragraphs(stats), "signal": paragraphs(signal)}
texts = [text for group in documents.values() for text in group]
labels = np.repeat(list(documents), [len(group) for group in documents.values()])
for name, group in documents.items():
    print(f"{len(group):5,} paragraphs on {name}, such as {group[len(group) // 2][:60]!r}")

# %% [markdown]
# ## Words become columns
#
# A quarter of the paragraphs is set aside for the final check. The others become a sparse matrix: one row for each
# paragraph, one column for each word and each pair of neighbouring words, tf-idf weighted. Only letters count, so
# that numbers and code do not become words.

# %%
train, test, y_train, y_test = train_test_split(texts, labels, test_size=0.25, random_state=0, stratify=labels)
vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"[a-zA-Z]{3,}", sublinear_tf=True)
X = vectorizer.fit_transform(train)
words = vectorizer.get_feature_names_out()
print(f"{X.shape[0]:,} paragraphs × {X.shape[1]:,} words and pairs, {X.nnz / X.shape[0]:.0f} of them in a paragraph")

# %% [markdown]
# ## How many words does the model need?
#
# The penalty `alpha` decides that. Cross-validation tries 40 values, from the one at which no word is in the model
# (left) to a much weaker penalty (right), and scores each on paragraphs that were held out. The lowest point of the
# curve predicts best. The dashed line marks the strongest penalty within one standard error of it: nearly as good,
# with far fewer words.

# %%
model = bg.LogisticRegressionCV(n_alphas=40, eps=0.001, cv=5, random_state=0, selection="1se").fit(X, y_train)
result = model.cv_results_
score = -result["mean_test_score"]

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.plot(model.alphas_, score, lw=2)
axis.fill_between(model.alphas_, score - result["std_error"], score + result["std_error"], alpha=0.25)
axis.axvline(model.alpha_min_, color="C2", label=f"best score (alpha {model.alpha_min_:.2g})")
axis.axvline(model.alpha_1se_, color="C1", ls="--", label=f"within one standard error (alpha {model.alpha_1se_:.2g})")
axis.set(xscale="log", ylabel="deviance on held-out paragraphs")
axis.invert_xaxis()
axis.set_xlabel("alpha (stronger penalty, fewer words on the left)")
axis.legend()
figure.savefig("text-choice.png", dpi=120)
print(f"{np.count_nonzero(model.coef_):,} of {X.shape[1]:,} words and pairs are in the model ({model.status_})")

# %% [markdown]
# ## What did it learn?
#
# A sparse model can be read in full. Positive weights raise the probability of *statistics*, negative ones of
# *signal*. Read this list before you trust an accuracy: a word that gives the answer away for the wrong reason (a
# page header, a signature, the name of the author) would stand at its top.

# %%
order = np.argsort(model.coef_[0])
shown = np.concatenate([order[:12], order[-12:]])
figure, axis = plt.subplots(figsize=(7, 5.2), layout="constrained")
axis.barh(words[shown], model.coef_[0][shown], color=["C1"] * 12 + ["C0"] * 12)
axis.set(xlabel="weight: signal ←   → statistics", ylim=(-0.7, 23.7))
axis.tick_params(axis="y", labelsize=8)
figure.savefig("text-words.png", dpi=120)

# %% [markdown]
# ## How good is it?
#
# The paragraphs that were set aside have not been seen by any step above. The table compares the chosen model with
# the one of best cross-validation score, and with always predicting the more frequent class.

# %%
held_out = vectorizer.transform(test)
best = bg.LogisticRegression(model.alpha_min_).fit(X, y_train)
figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
print("                          words   accuracy    AUC")
frequent = np.mean(y_test == "statistics")
print(f"the more frequent class       0      {frequent:.3f}  0.500")
for name, fitted in (("within one std. error", model), ("best score", best)):
    probability = fitted.predict_proba(held_out)[:, list(fitted.classes_).index("statistics")]
    area = roc_auc_score(y_test == "statistics", probability)
    kept = np.count_nonzero(fitted.coef_)
    print(f"{name:25} {kept:5}      {fitted.score(held_out, y_test):.3f}  {area:.3f}")
    false, true, _ = roc_curve(y_test == "statistics", probability)
    axis.plot(false, true, lw=2, label=f"{name}: {kept} words, AUC {area:.3f}")
    assert area > 0.9
axis.plot([0, 1], [0, 1], color="0.5", ls=":")
axis.set(xlabel="share of signal paragraphs taken for statistics", ylabel="share of statistics paragraphs found")
axis.legend(loc="lower right", fontsize=8)
figure.savefig("text-roc.png", dpi=120)

# %% [markdown]
# ## Use it
#
# Vectorizer and model are one scikit-learn pipeline, so new text goes straight in.

# %%
pipeline = make_pipeline(vectorizer, model)
for sentence in (
    "Confidence interval of the mean of a sample",
    "Coefficients of a low pass filter from its cutoff frequency",
    "The null hypothesis is that both samples come from the same distribution",
):
    share = dict(zip(model.classes_, pipeline.predict_proba([sentence])[0], strict=True))
    print(f"{share['statistics']:.2f}  {sentence}")

# %% [markdown]
# **Where to go on:** [Classify text](../text.md) does the same from a shell, where the report names the words;
# [choosing alpha](../choosing-alpha.md) explains the two rules.
