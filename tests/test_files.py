"""One file at a time: what becomes of modes, links, devices and pipes, and of a write that fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest

import blockgreedy as bg
from blockgreedy.base.files import replacing, replacing_text
from blockgreedy.solvers.trace import Trace


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    def fails():
        with replacing(tmp_path / "a") as file:
            file.write(b"half of the n")
            file.flush()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_nobody_sees_the_new_file_before_it_is_complete(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with replacing_text(tmp_path / "a") as file:
        file.write("nöw\r\n")
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == "nöw\r\n".encode()


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_its_own(tmp_path, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "a")
        assert mode(tmp_path / "a") == 0o666 & ~umask
        for kept in (0o600, 0o664, 0o640):
            (tmp_path / "a").chmod(kept)
            write(tmp_path / "a")
            assert mode(tmp_path / "a") == kept
    finally:
        os.umask(before)


def test_what_is_being_written_is_as_private_as_what_it_replaces(tmp_path):
    (tmp_path / "a").write_bytes(b"secret")
    (tmp_path / "a").chmod(0o600)
    with replacing(tmp_path / "a"):
        assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


def test_models_stay_private_and_links_stay_links(tmp_path):
    X = bg.data.text_like(100, 120, 5.0, 2)
    problem = bg.Problem(X.X, X.y, alpha=0.1)
    model = bg.Model.of_solution(problem, bg.solve(problem))
    for name in ("m.npz", "m.json"):
        (tmp_path / "disk").mkdir(exist_ok=True)
        kept = tmp_path / "disk" / name
        kept.write_bytes(b"old")
        kept.chmod(0o600)
        (tmp_path / name).symlink_to(kept)
        model.save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert mode(kept) == 0o600
        assert bg.Model.load(kept).alphas == model.alphas


def test_a_link_that_leads_nowhere_yet_gets_its_file(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to(tmp_path / "there" / "c")
    write(tmp_path / "a")
    assert (tmp_path / "there" / "c").read_bytes() == b"new"
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "b").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["c"]


def test_long_names_are_no_obstacle(tmp_path):
    write(tmp_path / ("ä" * 126 + "x"))
    assert len(list(tmp_path.iterdir())) == 1


def test_folders_and_missing_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"existing folder, got .*nowhere"):
        write(tmp_path / "nowhere" / "a")
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    with (
        pytest.raises(ValueError, match=r"path must end in \.npz or \.json, got .*a\.txt"),
        replacing(tmp_path / "a.txt", ".npz", ".json"),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is protected from the administrator")
def test_what_is_write_protected_stays(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o400)
    with pytest.raises(PermissionError, match="the file is write-protected"):
        write(tmp_path / "a")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="the folder is write-protected"):
            write(tmp_path / "b")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="devices of Linux")
def test_devices_are_written_to_and_not_replaced(tmp_path):
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write(tmp_path / "full")
    with pytest.raises(OSError, match="No space left on device"):
        Trace().to_csv("/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_a_pipe_gets_the_bytes_even_of_an_archive(tmp_path):
    data = bg.data.text_like(100, 120, 5.0, 2)
    os.mkfifo(tmp_path / "a.npz")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "a.npz").read_bytes()))
    reader.start()
    bg.save(data, tmp_path / "a.npz")
    reader.join()
    (tmp_path / "b.npz").write_bytes(got[0])
    assert (bg.load(tmp_path / "b.npz").X != data.X).nnz == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/stdout")
def test_standard_output_that_is_a_file_keeps_what_else_is_printed(tmp_path):
    code = (
        "from blockgreedy.base.files import replacing\n"
        "print('before', flush=True)\n"
        "with replacing('/dev/stdout') as file: file.write(b'between\\n')\n"
        "print('after')\n"
    )
    with open(tmp_path / "out.txt", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "before\nbetween\nafter\n"
    piped = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"before\nbetween\nafter\n"
