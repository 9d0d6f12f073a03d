"""``blockgreedy predict``: a saved model on other data."""

import csv
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from scipy import sparse

from blockgreedy.base.files import replacing, replacing_text
from blockgreedy.base.names import CRITERIA
from blockgreedy.cli.asked import DataOptions
from blockgreedy.cli.outputs import Output, Outputs
from blockgreedy.cli.scores import score_facts, show_scores
from blockgreedy.cli.shell import Results, app, end_stdout, fail, failures, option, takes
from blockgreedy.cli.texts import FAILED, THREADS, WRONG_USE
from blockgreedy.data import Dataset
from blockgreedy.data.dataset import label_text
from blockgreedy.data.formats import STORE, SVMLIGHT, TABLES, data_file
from blockgreedy.data.loading import check_options
from blockgreedy.data.store import Store
from blockgreedy.models.model import Model
from blockgreedy.models.quality import measure

_of_prediction, _of_output = partial(option, "Prediction"), partial(option, "Output")
_MODEL = typer.Argument(metavar="MODEL", help="Model file that fit, path or cv saved with --model.")
_OUT = typer.Option("--out", "-o", help="Write to this .csv or .parquet file; default: CSV to stdout.",
                    rich_help_panel="Output")  # fmt: skip

What = Literal["labels", "probabilities", "decision"]


@dataclass(frozen=True)
class _OfModel:
    model: Annotated[Path, _MODEL]


@dataclass(frozen=True)
class PredictOptions(DataOptions, _OfModel):
    """What ``blockgreedy predict`` accepts; the model comes before the data."""

    what: What = _of_prediction(
        "labels",
        "--what",
        "What to predict: labels (classes, or the predicted numbers of a regression), probabilities, or decision "
        "values, X·w + intercept.",
        choices=What,
    )
    alpha: str | None = _of_prediction(
        None,
        "--alpha",
        "If the model is a path: the alpha to use. A number takes the nearest alpha of the path; aic, bic or ebic "
        "takes the alpha with the lowest value of that criterion.",
    )
    score: bool = _of_prediction(
        False,
        "--score",
        "Score the predictions against the labels in DATA. Prints the scores; predictions are written only with "
        "--out.",
    )
    out: Annotated[Path | None, _OUT] = None
    as_json: bool = _of_output(False, "--json", "With --score: the scores as one JSON object.")
    n_threads: int | None = _of_output(None, "--threads", THREADS)


@app.command()
@takes(PredictOptions)
def predict(options: PredictOptions) -> None:
    """Predict with a saved model: labels, probabilities or decision values, one line per row of DATA.

    DATA is read in the same way as the data the model was fitted on: svmlight files with the same first index, tables
    with the same columns, categories and fill values (unseen categories are encoded as all zeros). --score compares
    the predictions with the labels in DATA and prints the scores next to those of a constant prediction. A store is
    read a tile at a time, and may be larger than memory.

    Exit codes: 0 done, 2 wrong use, 1 any other error.

    \b
    [bold]Examples[/]
    [cyan]blockgreedy predict model.npz new.svm --what probabilities --out predictions.csv[/]
    [cyan]blockgreedy predict path.npz test.parquet --alpha bic --out predictions.parquet[/]
    [cyan]blockgreedy predict model.npz test.svm --score[/]
    """
    outputs = Outputs(
        [("the model", options.model), *options.inputs(options.data)],
        Output("--out", options.out, "the predictions", (".csv", ".parquet")),
        *options.caches(options.data),
    )
    alpha = _alpha(options.alpha)
    with failures("interrupted; not all predictions were written") as stage:
        model = Model.load(options.model)
        stage.code = WRONG_USE
        model = _chosen(model, alpha)
        if options.what == "probabilities" and model.loss != "logistic":
            raise ValueError(f"--what probabilities needs a logistic model; this one has loss {model.loss}")
        check_options(options.data, **options.of_tables(), encoding=model.encoding)
        stage.code = FAILED
        dataset = _read(options, model)
        if options.score and not dataset.labelled:
            raise ValueError(f"--score needs labels, and {options.data} has none; name them with --target")
        decision = _decision(model, dataset.X)
        columns = _columns(model, decision, options.what)
        outputs.write("out", lambda path: _write(path, columns))
        quality = None
        if options.score:
            quality = measure(model.loss, model.classes, decision, dataset.y, rows=str(options.data))
        elif options.out is None:
            _print(columns)
    if quality is not None and options.as_json:
        typer.echo(json.dumps(score_facts(quality)))
    elif quality is not None:
        show_scores(Results(), quality, model.classes)
    for path in outputs.written.values():
        _say(f"{len(decision):,} predictions in {path}")
    raise typer.Exit(outputs.code)


def _chosen(model: Model, alpha: float | str | None) -> Model:
    """One of the models of a path."""
    if isinstance(alpha, str):
        chosen = model.at(alpha)
        _say(f"alpha {chosen.alphas[0]:.6g} (lowest {alpha.upper()}): {chosen.nonzeros[0]:,} nonzero weights")
        return chosen
    if alpha is not None:
        nearest = model.at(alpha)
        if abs(nearest.alphas[0] / alpha - 1) > 0.01:
            typer.secho(
                f"Warning: the path has no alpha {alpha:g}; the nearest, {nearest.alphas[0]:.6g}, is used",
                err=True,
                fg="yellow",
            )
        return nearest
    if len(model) > 1:
        lowest, highest = model.alphas.min(), model.alphas.max()
        several = f"the model has {len(model)} alphas, {lowest:.3g} to {highest:.3g}"
        names = f", or {', '.join(model.criteria)}" if model.criteria is not None else ""
        raise ValueError(f"{several}: choose one with --alpha (a number{names})")
    return model


