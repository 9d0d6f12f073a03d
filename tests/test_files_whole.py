"""Whatever a command writes is the old file or the new one, on a full disk and when the process is killed."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import blockgreedy as bg
from blockgreedy.base.files import replacing
from blockgreedy.cli import app
from conftest import SANITIZED

pytestmark = pytest.mark.skipif(bool(SANITIZED), reason="forks, and sanitizers write files of their own")
OLD = b"the old file\n"
LIMIT = 600  # bytes of a file: less than nearly every output has
COMMANDS = {  # and what they write
    "fit data.npz --alpha-ratio 0.3 -q": {"--model": "m.npz", "--report": "m.html", "--trace": "m.csv"},
    "fit data.npz --alpha-ratio 0.3": {"--model": "m.json"},
    "fit data.svm --alpha-ratio 0.3 --cache": {"": "data.svm.cache.npz"},
    "path data.npz --alphas 9": {"--model": "p.npz", "--csv": "p.csv", "--report": "p.html"},
    "cv data.npz --alphas 4 --folds 2": {"--model": "cv.npz", "--report": "cv.html"},
    "predict model.npz data.npz": {"--out": "out.csv"},
    "predict model.npz data.npz --what decision": {"--out": "out.parquet"},
    "partition data.npz": {"--out": "b.npz", "--picture": "b.png", "--report": "b.html"},
    "report model.npz": {"--out": "r.html"},
    "data make text --samples 300 --features 1000": {"--out": "made.npz"},
    "data convert data.npz conv.svm": {"": "conv.svm"},
    "data convert data.npz conv.svm.gz": {"": "conv.svm.gz"},
    "data convert data.npz conv.svm.bz2": {"": "conv.svm.bz2"},
    "data convert data.npz conv.svm.xz": {"": "conv.svm.xz"},
    "data convert data.npz conv.svm.zst": {"": "conv.svm.zst"},
    "data info data.npz": {"--picture": "d.png"},
    "reproduce --data-dir sets --seconds 0.002 -q": {"--out": "rerun"},
}
DRAWN = (".html", ".png", "rerun")  # which take longer to make than to write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 60), density=0.1, rng=rng, format="csr")
    data = bg.Dataset(X, X @ rng.normal(size=60) + 0.1 * rng.normal(size=3000))
    bg.save(data, folder / "data.npz")
    bg.data.write(data, folder / "data.svm")
    (folder / "sets").mkdir()
    bg.save(bg.data.text_like(120, 200, 8.0, 4), folder / "sets" / "small.npz")
    problem = bg.Problem(data.X, data.y, alpha=0.01)
    model = bg.Model.of_solution(problem, bg.solve(problem), data)
    model.save(folder / "model.npz")
    assert model.plot()
    assert bg.ElasticNetCV  # children need not load matplotlib and scikit-learn again
    return folder


def words(command):
    named = [word for option, path in COMMANDS[command].items() if option for word in (option, path)]
    return [*command.split(), *named]


def run(command):
    return CliRunner().invoke(app, command)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_whole(path):
    """Fails on a file that ends too early."""
    end = path.read_bytes()[-16:]
    if path.suffix == ".npz":
        with np.load(path) as archive:
            assert all(archive[name] is not None for name in archive.files)
    elif path.suffix == ".json":
        json.loads(path.read_text())
    elif path.suffix == ".html":
        assert end.endswith(b"</html>\n")
    elif path.suffix == ".png":
        assert b"IEND" in end
    elif path.suffix == ".parquet":
        assert end.endswith(b"PAR1")
    elif path.suffix in (".gz", ".bz2", ".xz", ".zst"):
        assert bg.load(path).X.shape[0] == 3000
    else:
        assert end.endswith(b"\n"), path
        if path.name == "out.csv":
            assert path.read_bytes().count(b"\n") == 3001
        if path.name == "conv.svm":
            assert path.read_bytes().count(b"\n") == 3000


def in_child(work):
    """``work()`` in a forked process, which may change its limits; what it returns must fit a pipe."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read)
            answer = json.dumps(work()).encode()
            while answer:
                answer = answer[os.write(write, answer) :]
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(answer)


def with_little_space(command):
    """What ``command`` says where files are cut off at LIMIT bytes."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        result = run(command)
        return [result.exit_code, result.stdout, result.stderr, repr(result.exception)]

    return in_child(limited)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_old_file_or_the_new_one(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    outputs = [Path(path) for path in COMMANDS[command].values()]
    if outputs == [Path("rerun")]:
        names = ["index.html", "config.json", "findings.csv", "traces.csv", "data.csv", "heat-maps.png"]
        outputs = [Path("rerun", name) for name in names]
        Path("rerun").mkdir()
    for path in outputs:
        path.write_bytes(OLD)
    before = contents(folder)
    code, _, errors, exception = with_little_space(words(command))
    assert "cannot be written" in errors
    if "--cache" in command:  # what was read is not thrown away because of the cache
        assert code == 0
    else:
        assert (code, exception) == (1, "SystemExit(1)")
    after = contents(folder)
    assert after.keys() == before.keys()  # nothing lies about
    assert any(after[path] == OLD for path in outputs)
    for path in after:
        if after[path] != before[path]:
            assert len(after[path]) <= LIMIT
            check_whole(path)


def test_killed_at_any_time_the_old_file_or_the_new_one_is_there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    quick = [command for command in COMMANDS if not any(path.endswith(DRAWN) for path in COMMANDS[command].values())]
    for command in quick:
        for path in COMMANDS[command].values():
            Path(path).write_bytes(OLD)
    before = contents(folder)
    chance = random.Random(0)
    for k in range(2 * len(quick)):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                while run(words(quick[k % len(quick)])).exit_code == 0:
                    os.write(write, b".")
            finally:
                os._exit(1)
        os.close(write)
        with open(read, "rb") as pipe:
            assert pipe.read(1) == b"."  # it has written once, and goes on
            time.sleep(chance.uniform(0, 0.15))
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for path, content in contents(folder).items():
            if path not in before:  # what was being written, under a name that nothing reads
                assert (path.name[0], path.suffix) == (".", ".tmp")
                path.unlink()
            elif content not in (OLD, before[path]):
                check_whole(path)


def test_what_could_not_be_written_is_not_listed_as_written(folder, monkeypatch):
    monkeypatch.chdir(folder)
    command = ["path", "data.npz", "--alphas", "9", "--model", "p.npz", "--csv", "/dev/null", "-q"]
    code, shown, errors, _ = with_little_space(command)
    assert code == 1
    assert "csv: /dev/null" in shown
    assert "p.npz" not in shown
    assert errors == "Error: the model cannot be written to p.npz: File too large\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_told_to_end_while_it_writes_leaves_nothing_behind(tmp_path, number):
    words = """
        import sys, time
        from blockgreedy.base.files import replacing
        with replacing(sys.argv[1]) as file, replacing(sys.argv[1] + "2"):
            file.write(b"half")
            print("writes", flush=True)
            time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(words), tmp_path / "x"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == b"writes\n"
    process.send_signal(number)
    assert process.wait(60) == -number
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_that_is_told_to_end_leaves_what_its_parent_writes(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with replacing(tmp_path / "x") as file:
        process = os.fork()
        if process == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGTERM
        file.write(b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"
    assert signal.getsignal(signal.SIGTERM) == before
