"""Processes of a pool end when the process does that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bbb_numpy.numeric import processes

STARTED = """
import os, runpy, sys, time
exit_with_parent = runpy.run_path(sys.argv[1])["exit_with_parent"]  # the library takes longer
parent = os.getpid()
if os.fork() == 0:
    exit_with_parent(parent)
    print("started", flush=True)
time.sleep(30)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM"])
def test_a_process_ends_within_a_second_of_the_one_that_started_it(end):
    command = [sys.executable, "-c", STARTED, processes.__file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "started\n"
        parent.send_signal(getattr(signal, end))
        parent.wait()
        ended = time.monotonic()
        assert parent.stdout.read() == ""  # which returns when nobody has the pipe any more
    assert time.monotonic() - ended < 5.0, "half a second, on a busy machine more"


@pytest.mark.skipif(os.name == "nt", reason="Windows tells by a handle")
def test_a_process_ends_whose_parent_is_gone_before_it_begins():
    program = [
        *STARTED.splitlines()[:3],
        "exit_with_parent(0)",
        "time.sleep(30)",
    ]  # 0 is not its parent
    command = [sys.executable, "-c", "\n".join(program), processes.__file__]
    assert subprocess.run(command, check=False, timeout=20).returncode == 1
