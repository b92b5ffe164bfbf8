"""Answers that loop, crash, take all memory or meddle: each gets one line, the next its grade."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bbb_course import sandbox
from bbb_course.sandbox import grade_file, grade_files

RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has neither groups nor alarms")

ANSWERS = {
    "sleep": ("import time\ntime.sleep(60)\n", "an endless loop"),
    "abort": ("import os\ndef softplus(rho):\n    os.abort()\n", "ended by signal 6"),
    "silent": ("import os\nos._exit(0)\n", "its process ended before it was graded"),
    "interrupt": ("def softplus(rho):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "prints": ('print("{}")\n' + RIGHT, None),
    "meddles": ("import numpy as np\nnp.exp = np.log1p = lambda x: x\n", "does not define"),
    "ends its parent": ("import os\nos.kill(os.getppid(), 9)\n" + RIGHT, None),
    "ends its group": ("import os\nos.killpg(0, 9)\n" + RIGHT, "its process ended"),
    "ends its parent and goes on": (
        "import os\nos.kill(os.getppid(), 9)\nwhile True: pass\n",
        "its process ended",
    ),
    "says what is no verdict": (
        "import os\nos.write(3, b'[0]\\n')\nos._exit(0)\n",
        "its process ended",
    ),
    "takes its alarm away": (
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass\n",
        "an endless loop",
    ),
    "right, after all of these": (RIGHT, None),
}
HARMLESS = {
    "def softplus(rho):\n    raise SystemExit\n": "leave out exit()",
    "import sys\nsys.exit(0)\n": "leave out exit()",
    "def softplus(rho)\n    return rho\n": "line 1: expected ':'",
    "def softplos(rho):\n    return rho\n": "it does not define softplus",
    "import nothing_of_this_name\n": "cannot be imported: ModuleNotFoundError",
}


@pytest.mark.parametrize(("text", "says"), HARMLESS.items())
def test_what_is_no_answer_is_said_in_one_line(text, says, tmp_path):
    path = tmp_path / "1_softplus.py"
    path.write_text(text)
    verdict = grade_file(path)
    assert not verdict.passed
    assert says in verdict.headline
    assert "\n" not in str(verdict)


CHEATS = {
    "from bbb_course.keys import find\nsoftplus = find('softplus').right\n": "cannot import bbb_c",
    "def softplus(rho):\n    from bbb_course.keys.free_energy import softplus\n"
    "    return softplus.right(rho)\n": "cannot import bbb_course",
    "import gc\ndef softplus(rho):\n    return next(one.right(rho) for one in gc.get_objects()"
    " if type(one).__name__ == 'Formula' and one.name == 'softplus')\n": "where there is a key",
    RIGHT: "proved",
}


@POSIX
@pytest.mark.parametrize(("text", "says"), CHEATS.items())
def test_an_answer_that_asks_the_key_does_not_pass(text, says, tmp_path):
    path = tmp_path / "1_softplus.py"
    path.write_text(text)
    (verdict,) = grade_files([path])
    assert says in verdict.headline
    assert verdict.passed == (text == RIGHT)


@POSIX
def test_each_answer_gets_its_line_and_none_disturbs_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "SPARE", 5.0)  # in which a process starts
    paths = []
    for number, (text, _) in enumerate(ANSWERS.values()):
        path = tmp_path / str(number) / "1_softplus.py"
        path.parent.mkdir()
        path.write_text(text)
        paths.append(path)
    verdicts = list(grade_files(paths, seconds=2.0))
    for (name, (_, says)), verdict in zip(ANSWERS.items(), verdicts, strict=True):
        assert verdict.passed == (says is None), f"{name}: {verdict}"
        assert "\n" not in str(verdict)
        assert says is None or says in verdict.headline, f"{name}: {verdict}"


@POSIX
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


@POSIX
def test_what_an_answer_has_started_ends_with_it(tmp_path):
    path, alive = tmp_path / "softplus.py", tmp_path / "alive"
    path.write_text(
        f"import os, pathlib, time\nif os.fork() == 0:\n    while True:\n"
        f"        pathlib.Path({str(alive)!r}).touch()\n        time.sleep(0.01)\n"
        f"while not os.path.exists({str(alive)!r}):\n    time.sleep(0.01)\n{RIGHT}"
    )
    (verdict,) = grade_files([path])
    assert verdict.passed
    alive.unlink(missing_ok=True)
    time.sleep(0.3)
    assert not alive.exists()


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
