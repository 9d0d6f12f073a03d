"""The record of iterations keeps what it is given, in memory, in CSV and in Parquet."""

import sys

import numpy as np
import pytest

from blockgreedy.solvers.telemetry import COLUMNS, Telemetry

ROWS = [
    {"selected": [0, 3], "accepted": [7, 2], "steps": [0.1, -1 / 3], "gains": [1e-300, 2.5], "objective": 0.7},
    {"selected": [1], "accepted": [], "steps": [], "gains": [], "spectral_radius": 1.5},
    {"selected": [], "accepted": [], "steps": [], "gains": []},
    {"selected": [2], "accepted": [9], "steps": [np.pi], "gains": [np.nan], "objective": np.inf},
]


@pytest.fixture
def telemetry():
    made = Telemetry()
    for t, row in enumerate(ROWS):
        made.append(t + 1, **row)
    return made


def assert_same(a, b):
    assert len(a) == len(b)
    for name in COLUMNS:
        for one, other in zip(a[name], b[name], strict=True):
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def test_rows_are_what_was_appended(telemetry):
    assert len(telemetry) == 4
    assert [row.selected.tolist() for row in telemetry] == [row["selected"] for row in ROWS]
    assert [row.accepted.tolist() for row in telemetry] == [row["accepted"] for row in ROWS]
    first, second, _, last = telemetry
    assert (first.iteration, first.objective, second.spectral_radius) == (1, 0.7, 1.5)
    assert first.steps.tolist() == [0.1, -1 / 3]
    assert np.isnan(second.objective)
    assert last.objective == np.inf
    assert "4 iterations, 3 accepted" in repr(telemetry)


def test_flat_arrays_make_the_same_rows(telemetry):
    flat = Telemetry()
    flat.extend(
        [1, 2, 3, 4],
        selected=[0, 3, 1, 2],
        selected_counts=[2, 1, 0, 1],
        accepted=np.array([7, 2, 9], dtype=np.int32),
        accepted_counts=[2, 0, 0, 1],
        steps=[0.1, -1 / 3, np.pi],
        gains=[1e-300, 2.5, np.nan],
        objective=[0.7, np.nan, np.nan, np.inf],
        spectral_radius=[np.nan, 1.5, np.nan, np.nan],
    )
    assert_same(flat, telemetry)


def test_csv_and_parquet_give_the_record_back(telemetry, tmp_path):
    telemetry.to_csv(tmp_path / "run.csv")
    assert_same(Telemetry.from_csv(tmp_path / "run.csv"), telemetry)
    pytest.importorskip("pyarrow")
    telemetry.to_parquet(tmp_path / "run.parquet")
    assert_same(Telemetry.from_parquet(tmp_path / "run.parquet"), telemetry)


def test_an_empty_record_goes_to_files_and_back(tmp_path):
    Telemetry().to_csv(tmp_path / "run.csv")
    assert len(Telemetry.from_csv(tmp_path / "run.csv")) == 0
    assert Telemetry()["accepted"] == []
    assert list(Telemetry()) == []


def test_pandas_takes_the_columns(telemetry):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(telemetry.columns())
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 4
    moves = pandas.DataFrame(telemetry.moves())
    assert moves["feature"].tolist() == [7, 2, 9]
    assert moves["iteration"].tolist() == [1, 1, 4]


def test_wrong_lengths_and_names_are_refused(telemetry):
    with pytest.raises(ValueError, match="steps has 1 values, there are 2 entries"):
        telemetry.append(5, selected=[0], accepted=[1, 2], steps=[0.5], gains=[1.0, 1.0])
    assert len(telemetry) == 4  # nothing of it was kept
    with pytest.raises(KeyError, match="'gain' is not a column"):
        telemetry["gain"]


def test_files_that_hold_no_record_are_refused(telemetry, tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("iteration,objective\n")
    with pytest.raises(ValueError, match="is not a telemetry: its first line must be iteration,selected"):
        Telemetry.from_csv(path)
    telemetry.to_csv(path)
    path.write_text(path.read_text().replace("7 2", "7 two"))
    with pytest.raises(ValueError, match="line 2, is no iteration"):
        Telemetry.from_csv(path)


def test_a_file_that_is_no_parquet_is_refused_like_one_that_is_no_csv(telemetry, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "run.parquet"
    for content in ("iteration,selected\n", "", "PAR1 but not for long PAR1"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"run\.parquet is not a telemetry: ") as caught:
            Telemetry.from_parquet(path)
        assert type(caught.value) is ValueError
    with pytest.raises(FileNotFoundError):
        Telemetry.from_parquet(tmp_path / "nowhere.parquet")


def test_parquet_without_pyarrow_says_what_to_install(telemetry, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need pyarrow: pip install 'blockgreedy\[data\]'"):
        telemetry.to_parquet(tmp_path / "run.parquet")
    assert not (tmp_path / "run.parquet").exists()
