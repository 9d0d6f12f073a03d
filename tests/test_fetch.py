"""Public sets, from a server of our own: resumed, checked, kept. Nothing here leaves the machine."""

from __future__ import annotations

import bz2
import hashlib
import json
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.cli import app
from blockgreedy.data import collection, download
from blockgreedy.data.collection import SETS, PublicSet

TEXT = b"".join(b"%d 1:0.5 %d:%d\n" % ((-1) ** row, 2 + row % 7, row) for row in range(1, 20_001))
PACKED = bz2.compress(TEXT)


class Server(ThreadingHTTPServer):
    """Files by path; ``behave`` changes how: what it does is told, request by request, in ``asked``."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.behaviour = {}, [], {}
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def do_GET(self):
        does, body = self.server.behaviour, self.server.files.get(self.path)
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        failures = does.get("failures", [])
        if failures:
            self.send_error(failures.pop(0))
            return
        if body is None:
            self.send_error(404, "Not Found")
            return
        etag = f'"{hashlib.sha256(body).hexdigest()[:8]}"'
        start = 0
        same = self.headers.get("If-Range") in (None, etag)
        if wanted and same and not does.get("ignores_range"):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        if not does.get("no_length"):
            self.send_header("Content-Length", str(len(body) - start))
        if does.get("etag", True):
            self.send_header("ETag", etag)
        self.end_headers()
        breaks = does.get("breaks", [])
        end = start + breaks.pop(0) if breaks else len(body)
        self.wfile.write(body[start:end])


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BLOCKGREEDY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def small(server, cache, monkeypatch):
    """A set on our server, without a published checksum."""
    return publish(server, monkeypatch, "small", "small.bz2", PACKED, 20_000, 8, 40_000)


def publish(server, monkeypatch, name, file, body, *facts, checksum=None):
    server.files[f"/binary/{file}"] = body
    entry = PublicSet(name, f"{server.url}/binary/{file}", *facts, checksum=checksum)
    monkeypatch.setitem(SETS, name, entry)
    return entry


def left_in(cache):
    return sorted(path.name for path in cache.iterdir())


def test_a_set_is_downloaded_once_and_load_reads_it(server, cache, small):
    path = bg.data.fetch("small")
    assert path == cache / "small.svm.bz2"
    assert path.read_bytes() == PACKED
    data = bg.load(path)
    assert data.X.shape == (20_000, 8)
    assert (data.X[:, 0].toarray() == 0.5).all()
    assert data.y[:4].tolist() == [-1, 1, -1, 1]
    assert bg.data.fetch("small") == path
    assert server.asked == [None]  # one request, without a range
    assert left_in(cache) == ["small.svm.bz2", "small.svm.bz2.json"]


def test_the_note_has_the_checksum_and_the_counts(cache, small):
    path = bg.data.fetch("small")
    note = json.loads((cache / "small.svm.bz2.json").read_text())
    assert note["sha256"] == f"sha256:{hashlib.sha256(PACKED).hexdigest()}"
    assert (note["url"], note["bytes"]) == (small.url, len(PACKED))
    data = bg.load(path)
    assert (note["n_samples"], note["n_features"], note["nonzeros_X"]) == (*data.X.shape, data.X.nnz)


def test_what_breaks_off_goes_on_where_it_was(server, cache, small):
    third = len(PACKED) // 3
    server.behaviour["breaks"] = [third, third]
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert server.asked == [None, f"bytes={third}-", f"bytes={2 * third}-"]
    assert left_in(cache) == ["small.svm.bz2", "small.svm.bz2.json"]


def test_a_download_is_resumed_by_the_next_call(server, cache, small, monkeypatch):
    monkeypatch.setattr(download, "_ATTEMPTS", 1)
    server.behaviour["breaks"] = [1000]
    with pytest.raises(
        OSError, match=r"broke off 1 times in a row \(1,000 of .* bytes were received\); 1,000 bytes are kept"
    ):
        bg.data.fetch("small")
    assert (cache / "small.svm.bz2.part").stat().st_size == 1000
    assert not (cache / "small.svm.bz2").exists()
    server.asked.clear()
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert server.asked == ["bytes=1000-"]


def test_attempts_without_a_new_byte_come_to_an_end(server, cache, small):
    server.behaviour["breaks"] = [1000] + [0] * 50
    with pytest.raises(OSError, match="broke off 5 times in a row"):
        bg.data.fetch("small")
    assert len(server.asked) == 5


@pytest.mark.parametrize("etag", [True, False])
def test_a_server_that_ignores_ranges_sends_it_all_again(server, cache, small, etag):
    server.behaviour |= {"breaks": [1000], "ignores_range": True, "etag": etag}
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert server.asked == [None, "bytes=1000-"]


def test_a_part_of_an_older_version_is_not_continued(server, cache, small, monkeypatch):
    monkeypatch.setattr(download, "_ATTEMPTS", 1)
    server.behaviour["breaks"] = [1000]
    with pytest.raises(OSError, match="broke off"):
        bg.data.fetch("small")
    newer = bz2.compress(TEXT.replace(b"0.5", b"2.5"))
    server.files["/binary/small.bz2"] = newer
    assert bg.data.fetch("small").read_bytes() == newer


def test_a_part_that_is_complete_already_is_taken(server, cache, small):
    cache.mkdir()
    (cache / "small.svm.bz2.part").write_bytes(PACKED)
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert server.asked == [f"bytes={len(PACKED)}-"]


def test_a_part_that_is_too_long_is_thrown_away(server, cache, small):
    cache.mkdir()
    (cache / "small.svm.bz2.part").write_bytes(PACKED + b"more")
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert server.asked[-1] is None


def test_a_server_that_does_not_tell_the_length_is_believed(server, cache, small):
    server.behaviour["no_length"] = True
    assert bg.data.fetch("small").read_bytes() == PACKED


def test_a_busy_server_is_asked_again(server, cache, small):
    server.behaviour["failures"] = [503, 429, 500]
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert len(server.asked) == 4


def test_a_missing_file_is_an_error_at_once(server, cache, small):
    server.files.clear()
    with pytest.raises(OSError, match=r"small\.bz2 cannot be fetched: the server answers 404 Not Found"):
        bg.data.fetch("small")
    assert len(server.asked) == 1
    assert left_in(cache) == []


def test_no_server_is_an_error_that_names_the_address(server, cache, monkeypatch):
    publish(server, monkeypatch, "gone", "gone", b"1 1:1\n", 1, 1)
    monkeypatch.setitem(SETS, "gone", PublicSet("gone", "http://127.0.0.1:9/binary/gone", 1, 1))
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:9/binary/gone broke off .*refused.*nothing was received"):
        bg.data.fetch("gone")


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_published_checksum_is_compared(server, cache, monkeypatch, algorithm):
    right = f"{algorithm}:{hashlib.new(algorithm, PACKED).hexdigest()}"
    wrong = f"{algorithm}:{hashlib.new(algorithm, TEXT).hexdigest()}"
    publish(server, monkeypatch, "right", "right.bz2", PACKED, 20_000, 8, checksum=right)
    publish(server, monkeypatch, "wrong", "wrong.bz2", PACKED, 20_000, 8, checksum=wrong)
    assert bg.data.fetch("right").read_bytes() == PACKED
    with pytest.raises(
        ValueError, match=rf"does not have the checksum {wrong} \(the published one\), so it was not kept"
    ):
        bg.data.fetch("wrong")
    assert left_in(cache) == ["right.svm.bz2", "right.svm.bz2.json"]  # nothing that a next call could go on with


def test_a_file_that_has_changed_on_disk_is_downloaded_again(server, cache, small):
    path = bg.data.fetch("small")
    broken = bytearray(PACKED)
    broken[len(broken) // 2] ^= 1
    path.write_bytes(broken)
    assert bg.data.fetch("small").read_bytes() == PACKED
    assert len(server.asked) == 2


def test_another_file_than_the_first_download_is_refused(server, cache, small):
    path = bg.data.fetch("small")
    path.unlink()
    server.files["/binary/small.bz2"] = bz2.compress(b"1 1:1\n")
    with pytest.raises(
        ValueError, match=r"does not have the checksum sha256:.* \(that of the first download\), so it was not kept"
    ):
        bg.data.fetch("small")
    assert not path.exists()


@pytest.mark.parametrize("note", ["", "[]", "{", '{"url": "x"}'])
def test_a_broken_note_is_written_anew(server, cache, small, note):
    bg.data.fetch("small")
    place = cache / "small.svm.bz2.json"
    right = place.read_text()
    place.write_text(note)
    bg.data.fetch("small")
    assert place.read_text() == right
    assert len(server.asked) == 1


def test_other_numbers_than_the_published_ones_are_told_once(server, cache, monkeypatch):
    publish(server, monkeypatch, "odd", "odd.bz2", PACKED, 20_001, 7, 40_002)
    with pytest.warns(UserWarning, match="odd differs from the published description") as told:
        bg.data.fetch("odd")
    assert [str(warning.message).split(": ")[1] for warning in told] == [
        "20,000 rows, not 20,001",
        "8 features, not 7",
        "40,000 nonzeros, not 40,002",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bg.data.fetch("odd")


def test_counts_are_those_of_another_reader(tmp_path, rng):
    X = rng.random((300, 50)) * (rng.random((300, 50)) < 0.1)
    X[:, -1] = 0
    dump_svmlight_file(X, rng.integers(0, 2, 300), str(tmp_path / "a.svm"), zero_based=False)
    from blockgreedy.data.fetching import count

    found = count(tmp_path / "a.svm")
    assert found == {
        "n_samples": 300,
        "n_features": int(np.flatnonzero(X.any(axis=0)).max()) + 1,
        "nonzeros_X": np.count_nonzero(X),
    }
    (tmp_path / "b.svm").write_text("1 3:4 5:6\n-1")  # cut off, and counted nevertheless
    assert count(tmp_path / "b.svm") == {"n_samples": 2, "n_features": 5, "nonzeros_X": 2}


def test_an_unknown_name_is_refused_with_those_close_to_it(cache):
    with pytest.raises(
        ValueError, match=r"name='news20' is not a data set .*did you mean news20\.binary\?.*real-sim"
    ):
        bg.data.fetch("news20")


def test_the_catalogue_names_files_that_load_reads():
    from blockgreedy.data.formats import data_file

    assert len({entry.file_name for entry in SETS.values()}) == len(SETS)
    for name, entry in SETS.items():
        assert entry.name == name
        assert entry.url.startswith(f"{collection.BASE}/")
        assert data_file(entry.file_name).suffix == ".svm"
        assert entry.checksum is None or entry.checksum.startswith("md5:")
    names = {"news20.binary", "rcv1_train.binary", "rcv1_test.binary", "real-sim", "a9a", "w8a", "kdda", "url"}
    assert names <= set(SETS)


# The command.


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, ["data", "fetch", *map(str, arguments)])


def test_the_command_prints_where_the_files_are(server, cache, small, tmp_path):
    result = run("small")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cache / 'small.svm.bz2'}\n"
    elsewhere = tmp_path / "elsewhere"
    facts = json.loads(run("small", "--folder", elsewhere, "--json").stdout)
    assert facts == {"name": "small", "path": str(elsewhere / "small.svm.bz2")}


def test_the_command_tells_of_other_numbers_than_the_published_ones(server, cache, monkeypatch):
    publish(server, monkeypatch, "odd", "odd.bz2", PACKED, 20_001, 8)
    result = run("odd")
    assert result.exit_code == 0
    assert "Note: odd differs from the published description: 20,000 rows, not 20,001" in result.stderr


def test_the_list_shows_what_is_here(server, cache, small):
    run("small")
    lines = run("--list").stdout.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    [line] = [line for line in lines if line.startswith("small ")]
    assert line.split() == ["small", "20,000", "8", "40,000", "yes"]
    assert any(line.split()[:5] == ["a9a", "32,561", "123", "451,592", "md5"] for line in lines)
    entries = [json.loads(line) for line in run("--list", "--json").stdout.splitlines()]
    assert {entry["name"]: entry["path"] for entry in entries}["small"] == str(cache / "small.svm.bz2")


def test_wrong_use_is_told_before_any_download(server, cache, small):
    for arguments, sentence in (
        (("small", "smell"), "name='smell' is not a data set"),
        ((), "name a data set to fetch"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert sentence in result.output
    assert server.asked == []


def test_a_failed_download_ends_with_1(server, cache, small):
    server.files.clear()
    result = run("small")
    assert result.exit_code == 1
    assert "404" in result.output
