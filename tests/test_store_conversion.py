"""Conversions to stores: from every kind of source, in several runs, killed and resumed, within their memory."""

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import blockgreedy as bg
import blockgreedy.data.conversion as conversion
import blockgreedy.data.svmlight_batches as svmlight_batches
from blockgreedy.data import Store, convert

SUFFIXES = [".svm", ".svm.gz", ".svm.bz2", ".svm.xz", ".svm.zst"]


@pytest.fixture
def small(monkeypatch):
    """Memory is counted from 0, so that little data makes many batches and runs."""
    monkeypatch.setattr(conversion, "_PROGRAM", 0)
    monkeypatch.setattr(conversion, "_LEAST", 0)
    monkeypatch.setattr(svmlight_batches, "_LEAST", 500)


@pytest.fixture(scope="module")
def dataset():
    made = bg.data.text_like(900, 400, 10.0, seed=5)
    return bg.Dataset(made.X.astype(np.float64), made.y)


def assert_same(store, loaded):
    store.check()
    found = store.dataset()
    assert found.X.shape == loaded.X.shape
    assert abs(found.X - sparse.csc_array(loaded.X)).max() == 0
    assert np.array_equal(found.y, loaded.y)
    assert found.y.dtype == loaded.y.dtype
    assert found.index_base == loaded.index_base
    assert {file.name for file in store.path.iterdir()} == {*store._files, "meta.json"}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("grid", [(None, None), (4, 3)])
def test_text_becomes_what_load_reads(small, dataset, suffix, grid, tmp_path):
    bg.data.write(dataset, tmp_path / f"a{suffix}")
    store = convert(
        tmp_path / f"a{suffix}", tmp_path / "a.store", memory=60_000, row_groups=grid[0], column_groups=grid[1]
    )
    assert grid[0] is not None or store.grid[0] > 3
    assert_same(store, bg.load(tmp_path / f"a{suffix}"))


@pytest.mark.parametrize("memory", [40_000, 100_000, 2_000_000])
def test_an_index_0_moves_the_columns_of_earlier_runs(small, dataset, memory, tmp_path):
    X = dataset.X.tolil()
    X[:800, 0] = 0
    X[850, 0] = 2.5
    bg.data.write(bg.Dataset(X.tocsr(), dataset.y), tmp_path / "a.svm", index_base=0)
    assert_same(convert(tmp_path / "a.svm", tmp_path / "a.store", memory=memory), bg.load(tmp_path / "a.svm"))


def test_several_files_are_one_store(small, dataset, tmp_path):
    halves = [bg.Dataset(dataset.X[:400], dataset.y[:400]), bg.Dataset(dataset.X[400:, :350], dataset.y[400:])]
    bg.data.write(halves[0], tmp_path / "part-0.svm")
    bg.data.write(halves[1], tmp_path / "part-1.svm.gz")
    whole = convert([tmp_path / "part-0.svm", tmp_path / "part-1.svm.gz"], tmp_path / "a.store", memory=60_000)
    pattern = convert(str(tmp_path / "part-*"), tmp_path / "b.store", memory=60_000, n_features=400)
    wide = sparse.csr_array(halves[1].X)
    wide.resize(500, 400)
    expected = sparse.vstack([halves[0].X, wide]).toarray()
    width = whole.shape[1]
    assert np.array_equal(whole.dataset().X.toarray(), expected[:, :width])
    assert not expected[:, width:].any()
    assert np.array_equal(pattern.dataset().X.toarray(), expected)


