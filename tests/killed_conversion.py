"""A script: converts ``argv[1]`` in the folder ``argv[2]`` with the options ``argv[3]``, killed at one write
after the other and resumed. Prints how many writes there were at most.

Little data makes many batches and runs here, since memory is counted from 0.
"""

import contextlib
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path

import blockgreedy.data.conversion as conversion
import blockgreedy.data.svmlight_batches as svmlight_batches
import blockgreedy.data.table_batches as table_batches
from blockgreedy.data import Store, convert

with contextlib.suppress(ModuleNotFoundError):  # once, and not in every child
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet  # noqa: F401


def work(source, path, options, kill_at):
    written = 0

    def counted(descriptor):
        nonlocal written
        written += 1
        if written == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)  # and otherwise nothing: the disk is not the subject here

    os.fsync = counted
    convert(source, path, n_threads=1, **options)


def in_child(*arguments):
    child = os.fork()
    if not child:
        try:
            work(*arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def is_complete(path):
    try:
        Store(path)
    except (ValueError, FileNotFoundError):
        return False
    return True


def main(source, folder, options):
    conversion._PROGRAM = conversion._LEAST = table_batches.TableRows.extra_memory = 0
    svmlight_batches._LEAST, table_batches._FEWEST = 500, 50
    assert in_child(source, folder / "whole.store", options, 0) == 0
    whole, killed, kill_at = contents(folder / "whole.store"), folder / "killed.store", 1
    while (code := in_child(source, killed, options, kill_at)) != 0:
        assert code == -signal.SIGKILL, code
        assert not is_complete(killed)
        in_child(source, killed, options, 1 + kill_at % 5)  # killed once more, or done
        assert in_child(source, killed, options, 0) == 0
        assert contents(killed) == whole, kill_at
        shutil.rmtree(killed)
        kill_at += 1 + kill_at // 8  # the later the alike
    print(kill_at)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), eval(sys.argv[3]))