def _alpha(text: str | None) -> float | str | None:
    """A number or the name of a criterion; anything else ends the command."""
    if text is None or text.lower() in CRITERIA:
        return None if text is None else text.lower()
    try:
        alpha = float(text)
    except ValueError:
        alpha = float("nan")
    if not 0 < alpha < float("inf"):
        fail(f"--alpha {text} is neither a number above 0 nor one of {', '.join(CRITERIA)}", WRONG_USE)
    return alpha


def _say(text: str) -> None:
    Console(stderr=True, markup=False, highlight=False).print(text)


def _read(options: PredictOptions, model: Model) -> Dataset:
    """As the model's own data were read, in the model's columns."""
    asked: dict[str, Any] = {"labelled": options.score, "encoding": model.encoding, "n_threads": options.n_threads}
    format = data_file(options.data).format
    if format is STORE:
        return _read_store(options, model)
    if options.target is None and model.encoding is not None and format is TABLES:
        asked["target"] = model.settings.get("target")
    if model.index_base is not None and options.index_base == "auto" and format is SVMLIGHT:
        asked["index_base"] = model.index_base
    dataset = options.read(**asked)
    _check_features(options, model, dataset)
    given, wanted = dataset.X.shape[1], model.n_features
    if given == wanted:
        return dataset
    if given > wanted:
        return Dataset(dataset.X[:, :wanted], dataset.y, labelled=dataset.labelled)
    X = sparse.csr_array(dataset.X)
    wider = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], wanted))
    return Dataset(wider, dataset.y, labelled=dataset.labelled)


def _check_features(options: PredictOptions, model: Model, data: Dataset | Store) -> None:
    """The model's own, or of svmlight text more or fewer of them."""
    names, known = data.feature_names, model.feature_names
    if names is not None and known is not None and len(names) == len(known) and np.any(names != known):
        first = int(np.flatnonzero(names != known)[0])
        raise ValueError(
            f"{options.data} has different features from the model: column {first + 1} is {str(names[first])!r}, "
            f"the model's is {str(known[first])!r}"
        )
    given, wanted = (data if isinstance(data, Store) else data.X).shape[1], model.n_features
    if given != wanted and (model.index_base is None or data.index_base is None):
        raise ValueError(f"{options.data} has {given:,} columns, but the model has {wanted:,} features")
    if given > wanted:  # features that no row of the model's own data had
        left_out = f"{given - wanted:,} features beyond the model's {wanted:,} have no weight and are left out"
        typer.secho(f"Warning: {left_out}", err=True, fg="yellow")


def _read_store(options: PredictOptions, model: Model) -> Dataset:
    """The store itself in place of a matrix: it may be larger than memory."""
    store = Store(options.data)
    if store.index_base is not None and model.index_base is not None and store.index_base != model.index_base:
        raise ValueError(
            f"{options.data} was made of text that counts features from {store.index_base}, and the model's counts "
            f"from {model.index_base}; convert it with --index-base {model.index_base}"
        )
    _check_features(options, model, store)
    return Dataset(store, store.labels, labelled=store.labelled)


def _decision(model: Model, X: Any) -> NDArray[np.float64]:
    if isinstance(X, Store) and X.shape[1] != model.n_features:
        weights, common = np.zeros(X.shape[1]), min(X.shape[1], model.n_features)
        weights[:common] = model.coef[:common]
        return X.combine(weights) + model.intercept
    return model.decision(X)


def _columns(model: Model, decision: NDArray[np.float64], what: str) -> dict[str, NDArray[Any]]:
    if what == "decision" or (what == "labels" and model.classes is None):
        return {"decision" if what == "decision" else "prediction": decision}
    if what == "labels":
        return {"prediction": model.labels_of(decision)}
    assert model.classes is not None
    probabilities = model.probabilities_of(decision)
    return {f"p({label_text(label)})": probabilities[:, k] for k, label in enumerate(model.classes.tolist())}


def _write(out: Path, columns: dict[str, NDArray[Any]]) -> None:
    if out.suffix.lower() == ".csv":
        with replacing_text(out) as text:
            _write_csv(text, columns)
        return
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ModuleNotFoundError:
        fail("--out .parquet needs the package pyarrow: pip install 'blockgreedy[data]'", FAILED)
    with replacing(out) as file:
        pa.parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file)


def _print(columns: dict[str, NDArray[Any]]) -> None:
    try:
        _write_csv(sys.stdout, columns)
        sys.stdout.flush()
    except BrokenPipeError:  # `predict … | head` has seen enough
        end_stdout()
    except OSError as error:
        end_stdout()
        fail(f"the predictions cannot be written: {error.strerror}", FAILED)


def _write_csv(file: TextIO, columns: dict[str, NDArray[Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
