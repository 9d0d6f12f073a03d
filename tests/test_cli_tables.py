"""Tables on the command line: crosses from a raw CSV to predictions, options that add up, advice, what is refused."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app


def run(*arguments, columns=100):
    return CliRunner(env={"COLUMNS": str(columns), "NO_COLOR": "1"}).invoke(app, list(map(str, arguments)))


def good(*arguments, **more):
    result = run(*arguments, **more)
    assert result.exit_code == 0, result.output
    return result


def clicks(rng, n):
    """Codes whose combinations matter, an age and a price that is missing at times."""
    site, hour, device = rng.integers(101, 113, n), rng.integers(0, 24, n), rng.integers(1, 5, n)
    effect = np.random.default_rng(99).normal(0, 1.5, (12, 4))
    age = np.clip(rng.normal(40, 12, n).round(), 18, 90).astype(int)
    logit = effect[site - 101, device - 1] + 0.02 * (age - 40)
    price = np.where(rng.random(n) < 0.05, np.nan, rng.exponential(10, n).round(2))
    clicked = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return pd.DataFrame(
        {"site": site, "hour": hour, "device": device, "age": age, "price": price, "clicked": clicked}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clicks")
    rng = np.random.default_rng(0)
    clicks(rng, 6000).to_csv(folder / "train.csv", index=False)
    clicks(rng, 3000).to_csv(folder / "test.csv", index=False)
    return folder


COMMON = (
    "--target",
    "clicked",
    "--loss",
    "logistic",
    "--alpha",
    "1e-3",
    "--intercept",
    "--fill",
    "median",
)


def auc_of(folder, model, data="test.csv"):
    good("predict", folder / model, folder / data, "--what", "probabilities", "--out", folder / "p.csv")
    predicted = pd.read_csv(folder / "p.csv")["p(1)"]
    return roc_auc_score(pd.read_csv(folder / "test.csv")["clicked"], predicted)


def test_crosses_go_from_a_raw_csv_to_predictions(folder):
    plain = ("--categorical", "site,hour,device")
    good("fit", folder / "train.csv", *COMMON, *plain, "--model", folder / "plain.npz")
    for kind in ("npz", "json"):
        crossed = ("--categorical", "site,hour,device", "--cross", "all:2", "--min-count", 5)
        good("fit", folder / "train.csv", *COMMON, *crossed, "--model", folder / f"crossed.{kind}")
        assert auc_of(folder, f"crossed.{kind}") > auc_of(folder, "plain.npz") + 0.05
    # the same in Python
    asked = {"categorical": "site,hour,device", "cross": "all:2", "min_count": 5, "fill": "median"}
    data = bg.load(folder / "train.csv", target="clicked", **asked)
    model = bg.Model.load(folder / "crossed.npz")
    assert model.feature_names.tolist() == data.feature_names.tolist()
    assert model.encoding == data.encoding
    new = bg.load(folder / "test.csv", encoding=data.encoding, target="clicked")
    auc_of(folder, "crossed.json")
    predicted = pd.read_csv(folder / "p.csv")["p(1)"]
    np.testing.assert_allclose(model.predict_proba(new.X)[:, 1], predicted, rtol=1e-12)


def test_predict_needs_neither_labels_nor_dropped_columns_nor_options(folder):
    crossed = ("--categorical", "all", "--cross", "site,device", "--drop", "hour,age")
    good("fit", folder / "train.csv", *COMMON, *crossed, "--model", folder / "m.npz")
    bare = pd.read_csv(folder / "test.csv").drop(columns=["hour", "age", "clicked"])
    bare[["price", "device", "site"]].to_csv(folder / "bare.csv", index=False)
    assert auc_of(folder, "m.npz", "bare.csv") == auc_of(folder, "m.npz") > 0.7


def test_unseen_values_are_one_warning(folder):
    good(
        "fit", folder / "train.csv", *COMMON, "--categorical", "all", "--cross", "all:2", "--model", folder / "u.npz"
    )
    new = pd.read_csv(folder / "test.csv")
    new.loc[:9, "site"] = 999
    new.to_csv(folder / "new.csv", index=False)
    stderr = good("predict", folder / "u.npz", folder / "new.csv").stderr
    assert stderr.count("Warning") == 1
    assert "unseen categories are encoded as all zeros: site in 10" in stderr


def test_an_encoding_leaves_no_choice_to_predict(folder):
    good("fit", folder / "train.csv", *COMMON, "--categorical", "all", "--model", folder / "e.npz")
    result = run("predict", folder / "e.npz", folder / "test.csv", "--categorical", "site")
    assert result.exit_code == 2
    assert "cannot be combined with an encoding" in result.output


def test_repeated_options_add_up(folder):
    once = ("--categorical", "site,hour,device", "--cross", "site,hour", "--cross", "hour,device", "--drop", "age")
    several = ("--categorical", "site", "--categorical", "hour,dev*", *once[2:], "--drop", "price")
    facts = [
        json.loads(good("data", "info", folder / "train.csv", *asked, *COMMON[:2], "--fill", 0, "--json").stdout)
        for asked in ((*once, "--drop", "price"), several)
    ]
    assert facts[0]["n_features"] == facts[1]["n_features"] == 12 + 24 + 4 + 12 * 24 + 24 * 4


# Advice.


def test_columns_that_look_like_codes_are_named_once_on_stderr(folder):
    for command in (("fit", *COMMON), ("path", *COMMON[:4], *COMMON[6:], "--alphas", 3), ("cv", *COMMON[:4],
                    *COMMON[6:], "--alphas", 3, "--folds", 2)):  # fmt: skip
        result = good(command[0], folder / "train.csv", *command[1:])
        assert result.stderr.count("Note: columns site, hour, device look like codes of categories") == 1
        assert "--categorical site,hour,device" in result.stderr
        assert "look like codes" not in result.stdout
    assert "look like codes" not in good("fit", folder / "train.csv", *COMMON, "--categorical", "all").stderr
    told = good("fit", folder / "train.csv", *COMMON, "--categorical", "site,hour").stderr
    assert "Note: column device looks like codes" in told


def test_the_advice_is_kept_with_a_cache(folder, tmp_path):
    (tmp_path / "a.csv").write_bytes((folder / "train.csv").read_bytes())
    for _ in range(2):
        assert "look like codes" in good("fit", tmp_path / "a.csv", *COMMON, "--cache").stderr


# data info


def test_info_describes_every_column(folder):
    shown = good("data", "info", folder / "train.csv", *COMMON[:2], "--categorical", "site", "--drop", "hour",
                 "--fill", "price=0", columns=80).stdout.splitlines()  # fmt: skip
    rows = {line.split()[0]: line.split() for line in shown[2:8]}
    assert max(map(len, shown[1:8])) <= 80
    assert rows["site"][:6] == ["site", "int64", "12", "0", "12", "categories"]
    assert rows["hour"][:5] == ["hour", "int64", "24", "0", "dropped"]
    assert rows["device"] == ["device", "int64", "4", "0", "number", "1", "…", "4"]
    assert rows["price"][1] == "double"
    assert rows["price"][4:7] == ["number,", "fill", "0"]
    assert rows["clicked"][4] == "label"
    assert shown[8].startswith("Advice: column device looks like codes of categories, but is taken as numbers")


def test_info_describes_a_table_that_cannot_be_fitted(folder):
    result = good("data", "info", folder / "train.csv")
    assert (
        "Advice: values are missing in price. Fill them (--fill price=median), or leave the column out (--drop)."
        in result.stdout
    )
    assert "Note: with these options the table cannot be fitted" in result.stderr
    assert "fill them (--fill price=median), or leave the column out (--drop price)" in result.stderr
    facts = json.loads(good("data", "info", folder / "train.csv", "--json").stdout)
    assert "column 'price'" in facts["error"]
    price = next(column for column in facts["table"] if column["name"] == "price")
    frame = pd.read_csv(folder / "train.csv")
    assert price["missing"] == frame["price"].isna().sum()
    assert price["distinct"] == frame["price"].nunique()
    assert price["span"] == [frame["price"].min(), frame["price"].max()]


def test_info_says_how_many_columns_it_does_not_show(tmp_path):
    names = [f"c{k}" for k in range(75)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" * 75) + "\n")
    assert "… and 15 more columns, which --json lists" in good("data", "info", tmp_path / "wide.csv").stdout


# What is refused, before the rows are read.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--categorical", "nope"), "--categorical: {path} has no column 'nope'; its columns are a, b"),
        (("--categorical", "y"), "--categorical: column 'y' of {path} holds the labels; its other columns are a, b"),
        (("--drop", "no*"), "--drop: no column of {path} matches 'no*'"),
        (("--cross", "a"), "--cross a is not a cross; accepted are two or more column names"),
        (("--cross", "a,nope", "--categorical", "a"), "--cross: {path} has no column 'nope'"),
        (("--cross", "a,b"), "--cross: column 'a' of {path} holds numbers; add --categorical a"),
        (("--cross", "all:9"), "'9' must be 2 or 3"),
        (("--fill", "nope=1"), "--fill: {path} has no column 'nope'"),
        (("--fill", "often"), "'often' is not a value to fill in"),
        (("--min-count", "0"), "--min-count 0 must be a whole number of at least 1"),
        (("--target", "nope"), "--target nope is not a column of {path}; its columns are a, b, y"),
        (("--drop", "y"), "--drop: column 'y' of {path} holds the labels"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow"])
def test_wrong_use_is_told_before_the_rows_are_read(tmp_path, monkeypatch, kind, arguments, sentence):
    path = tmp_path / f"t.{kind}"
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], "y": [0, 1]})
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "arrow":
        frame.to_feather(path)
    else:
        text = frame.to_csv(index=False).encode()
        path.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)

    def read(*_, **__):
        raise AssertionError("the rows were read")

    monkeypatch.setattr("blockgreedy.data.tables.read_columns", read)
    for command in (("fit", "--alpha", 1), ("path",), ("cv",)):
        result = run(command[0], path, *command[1:], *arguments, columns=1000)
        assert result.exit_code == 2, result.output
        assert sentence.format(path=path) in result.output


def test_without_labels_a_fit_is_wrong_use(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    result = run("fit", tmp_path / "a.csv", "--alpha", 1)
    assert result.exit_code == 2
    assert "holds the labels?" in result.output
    good("data", "info", tmp_path / "a.csv")


@pytest.mark.parametrize("asked", [("--drop", "a"), ("--fill", 0), ("--cross", "a,b"), ("--min-count", 2)])
def test_options_of_tables_are_refused_for_other_formats(tmp_path, asked):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:1\n")
    result = run("fit", tmp_path / "a.svm", "--alpha", 1, *asked)
    assert result.exit_code == 2
    assert f"{asked[0]} {asked[1]} is for tables only; it does not apply to" in result.output


def test_columns_of_another_scale_are_told_of_unless_standardised(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": rng.choice(["a", "b", "c"], 200), "price": rng.normal(100, 30, 200).round(2)})
    frame["small"] = rng.normal(0, 1, 200).round(3)
    frame["y"] = rng.integers(0, 2, 200)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.drop(columns="site").to_csv(tmp_path / "numbers.csv", index=False)
    frame.drop(columns=["site", "price"]).to_csv(tmp_path / "one.csv", index=False)
    said = good("fit", tmp_path / "a.csv", "--alpha", 0.1).stderr
    assert f"column price (standard deviation {frame['price'].std(ddof=0):.3g}) varies far more" in said
    assert "--standardize puts all columns on one scale" in said
    for more in (("a.csv", "--standardize"), ("a.csv", "--quiet"), ("numbers.csv",), ("one.csv",)):
        assert "varies far more" not in good("fit", tmp_path / more[0], "--alpha", 0.1, *more[1:]).stderr
    good("data", "convert", tmp_path / "a.csv", tmp_path / "a.store")
    for more in ((), ("--checkpoint", tmp_path / "tiled")):  # in memory, and a tile at a time
        again = good("fit", tmp_path / "a.store", "--alpha", 0.1, *more).stderr
        assert "\n".join(line for line in said.splitlines() if "varies" in line) in again
    frame["price"] *= 10
    frame.drop(columns="site").to_csv(tmp_path / "numbers.csv", index=False)
    assert "column price" in good("cv", tmp_path / "numbers.csv", "--alphas", 5).stderr
