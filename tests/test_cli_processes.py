"""The command line in a process of its own: versions, progress on a terminal, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import blockgreedy as bg
from command_line import ENVIRONMENT
from terminals import read_to_the_end

# CPU seconds until a process surely iterates: imports take about one, much longer under a sanitizer.
CPU_SECONDS_TO_START = 30 if "BLOCKGREEDY_SANITIZED" in os.environ else 3


def start(*arguments, stderr=subprocess.PIPE, **environment):
    """The command line in a process of its own, with Ctrl-C working whatever started the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "blockgreedy", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_module_and_console_script_print_the_version():
    script = Path(sys.executable).with_name("blockgreedy")
    for command in ([sys.executable, "-m", "blockgreedy"], [str(script)] if script.exists() else []):
        if command:
            done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
            assert done.stdout == f"blockgreedy {bg.__version__}\n"


def test_quiet_prints_nothing_on_stderr_and_a_pipe_gets_no_progress(text_npz):
    for extra in (["--quiet"], []):
        process = start(
            *("fit", text_npz, "--method", "scd", "--alpha-ratio", 0.01, "--max-seconds", 0.5, "--tol", 0),
            *("--loss", "logistic", "--no-intercept", *extra),
        )
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (3, "")
        assert "max_seconds" in out


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_drawn_on_a_terminal_unless_quiet_and_stdout_stays_json(text_npz, quiet):
    terminal, stderr = pty.openpty()
    arguments = ["--method", "scd", "--alpha-ratio", 0.01, "--max-seconds", 0.5, "--tol", 0, "--json"]
    process = start("fit", text_npz, *arguments, *["--quiet"] * quiet, stderr=stderr, TERM="xterm")
    os.close(stderr)
    shown = read_to_the_end(terminal)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["status"] == "max_seconds"
    assert (b"relative gap" in shown) is not quiet
    assert shown.count(b"relative gap") < 20  # ten times a second, for half a second
    if quiet:
        assert shown == b""


@pytest.mark.parametrize("how", ["json", "summary"])
def test_ctrl_c_stops_within_two_seconds_and_reports_the_best_point(text_npz, tmp_path, how):
    trace = tmp_path / "run.csv"
    # alpha near 0 and tol=0: it would run for hours.
    arguments = [
        "--method",
        "scd",
        "--loss",
        "logistic",
        "--no-intercept",
        "--alpha-ratio",
        1e-6,
        "--tol",
        0,
        "--max-iter",
        10**9,
        "--trace",
        trace,
    ]
    model = trace.with_name("model.npz")
    process = start("fit", text_npz, *arguments, "--model", model, *(["--json"] if how == "json" else []))
    try:
        _wait_until_it_iterates(process)
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        out, err = process.communicate(timeout=30)
        waited = time.perf_counter() - sent
    finally:
        process.kill()
    assert (process.returncode, err) == (3, "")
    assert waited < 2
    if how == "json":
        found = json.loads(out)
        assert found["status"] == "interrupted"
        assert found["objective"] < found["f_null"]
    else:
        assert "interrupted" in out
    assert len(bg.Trace.from_csv(trace)) > 1
    saved = bg.Model.load(model)
    assert saved.statuses == ("interrupted",)
    assert saved.objectives[0] < saved.f_null


def _wait_until_it_iterates(process):
    deadline = time.monotonic() + 20 * CPU_SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        if sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") > CPU_SECONDS_TO_START:
            return
        time.sleep(0.05)
    raise AssertionError(f"the process did not get going: {process.communicate()}")
