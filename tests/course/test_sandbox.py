"""Answers that loop, crash, take all memory or meddle: each gets one line, the next its grade."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bbb_course import judge, processes
from bbb_course.sandbox import grade_file, grade_files

RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has neither groups nor alarms")
FOR_EVER = "import time\nwhile True: time.sleep(1)\n"

ANSWERS = {
    "loops": (FOR_EVER, "an endless loop"),
    "abort": ("import os\ndef softplus(rho):\n    os.abort()\n", "ended by signal 6"),
    "silent": ("import os\nos._exit(0)\n", "its process ended before it was graded"),
    "interrupt": ("def softplus(rho):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "prints": ('print("{}")\n' + RIGHT, None),
    "meddles": ("import numpy as np\nnp.exp = np.log1p = lambda x: x\n", "does not define"),
    "ends its parent": ("import os\nos.kill(os.getppid(), 9)\n" + RIGHT, None),
    "ends its group": ("import os\nos.killpg(0, 9)\n" + RIGHT, "its process ended"),
    "ends its parent and loops": (
        "import os\nos.kill(os.getppid(), 9)\n" + FOR_EVER,
        "its process ended",
    ),
    "says what is no verdict": (
        "import os\nos.write(4, b'[0]\\n')\nos._exit(0)\n",
        "it writes what is no message",
    ),
    "takes its alarm away and loops": (
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\n" + FOR_EVER,
        "an endless loop",
    ),
    "imports the key": (
        "from bbb_course.keys import find\nsoftplus = find('softplus').right\n",
        "cannot import bbb_course",
    ),
    "imports the key when it is called": (
        "def softplus(rho):\n    from bbb_course.keys.free_energy import softplus\n"
        "    return softplus.right(rho)\n",
        "cannot import bbb_course",
    ),
    "imports its own file": (
        "def softplus(rho):\n    import softplus\n",
        "line 2, `import softplus`: No module named 'softplus'; each answer is graded alone, "
        "without 1_softplus.py beside it",
    ),
    "looks for the key in memory": (
        "import gc\ndef softplus(rho):\n    keys = [one for one in gc.get_objects()"
        " if type(one).__name__ == 'Formula' and one.name == 'softplus']\n"
        "    return keys[0].right(rho) if keys else 0 * rho\n",
        "where there is a key",
    ),
    "takes the refusal away and imports the key": (
        "import sys\nsys.meta_path[:] = [one for one in sys.meta_path"
        " if type(one).__name__ != 'Refused']\ndef softplus(rho):\n"
        "    from bbb_course.keys.free_energy import softplus\n    return softplus.right(rho)\n",
        "where there is a key",
    ),
    "right": (RIGHT, None),
}
HARMLESS = {
    "def softplus(rho):\n    raise SystemExit\n": "leave out exit()",
    "import sys\nsys.exit(0)\n": "leave out exit()",
    "def softplus(rho)\n    return rho\n": "line 1: expected ':'",
    "def softplos(rho):\n    return rho\n": "it does not define softplus",
    "import nothing_of_this_name\n": "can be answered with NumPy and Python's own modules",
    "from helpers import f\n": "without helpers.py beside it: copy what it needs into its file",
    "import weights.of_mine\n": "without 2_weights.py beside it",
}


@pytest.mark.parametrize(("text", "says"), HARMLESS.items())
def test_what_is_no_answer_is_said_in_one_line(text, says, tmp_path):
    path = tmp_path / "1_softplus.py"
    path.write_text(text)
    for sibling in ("helpers.py", "2_weights.py"):
        (tmp_path / sibling).write_text("f = 1\n")
    verdict = grade_file(path)
    assert not verdict.passed
    assert says in verdict.headline
    assert "\n" not in str(verdict)


@pytest.mark.parametrize("function", ["log", "exp"])
def test_who_replaces_a_function_of_numpy_is_told(function, tmp_path, monkeypatch):
    monkeypatch.setattr(np, function, getattr(np, function))  # put back behind the test
    path = tmp_path / "1_softplus.py"
    path.write_text(f"{RIGHT}np.{function} = lambda x: x\n")
    verdict = grade_file(path)
    assert (verdict.passed, verdict.verdict) == (False, "unusable")
    assert verdict.headline.startswith(f"it replaces numpy.{function} for everyone")


def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path):
    path = tmp_path / "1_softplus.py"
    path.write_text(RIGHT, encoding="utf-8-sig")
    assert grade_file(path).passed


def test_what_is_printed_in_a_proof_is_no_number_and_is_not_shown(capsys):
    def softplus(rho):
        print(type(rho[0]).__name__)
        return np.log1p(np.exp(rho))

    assert judge("softplus", softplus).verdict == "proved"
    assert set(capsys.readouterr().out.split()) == {"float64"}


@POSIX
def test_a_wrong_answer_is_shown_what_it_printed_in_the_smallest_case(tmp_path):
    path = tmp_path / "1_softplus.py"
    path.write_text(
        "import numpy as np\nimport sys\ndef softplus(rho):\n"
        "    print('rho is', rho, '\\x1b[2J', file=sys.stdout if rho.size % 2 else sys.stderr)\n"
        "    return np.log1p(np.exp(rho)) + 0.25 * np.tanh(rho)\n"
    )
    (verdict,) = grade_files([path])
    assert verdict.cases["sigma"]["rho"] == [1.0]
    assert len(verdict.printed) == 20
    assert verdict.printed[-1] == "rho is [1.]  [2J"
    assert str(verdict).splitlines()[-21:] == [
        "  the last lines that it printed:",
        *(f"    {line}" for line in verdict.printed),
    ]
    assert verdict.as_dict()["printed"] == verdict.printed


def grade_all(names, folder, seconds):
    """Grade answers at the same time, and compare what is said of each."""
    paths = [folder / name / "1_softplus.py" for name in names]
    for name, path in zip(names, paths, strict=True):
        path.parent.mkdir()
        path.write_text(ANSWERS[name][0])
    for name, verdict in zip(names, grade_files(paths, seconds), strict=True):
        says = ANSWERS[name][1]
        assert verdict.passed == (says is None), f"{name}: {verdict}"
        assert "\n" not in str(verdict)
        assert (says or "proved") in verdict.headline, f"{name}: {verdict}"


@POSIX
@pytest.mark.parametrize("name", ANSWERS)
def test_whatever_an_answer_does_it_gets_its_line(name, tmp_path, monkeypatch):
    if name.startswith("takes its alarm"):  # it is ended as late as that
        monkeypatch.setattr(processes, "START_ALLOWANCE_S", 1.0)
    grade_all([name], tmp_path, 0.5 if name.endswith("loops") else 20.0)


@POSIX
def test_who_ends_its_group_does_not_disturb_the_next(tmp_path):
    grade_all(["ends its group", "right"], tmp_path, 20.0)


@POSIX
@pytest.mark.slow
def test_no_answer_disturbs_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "START_ALLOWANCE_S", 5.0)  # in which a process starts
    grade_all(list(ANSWERS), tmp_path, 2.0)


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
    path.write_text(RIGHT.replace("    return", "    bytes(10**8)\n    return"))
    (verdict,) = grade_files([path], megabytes=64)
    assert verdict.headline == "it needs more memory than the limit"
    (verdict,) = grade_files([path], megabytes=1024)
    assert verdict.passed