def test_stored_zeros_are_left_out(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:0 3:2\n-1 2:0\n")
    store = convert(tmp_path / "a.svm", tmp_path / "a.store")
    assert store.n_entries == 1
    assert store.dataset().X.toarray().tolist() == [[0, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("compressed", [False, True])
def test_npz_files_become_what_load_reads(small, dataset, format, compressed, tmp_path):
    names = np.array([f"w{j}" for j in range(400)])
    given = bg.Dataset(dataset.X.asformat(format).astype(np.float32), dataset.y, names)
    bg.save(given, tmp_path / "a.npz", compressed=compressed)
    store = convert(tmp_path / "a.npz", tmp_path / "a.store", memory=100_000)
    assert store.grid[0] > 1
    assert_same(store, bg.load(tmp_path / "a.npz"))
    assert np.array_equal(store.feature_names, names)


def test_a_store_becomes_one_with_another_grid(dataset, tmp_path):
    one = convert(dataset, tmp_path / "a.store", row_groups=3)
    other = convert(one.path, tmp_path / "b.store", column_groups=4)
    assert other.grid == (1, 4)
    assert_same(other, dataset)


def test_lines_longer_than_a_block_are_read(small, tmp_path):
    long = " ".join(f"{j}:1" for j in range(1, 400))
    (tmp_path / "a.svm").write_text(f"1 {long}\n-1 3:1\n" * 5)
    assert_same(convert(tmp_path / "a.svm", tmp_path / "a.store", memory=100_000), bg.load(tmp_path / "a.svm"))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_archives_of_much_repeated_text_fit_in_memory(suffix, tmp_path):
    opener = gzip.compress if suffix == ".gz" else pytest.importorskip("zstandard").compress
    (tmp_path / f"a.svm{suffix}").write_bytes(opener(b"1 1:1 2:1\n" * 6_000_000))
    options = ["160M", {}]
    peak, _ = map(int, run_script(MEMORY, tmp_path / f"a.svm{suffix}", tmp_path / "a.store", *options).split())
    assert peak <= 160 << 20


def test_dense_arrays_become_stores(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.arange(4.0))
    store = convert(tmp_path / "X.npy", tmp_path / "a.store", target=tmp_path / "y.npy", row_groups=2)
    assert np.array_equal(store.dataset().X.toarray(), X)
    assert np.array_equal(store.y, np.arange(4))


def test_results_do_not_depend_on_the_threads(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    for threads in (1, 3):
        convert(tmp_path / "a.svm", tmp_path / f"{threads}.store", memory=60_000, n_threads=threads, column_groups=2)
    assert contents(tmp_path / "1.store") == contents(tmp_path / "3.store")


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# ------------------------------------------------------------------------------------------------- resumed


def run_script(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def killed_everywhere(source, folder, options):
    """How many writes there were at most, at which the conversion was killed and resumed."""
    script = Path(__file__).parent / "killed_conversion.py"
    command = [sys.executable, script, source, folder, repr(options)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("options", [{"memory": 60_000}, {"memory": 60_000, "row_groups": 2, "column_groups": 2}])
def test_a_conversion_killed_at_any_write_and_resumed_gives_the_same_bytes(dataset, options, tmp_path):
    bg.data.write(bg.Dataset(dataset.X[:300], dataset.y[:300]), tmp_path / "a.svm.gz")
    assert killed_everywhere(tmp_path / "a.svm.gz", tmp_path, options) > 20


def test_finished_runs_are_not_read_again(small, dataset, tmp_path, monkeypatch):
    bg.data.write(dataset, tmp_path / "a.svm")
    seen = []

    def stop_after_rows(what, done, total):
        seen.append((what, done))
        if what == "rows" and done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, progress=stop_after_rows)
    with pytest.raises(ValueError, match="not complete"):
        Store(tmp_path / "a.store")
    first = []
    convert(
        tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, progress=lambda what, done, total: first.append(done)
    )
    assert first[0] > seen[0][1] * 5
    assert_same(Store(tmp_path / "a.store"), bg.load(tmp_path / "a.svm"))


def test_a_finished_store_is_not_made_again_and_not_replaced(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000)
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "a.store").iterdir()}
    convert(tmp_path / "a.svm", tmp_path / "a.store", memory="1M")
    assert before == {file.name: file.stat().st_mtime_ns for file in (tmp_path / "a.store").iterdir()}
    with pytest.raises(FileExistsError, match="a store of other data, or made with other options; delete it"):
        convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, row_groups=2)


def test_an_unfinished_store_of_something_else_is_refused(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")

    def stop(what, done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, progress=stop)
    with pytest.raises(FileExistsError, match="unfinished conversion of other files, or with other options: dtype"):
        convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, dtype="float32")
    (tmp_path / "b.store").mkdir()
    (tmp_path / "b.store" / "mine.txt").write_text("x")
    with pytest.raises(FileExistsError, match="holds other files; choose another name"):
        convert(tmp_path / "a.svm", tmp_path / "b.store", memory=60_000)


def test_one_process_at_a_time(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    refused = []

    def again(what, done, total):
        if not refused:
            with pytest.raises(FileExistsError, match="another process is converting"):
                convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000)
            refused.append(what)

    convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, progress=again)
    assert refused


# ----------------------------------------------------------------------------------------------- what is wrong


def test_a_full_disk_says_so_and_the_conversion_goes_on_later(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    script = """
        import resource, signal, sys
        import blockgreedy.data.conversion as conversion
        import blockgreedy.data.svmlight_batches as svmlight_batches
        from blockgreedy.data import convert

        conversion._PROGRAM = conversion._LEAST = 0
        svmlight_batches._LEAST = 500
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, resource.RLIM_INFINITY))  # the write fails, as on a disk
        try:
            convert(sys.argv[1], sys.argv[2], memory=60_000, row_groups=1)
        except OSError as error:
            print(error)
    """
    said = run_script(script, tmp_path / "a.svm", tmp_path / "a.store")
    assert "900 rows are kept in" in said
    assert "the same conversion goes on from there" in said
    assert "tile-0000-0000" in said
    assert_same(
        convert(tmp_path / "a.svm", tmp_path / "a.store", memory=60_000, row_groups=1), bg.load(tmp_path / "a.svm")
    )


def test_bad_text_names_file_and_line_and_what_was_read_is_kept(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    lines = (tmp_path / "a.svm").read_text().splitlines(keepends=True)
    (tmp_path / "b.svm").write_text("".join([*lines[:700], "1 1:0.5 2:oops\n", *lines[700:]]))
    with pytest.raises(ValueError, match=r"b.svm, line 701, column 11: expected .*, found 'oops'"):
        convert(tmp_path / "b.svm", tmp_path / "b.store", memory=60_000)
    assert (tmp_path / "b.store" / "run-00002.data.npy").exists()


def test_a_file_that_was_not_read_yet_may_be_corrected(small, dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "0.svm")
    (tmp_path / "1.svm").write_text("1 1:0.5\n-1 1:oops\n")
    files = [tmp_path / "0.svm", tmp_path / "1.svm"]
    with pytest.raises(ValueError, match=r"1.svm, line 2"):
        convert(files, tmp_path / "a.store", memory=60_000)
    (tmp_path / "1.svm").write_text("1 1:0.5\n-1 1:7\n")
    first = []
    store = convert(files, tmp_path / "a.store", memory=60_000, progress=lambda *seen: first.append(seen[1:]))
    assert first[0][0] > first[0][1] / 2
    assert store.shape[0] == 902
    (tmp_path / "b.svm").write_text("1 1:oops\n")
    for text, wrong in (("1 1:oops\n", True), ("1 1:5\n", False)):
        (tmp_path / "b.svm").write_text(text)
        if wrong:
            with pytest.raises(ValueError, match=r"b.svm, line 1"):
                convert(tmp_path / "b.svm", tmp_path / "b.store")
        else:
            assert convert(tmp_path / "b.svm", tmp_path / "b.store").shape == (1, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 1:nan\n", "a.svm, line 1, column 5: expected a value, which is a number, found 'nan'"),
        ("1 1:1\n1 1:1e39\n", "a.svm, line 2, column 5: expected a number within the range of float32, found '1e39'"),
        ("inf 1:1\n", "a.svm, line 1, column 1: expected a label, which is a number, found 'inf'"),
        ("1 1:1\n1 2:3", "does not end in a newline"),
        ("", "holds no rows"),
        ("1 7:1\n", "a feature with index 7 after line 0, which is more than n_features=5 allows"),
    ],
)
def test_values_that_cannot_be_used_are_named(text, said, tmp_path):
    (tmp_path / "a.svm").write_text(text)
    with pytest.raises(ValueError, match=said):
        convert(tmp_path / "a.svm", tmp_path / "a.store", dtype="float32", n_features=5)


def test_a_truncated_archive_is_named(dataset, tmp_path):
    bg.data.write(dataset, tmp_path / "a.svm")
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress((tmp_path / "a.svm").read_bytes())[:-500])
    with pytest.raises(ValueError, match=r"b.svm.gz is truncated"):
        convert(tmp_path / "b.svm.gz", tmp_path / "b.store")


def test_arguments_are_checked(dataset, tmp_path):
    def refused(match, source=dataset, path="a.store", kind=ValueError, **options):
        with pytest.raises(kind, match=match):
            convert(source, tmp_path / path, **options)

    bg.data.write(dataset, tmp_path / "a.svm")
    bg.save(dataset, tmp_path / "a.npz")
    blocks = bg.make_partition(dataset.X, n_blocks=4, kind="random", seed=0)
    refused("path must end in .store", path="a.folder")
    refused("must lie in an existing folder", path="none/a.store", kind=FileNotFoundError)
    refused("memory='lots' must be a number of bytes, or text such as 500M", memory="lots")
    refused("memory='20M' is too little; at least 144 MB are needed", memory="20M")
    refused("row_groups=0 must be a whole number of at least 1", row_groups=0)
    refused("row_groups=901 must be a whole number from 1 to 900", row_groups=901)
    refused("column_groups=500 must be a whole number from 1 to 400", path="b.store", column_groups=500)
    refused("cannot be combined with partition", partition=blocks, column_groups=3)
    refused("must be a Partition", partition=3, kind=TypeError)
    refused("partition has 3 features", path="c.store", partition=bg.Partition([0, 1, 2], 3))
    refused("sample_weight must be finite and not negative", path="d.store", sample_weight=-np.ones(900))
    refused(r"offset has shape \(3,\), expected \(900,\)", path="e.store", offset=np.ones(3))
    refused("dtype", dtype="int8")
    refused("is for files only", index_base=1)
    refused("there is no file", tmp_path / "none.svm", kind=FileNotFoundError)
    refused("no file matches", str(tmp_path / "none-*.svm"), kind=FileNotFoundError)
    refused("must be of one kind", [tmp_path / "a.svm", tmp_path / "a.npz"])
    refused("several files of .npz cannot become one store", [tmp_path / "a.npz", tmp_path / "a.npz"])
    refused("names no files", [])
    refused("'index' is no option of convert; accepted are target", kind=TypeError, index=1)
    refused("source must be a file", 3, kind=TypeError)
    refused("target='y' is for", tmp_path / "a.svm", target="y")


MEMORY = """
    import sys
    from pathlib import Path
    from blockgreedy.data import convert
    store = convert(sys.argv[1], sys.argv[2], memory=sys.argv[3], **eval(sys.argv[4]))
    facts = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    print(int(facts["VmHWM"].split()[0]) * 1024, store.nbytes)  # ru_maxrss counts what the parent held too
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is in /proc")
@pytest.mark.parametrize("options", [{}, {"row_groups": 1, "column_groups": 2}])
def test_memory_stays_within_what_is_allowed(options, tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        b"1 " + b" ".join(b"%d:1" % j for j in np.unique(rng.integers(1, 300_000, 60))) + b"\n" for _ in range(2000)
    ]
    block = b"".join(lines)
    with (tmp_path / "a.svm").open("wb") as file:
        for _ in range(200):
            file.write(block)
    peak, size = map(int, run_script(MEMORY, tmp_path / "a.svm", tmp_path / "a.store", "160M", options).split())
    assert size > 280 << 20
    assert peak <= 160 << 20


@pytest.mark.parametrize("text", ["1 2:1\n-1 1:3 7:0\n", "1 3:-0\n-1 0:2\n", "1 5:0\n"])
def test_a_feature_that_is_named_with_the_value_0_alone_is_one(text, tmp_path):
    (tmp_path / "a.svm").write_text(text)
    loaded = bg.load(tmp_path / "a.svm")
    store = convert(tmp_path / "a.svm", tmp_path / "a.store")
    assert store.shape == loaded.X.shape
    assert (store.dataset().X != loaded.X).nnz == 0


def test_tables_that_load_refuses_or_that_have_no_features_are_refused(tmp_path):
    (tmp_path / "dates.csv").write_text("y,a\n2024-01-02,1\n2024-01-03,2\n")
    for read in (bg.load, lambda path: convert(path, tmp_path / "dates.store")):
        with pytest.raises(ValueError, match=r"column 'y': labels must be numbers or text, got date32"):
            read(tmp_path / "dates.csv")
    (tmp_path / "rare.csv").write_text("y,a\n0,u\n1,v\n")
    with pytest.raises(ValueError, match="rare has no features; a store needs one at least"):
        convert(tmp_path / "rare.csv", tmp_path / "rare.store", min_count=2)


def test_a_file_in_the_place_of_the_store_is_named(dataset, tmp_path):
    (tmp_path / "a.store").write_text("")
    with pytest.raises(FileExistsError, match=r"a\.store' is a file, and a store is a folder; choose another name"):
        convert(dataset, tmp_path / "a.store")
