"""asserting, the plugin of pytest, the command and its page: where people meet the proofs."""

import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bbb_numpy
import exactgrad
from bbb_numpy import exact as former
from bbb_numpy import gradcheck as former_checks
from exactgrad import Proof, assert_proved
from exactgrad.command import main

ROOT = Path(__file__).parents[2]
FORMER_PAGE = ROOT / "tests" / "exactgrad" / "former_page.md"  # docs/prove.md as it was before
PAGE = (ROOT / "docs" / "prove.md").read_text(encoding="utf-8")
PROGRAM = """
import numpy as np

def right(theta, x, y):
    off = x @ theta - y
    return (off**2).sum(), 2 * x.T @ off

def wrong(theta):
    return (theta**2).sum(), 3 * theta

def value(theta):
    return theta.sum()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file to be proved."""
    (tmp_path / "mine.py").write_text(PROGRAM)
    (tmp_path / "broken.py").write_text("import nothing_such")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


# --- tests


def test_a_proof_that_is_asserted_is_returned():
    assert assert_proved(lambda t: ((t**2).sum(), 2 * t), np.ones(2)) == Proof("proved", 2)


def test_a_gradient_that_is_wrong_fails_with_its_verdict():
    with pytest.raises(AssertionError, match=r"^refuted: 2 of 2 .*\n.*\n.*\n  they are 3/2 times"):
        assert_proved(lambda t: ((t**2).sum(), 3 * t), np.ones(2))


@pytest.mark.parametrize("plugin", ["exactgrad.pytest", "bbb_numpy_pytest"])
def test_the_fixture_fails_with_the_verdict_and_shows_the_line_of_the_test_alone(here, plugin):
    (here / "test_mine.py").write_text(
        "import sys, numpy\n"
        "from mine import wrong\n"
        "def test_nothing_of_ours_is_imported_yet():\n"
        "    assert not {'exactgrad.proofs', 'bbb_numpy', 'scipy'} & {*sys.modules}\n"
        "def test_it(assert_proved):\n"
        "    assert_proved(wrong, numpy.ones(2))\n"
    )
    done = python("-m", "pytest", "-p", plugin, "-p", "no:cacheprovider", "-q", ".")
    assert "1 failed, 1 passed" in done.stdout
    assert "E       AssertionError: refuted: 2 of 2 derivatives are wrong" in done.stdout
    assert "E         they are 3/2 times what is right" in done.stdout
    assert "asserting.py" not in done.stdout


def test_the_plugin_is_installed():
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert "py_modules = bbb_numpy_pytest\n" in setup
    assert "pytest11 =\n    exactgrad = exactgrad.pytest\n" in setup


# --- the command


def python(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip


def test_the_status_says_whether_it_is_proved(here, capsys):
    np.save("x.npy", np.ones((5, 3)))
    np.savez("data.npz", y=np.ones(5), x=np.eye(5, 3))
    assert main(["mine.py::right", "x.npy", "5", "--theta", "3"]) == 0
    assert main(["mine:right", "--data", "data.npz", "--theta=-0.1,0.2,1e-3"]) == 0
    assert capsys.readouterr().out == 2 * "proved: all 3 derivatives are exact\n"
    assert main(["mine.py::wrong", "--theta", "2", "--seed", "1"]) == 1
    assert capsys.readouterr().out.startswith("refuted: 2 of 2 derivatives are wrong\n")
    for one in ("2.5", "2.5,"):
        assert main(["mine.py:wrong", "--theta", one]) == 1
        assert capsys.readouterr().out.startswith("refuted: 1 of 1 derivatives is wrong\n")


def test_what_lies_beside_the_file_is_found_first(here, monkeypatch):
    for folder, function in (("other", "none"), ("own", "wrong")):
        (here / folder).mkdir()
        (here / folder / "beside.py").write_text(f"from mine import right as {function}\n")
    (here / "own" / "uses.py").write_text("from beside import wrong\n")
    monkeypatch.syspath_prepend(here)
    monkeypatch.syspath_prepend(here / "other")
    assert main(["own/uses.py:wrong", "5x3", "5", "--theta", "3"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("mine.py --theta 3", "function must be file.py::function or module:function; got 'm"),
        ("yours.py:right --theta 3", "there is no file yours.py"),
        ("yours:right --theta 3", "yours cannot be imported: ModuleNotFoundError"),
        ("broken.py:f --theta 3", "broken.py cannot be imported: ModuleNotFoundError: No"),
        ("mine.py::write --theta 3", "mine.py has no function write; it has right, wrong, value"),
        ("mine.py::right 5x3 --theta 3", "the function takes (theta, x, y); got theta, an argument "
         "of shape (5, 3): missing a required argument: 'y'"),
        ("mine.py::right 5x3 five --theta 3", "an argument must be numbers (0.1,0.2), a shape"),
        ("mine.py::wrong --theta=", "--theta must be numbers (0.1,0.2), a shape of random ones"),
        ("mine.py::wrong --theta three", "--theta must be numbers (0.1,0.2), a shape"),
        ("mine.py::wrong --theta 0", "theta must hold at least one number"),
        ("mine.py::wrong --theta nan,1", "theta must be finite; got nan or infinity"),
        ("mine.py::wrong --theta no.npy", "no.npy cannot be read: [Errno 2] No such file"),
        ("mine.py::wrong --theta mine.npy", "mine.npy cannot be read: "),
        ("mine.py:wrong --theta 3 --data no.csv", "--data must be a .npz file; got 'no.csv'"),
        ("mine.py:wrong --theta 3 --data text.npz", "text.npz cannot be read: "),
        ("mine.py:wrong --theta 3 --data cut.npz", "cut.npz cannot be read: "),
        ("mine.py:wrong --theta 3 --seed -1", "--seed must be a whole number, 0 or more; got -1"),
        ("mine.py:value --theta 3", "value_and_grad must return (value, grad)"),
    ],
)  # fmt: skip
def test_misuse_is_told_what_came_and_what_to_do(here, capsys, arguments, message):
    (here / "cut.npz").write_bytes(b"PK\3\4 and no more")
    for name in ("mine.npy", "text.npz"):
        (here / name).write_text("no array")
    assert main(arguments.split()) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"exactgrad: {message}")
    assert told.count("\n") == 1


