"""Answers that loop, crash, take all memory or meddle: each gets one line, the next its grade."""

import signal
import subprocess
import sys
import time

import pytest

from bbb_numpy.grading import sandbox
from bbb_numpy.grading.sandbox import grade_file, grade_files

RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
FORKING = pytest.mark.skipif(not sandbox.FORKS, reason="one process for each file: slow")

ANSWERS = {
    "loop": ("def softplus(rho):\n    while True: pass\n", "an endless loop"),
    "sleep": ("import time\ntime.sleep(60)\n", "an endless loop"),
    "abort": ("import os\ndef softplus(rho):\n    os.abort()\n", "ended by signal 6"),
    "silent": ("import os\nos._exit(0)\n", "its process ended before it was graded"),
    "exit": ("def softplus(rho):\n    raise SystemExit\n", "leave out exit()"),
    "exit at once": ("import sys\nsys.exit(0)\n", "leave out exit()"),
    "syntax": ("def softplus(rho)\n    return rho\n", "line 1: expected ':'"),
    "other name": ("def softplos(rho):\n    return rho\n", "it does not define softplus"),
    "import": ("import nothing_of_this_name\n", "cannot be imported: ModuleNotFoundError"),
    "interrupt": ("def softplus(rho):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "prints": ('print("{}")\n' + RIGHT, None),
    "meddles": ("import numpy as np\nnp.exp = np.log1p = lambda x: x\n", "does not define"),
    "right, after all of these": (RIGHT, None),
}


@FORKING
def test_each_answer_gets_its_line_and_none_disturbs_the_next(tmp_path):
    paths = []
    for number, (text, _) in enumerate(ANSWERS.values()):
        path = tmp_path / str(number) / "1_softplus.py"
        path.parent.mkdir()
        path.write_text(text)
        paths.append(path)
    verdicts = list(grade_files(paths, seconds=1.5))
    for (name, (_, says)), verdict in zip(ANSWERS.items(), verdicts, strict=True):
        assert verdict.passed == (says is None), f"{name}: {verdict}"
        assert "\n" not in str(verdict)
        assert says is None or says in verdict.headline, f"{name}: {verdict}"


@FORKING
def test_an_answer_ends_with_the_command_that_grades_it(tmp_path):
    path = tmp_path / "softplus.py"
    alive = tmp_path / "alive"
    path.write_text(
        f"import pathlib, time\nwhile True:\n    pathlib.Path({str(alive)!r}).touch()\n"
        "    time.sleep(0.01)\n"
    )
    command = [sys.executable, "-m", "bbb_numpy", "grade", str(path), "--seconds", "60"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 30
        while not alive.exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert said.decode().splitlines() == ["bbb-numpy: interrupted"]
    alive.unlink()
    time.sleep(0.3)
    assert not alive.exists()


@FORKING
def test_a_grader_that_is_ended_when_it_has_said_all_says_nothing_more():
    code = (
        "import atexit, os, runpy, signal, sys\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
        "sys.argv[1:] = ['[[], 1.0, 64, true]']\n"
        "runpy.run_module('bbb_numpy.grading.worker', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGTERM
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_memory_is_limited(tmp_path):
    path = tmp_path / "softplus.py"
    path.write_text(
        "import numpy as np\ndef softplus(rho):\n    np.ones(3 * 10**7)\n    return rho\n"
    )
    (verdict,) = grade_files([path], megabytes=64)
    assert verdict.headline == "it needs more memory than the limit"
    (verdict,) = grade_files([path], megabytes=1024)
    assert verdict.verdict != "stopped"


def test_where_there_is_no_fork_each_file_has_a_process_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "FORKS", False)
    monkeypatch.setattr(sandbox, "SPARE", 8.0)
    for name in ("prints", "loop"):
        text, says = ANSWERS[name]
        path = tmp_path / name / "softplus.py"
        path.parent.mkdir()
        path.write_text(text)
        (verdict,) = grade_files([path], seconds=1)
        assert verdict.passed == (says is None)
        assert says is None or says in verdict.headline


def test_a_file_can_be_graded_in_this_process(tmp_path):
    path = tmp_path / "2_softplus.py"
    path.write_text(RIGHT)
    assert grade_file(path).passed
    path.write_text("raise NotImplementedError\n")
    assert grade_file(path).verdict == "not answered"
    with pytest.raises(ValueError, match="no exercise is called 'x'"):
        grade_file(tmp_path / "x.py")
