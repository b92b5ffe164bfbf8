"""Answers that loop, crash, take all memory or meddle: each gets one line, the next its grade."""

import pytest

from bbb_numpy.grading import sandbox
from bbb_numpy.grading.sandbox import grade_file, grade_files

RIGHT = "import numpy as np\ndef softplus(rho):\n    return np.log1p(np.exp(rho))\n"
LINUX_ONLY = pytest.mark.skipif(not sandbox.FORKS, reason="needs fork")

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


@LINUX_ONLY
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


@LINUX_ONLY
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
    path = tmp_path / "softplus.py"
    path.write_text(RIGHT)
    (verdict,) = grade_files([path])
    assert verdict.verdict == "proved"


def test_a_file_can_be_graded_in_this_process(tmp_path):
    path = tmp_path / "2_softplus.py"
    path.write_text(RIGHT)
    assert grade_file(path).passed
    path.write_text("raise NotImplementedError\n")
    assert grade_file(path).verdict == "not answered"
    with pytest.raises(ValueError, match="no exercise is called 'x'"):
        grade_file(tmp_path / "x.py")
