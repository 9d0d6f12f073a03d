"""Damaged headers: whatever a changed byte makes a parser do, the error is a sentence that names the file."""

import io
import json
import random
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import blockgreedy as bg
from blockgreedy.base import reading
from blockgreedy.solvers.checkpoint import Checkpoint
from conftest import SANITIZED

HEADERS = {
    "unbalanced": lambda header: header.replace(b"}", b" "),  # tokenize.TokenError
    "indented": lambda header: header.replace(b"{", b"  "),
    "not ended": lambda header: header.replace(b"'", b'"', 1),
    "no number": lambda header: header.replace(b"(", b"(a", 1),
    "petabytes": lambda header: header.replace(b"(", b"(9" + b"9" * 12, 1).replace(b" " * 13, b""),  # MemoryError
    "negative": lambda header: header.replace(b"(", b"(-", 1),
    "binary": lambda header: bytes(255 - byte for byte in header),
    "empty": lambda header: b"",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files with arrays, and what reads each of them."""
    folder = tmp_path_factory.mktemp("made")
    data = bg.data.text_like(150, 250, 8.0)
    problem = bg.Problem(data.X, data.y, loss="logistic", alpha=5e-3)
    bg.Model.of_solution(problem, bg.solve(problem), data).save(folder / "model.npz")
    bg.data.save(data, folder / "data.npz")
    bg.make_partition(data.X, data.y, n_blocks=4).save(folder / "partition.npz")
    Checkpoint(folder / "checkpoint.npz", problem).write(np.array([1, 2]), np.array([0.1, 0.2]), 0.5, 3, 100)

    def convert(path):
        bg.data.convert(path, path.with_suffix(".store"))

    return folder, {
        "model.npz": ["weights", bg.Model.load],
        "data.npz": ["data", bg.load, convert],
        "partition.npz": ["block_of", bg.Partition.load],
        "checkpoint.npz": ["values", lambda path: Checkpoint(path, problem).begin(True)],
    }


@pytest.mark.parametrize("name", ["model.npz", "data.npz", "partition.npz", "checkpoint.npz"])
@pytest.mark.parametrize("how", HEADERS)
def test_a_damaged_header_in_a_sound_archive_is_a_sentence(made, name, how, tmp_path):
    folder, uses = made
    wanted, *readers = uses[name]
    with zipfile.ZipFile(folder / name) as whole, zipfile.ZipFile(tmp_path / name, "w") as broken:
        for member in whole.namelist():
            content = whole.read(member)
            header = HEADERS[how](content[10:128])
            length = len(header).to_bytes(2, "little")
            changed = content[:8] + length + header + content[128:] if member == f"{wanted}.npy" else content
            broken.writestr(member, changed)
    for read in readers:
        with pytest.raises(ValueError, match=name):
            read(tmp_path / name)


def test_random_damage_of_any_file_is_a_sentence(made, tmp_path):
    folder, uses = made
    draw = random.Random(0)
    for k in range(400):
        name, (_, *readers) = draw.choice(list(uses.items()))
        content = bytearray((folder / name).read_bytes())
        for _ in range(draw.randint(1, 3)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        if k % 5 == 0:
            del content[draw.randrange(len(content)) :]
        (tmp_path / name).write_bytes(content)
        try:
            readers[0](tmp_path / name)
        except ValueError as error:
            assert name in str(error)  # noqa: PT017


def test_deeply_nested_json_is_a_sentence(tmp_path):
    (tmp_path / "m.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"m\.json cannot be read as a model: its lists are nested too deeply"):
        bg.Model.load(tmp_path / "m.json")
    assert reading.parsed_json(json.dumps([1])) == [1]


def test_arrays_come_back_as_numpy_wrote_them():
    for values in (np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)[:2]), np.array("text"), np.zeros((0, 3))):
        file = io.BytesIO()
        np.save(file, values)
        file.seek(0)
        found = reading.read_array(file, len(file.getvalue()))
        np.testing.assert_array_equal(found, values)
        assert found.dtype == values.dtype


@pytest.mark.skipif(SANITIZED != "", reason="sanitizers take all addresses there are")
def test_a_lack_of_memory_of_the_core_is_said_in_words():
    code = """
        import resource, numpy as np
        from blockgreedy import _core
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (4096 * pages + (1 << 28),) * 2)
        _core.Rows(1, 2**29, np.array([0, 1], np.int32), np.array([0], np.int32), np.array([1.0]), 1)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "MemoryError: not enough memory for the arrays of this step" in done.stderr


@pytest.mark.parametrize("name", ["a.feather", "a.parquet"])
def test_notes_of_pandas_that_cannot_be_read_are_damage_to_the_file(tmp_path, name):
    table = pa.table({"a": [1.0, 2.0], "y": [0.0, 1.0]}).replace_schema_metadata({"pandas": "{not JSON"})
    if name.endswith(".feather"):
        pa.feather.write_feather(table, tmp_path / name)
    else:
        pa.parquet.write_table(table, tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} cannot be read as"):
        bg.load(tmp_path / name, target="y")


@pytest.mark.parametrize("do", [bg.load, lambda path, **options: bg.data.convert(path, f"{path}.store", **options)])
def test_column_names_that_are_no_utf8_are_said_with_the_file(tmp_path, do):
    path = tmp_path / "latin.csv"
    path.write_bytes("hôtel,y\n1,0\n2,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.csv cannot be read as csv: 'utf-8' codec can't decode"):
        do(path, target="y")
