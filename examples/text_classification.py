"""Text classification: TfidfVectorizer and LogisticRegression in a pipeline, tuned, read and checked.

The documents are generated: a few words on their subject and some on other subjects, among common and invented words.
It takes a few seconds. (The vignette on text has real documents and plots.)
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

import blockgreedy as bg

SUBJECTS = {
    "astronomy": "orbit telescope planet comet galaxy star lens moon eclipse nebula probe crater dust mirror ring",
    "cooking": "oven butter flour garlic sauce dough pepper onion knife salt lemon simmer ring slice dust",
    "cycling": "pedal gear chain saddle brake climb wheel helmet sprint tyre star ring mirror valley lemon",
}
COMMON = "the of and a to in is it was for on with as at by this that from we had not but have"
SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu"


def make_documents(n_documents: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """(documents, subjects). Eight of ten subject words are on the document's own subject, the others on another."""
    rng = np.random.default_rng(seed)
    words = {name: text.split() for name, text in SUBJECTS.items()}
    rare = ["".join(rng.choice(SYLLABLES.split(), 3)) for _ in range(3_000)]
    subjects = rng.choice(list(words), n_documents).tolist()
    documents = []
    for subject in subjects:
        about = [subject if rng.random() < 0.7 else rng.choice(list(words)) for _ in range(rng.poisson(5))]
        parts = [*(rng.choice(words[name]) for name in about), *rng.choice(COMMON.split(), 20), *rng.choice(rare, 15)]
        rng.shuffle(parts)
        documents.append(" ".join(parts))
    return documents, subjects


def report(pipeline: Pipeline, documents: list[str], subjects: list[str]) -> None:
    loss = log_loss(subjects, pipeline.predict_proba(documents))
    print(f"  test documents: accuracy {pipeline.score(documents, subjects):.3f}, log loss {loss:.3f}")


def main() -> None:
    documents, subjects = make_documents(1_500)
    train, test, y_train, y_test = train_test_split(documents, subjects, test_size=500, random_state=0)

    # A grid search fits the whole pipeline for every setting and fold. C means what it means in scikit-learn.
    pipeline = Pipeline([("words", TfidfVectorizer()), ("model", bg.LogisticRegression())])
    grid = {"words__sublinear_tf": [False, True], "model__C": [0.3, 1.0, 3.0, 10.0, 30.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(train, y_train)
    print(f"GridSearchCV: {search.best_params_}")
    report(search.best_estimator_, test, y_test)

    # LogisticRegressionCV solves a path of 100 alphas in each fold instead. The idf weights of the words are then
    # computed from all training documents, held-out ones included. This is harmless: idf does not use the labels.
    chosen = Pipeline([("words", TfidfVectorizer()), ("model", bg.LogisticRegressionCV(cv=3))]).fit(train, y_train)
    model, words = chosen["model"], chosen["words"].get_feature_names_out()
    print(f"LogisticRegressionCV: C {model.C_:.2f} (alpha {model.alpha_:.2g}), one of {len(model.alphas_)}")
    report(chosen, test, y_test)
    print()

    for name, row in zip(model.classes_, model.coef_, strict=True):
        top = [f"{words[j]} {row[j]:.1f}" for j in np.argsort(-row)[:7] if row[j] > 0]
        print(f"{name:>10}: {np.count_nonzero(row):3d} of {len(row)} words; {', '.join(top)}")

    # One model for each class, and a proof for each: its objective is at most this much above the true minimum.
    gaps = ", ".join(f"{gap:.1e}" for gap in model.dual_gap_)
    print(f"\n{model.status_}; proven distance from the minimum: {gaps}")

    for sentence in ("the comet had a ring of dust", "garlic, salt and a mirror", "we had the star for this climb"):
        probabilities = dict(zip(model.classes_, chosen.predict_proba([sentence])[0], strict=True))
        print(f"  {sentence!r}: " + ", ".join(f"{name} {p:.2f}" for name, p in probabilities.items()))
    if model.status_ != "converged" or not np.all(model.dual_gap_ <= 1e-4):
        sys.exit("the certificate does not hold")


if __name__ == "__main__":
    main()