def test_an_option_without_its_value_is_misuse(here):
    with pytest.raises(SystemExit, match="2"):
        main(["mine.py:wrong", "--theta", "-1,2"])


def test_a_function_is_refuted_at_three_random_numbers_by_default(here, capsys):
    assert main(["mine.py:wrong"]) == 1
    assert "refuted: 3 of 3 derivatives are wrong" in capsys.readouterr().out


# --- the page


def printed_by(code, name):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, name, "exec"), {})
    return output.getvalue()


@pytest.mark.parametrize("page", ["README.md", "docs/prove.md"])
def test_the_pages_print_what_they_show(here, page):
    example = r"```python\n(import numpy as np\nfrom exactgrad.*?)```\n\n```text\n(.*?)```"
    code, shown = re.search(example, (ROOT / page).read_text("utf-8"), re.DOTALL).groups()
    file = here / f"{Path(page).stem}.py"
    file.write_text(code)
    assert printed_by(code, file.name) == shown.replace("softmax.py", file.name)


def test_the_command_of_the_page_proves_the_file_that_it_shows(here):
    of_a_file = r"```python\n(def ridge.*?)```\n\n```sh\nexactgrad (.*?)\n"
    ridge, command = re.search(of_a_file, PAGE, re.DOTALL).groups()
    (here / "ridge.py").write_text(ridge)
    assert python("-m", "exactgrad", *command.split()).returncode == 0
    assert re.findall(r"^\| \*([a-z ]+)\*", PAGE, re.MULTILINE) == [*exactgrad.Verdict]


def test_what_was_written_for_the_former_names_goes_on_working(here):
    page = FORMER_PAGE.read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL).groups()
    (here / "ridge.py").write_text(code)
    assert printed_by(code, "ridge.py") == shown
    command = re.search(r"^python (-m bbb_numpy.exact .*)", page, re.MULTILINE)[1]
    refuted = python(*command.split())
    assert refuted.returncode == 1
    assert "refuted: 3 of 3 derivatives are wrong" in refuted.stdout
    for name in former.__all__:
        new = "stop_gradient" if name == "still" else name
        assert getattr(former, name) is getattr(exactgrad, new)
    assert former_checks.check is bbb_numpy.check is exactgrad.check_gradient


def test_the_folder_can_be_copied_and_needs_numpy_alone(here):
    copied = shutil.copytree(ROOT / "exactgrad", here / "proving")
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in copied.rglob("*.py"))
    said = int(re.search(r"([\d,]+) lines that\s+need NumPy alone", PAGE)[1].replace(",", ""))
    assert abs(lines - said) <= 250
    done = python("-c", """
import sys
for other in ("scipy", "matplotlib", "sklearn", "pandas", "tqdm", "pytest", "bbb_numpy"):
    sys.modules[other] = None
from proving.__main__ import main
sys.exit(main(["mine.py:right", "5x3", "5", "--theta", "3"]))
""")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "proved: all 3 derivatives are exact\n"), done
