"""Ctrl-C ends the command with one line and 130, whether it computes, or is still imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from bbb_numpy.cli import interrupts
from bbb_numpy.cli.main import main
from bbb_numpy.learners.checkpoint import load

pytestmark = pytest.mark.brief

# Python sends itself Ctrl-C when it looks for this module, and catches what does not end it
AT_IMPORT = """
import os, runpy, signal, sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(100): pass
            except KeyboardInterrupt:
                raise ImportError("who imports modules may catch everything") from None
sys.meta_path.insert(0, Interrupts())
sys.orig_argv, sys.argv = {typed!r}, {argv!r}
{start}
"""
MODULE = "import bbb_numpy; runpy.run_module('bbb_numpy', run_name='__main__', alter_sys=True)"
SCRIPT = "from bbb_numpy.cli.main import main; sys.exit(main())"


def interrupted(module, typed, argv, start):
    code = AT_IMPORT.format(module=module, typed=typed, argv=argv, start=start)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "module", ["numpy", "bbb_numpy.parts.network", "bbb_numpy.cli.fit", "bbb_numpy.training.loop"]
)
@pytest.mark.parametrize(
    ("typed", "argv", "start"),
    [
        (["python", "-m", "bbb_numpy", "fit"], ["-m", "fit"], MODULE),
        (["python", "/bin/bbb-numpy", "fit"], ["/bin/bbb-numpy", "fit"], SCRIPT),
    ],
    ids=["module", "script"],
)
def test_during_imports_the_command_ends_with_one_line(module, typed, argv, start):
    found = interrupted(module, typed, argv, start)
    assert (found.returncode, found.stderr) == (130, "bbb-numpy: interrupted\n")
    assert found.stdout == ""


@pytest.mark.parametrize(
    ("typed", "argv"),
    [
        (["python", "-c", "..."], ["-c"]),
        (["python", "-m", "pytest"], ["-m"]),
        (["python", "-c", "from multiprocessing.spawn import ..."], ["/bin/bbb-numpy", "uci"]),
        (["python", "mine.py"], ["mine.py"]),
    ],
    ids=["shell", "module", "worker", "script"],
)
def test_other_programs_that_import_the_package_keep_their_ctrl_c(typed, argv):
    found = interrupted("bbb_numpy.parts.network", typed, argv, "import bbb_numpy")
    assert "who imports modules may catch everything" in found.stderr
    assert found.returncode == 1


def test_a_command_in_the_background_ignores_ctrl_c_as_its_shell_wished():
    """Its handler stays that of the shell: SIG_IGN."""
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "sys.orig_argv, sys.argv = ['python', 'bbb-numpy'], ['bbb-numpy']; import bbb_numpy; "
        "from bbb_numpy.cli import interrupts; interrupts.in_order(); "
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "True\n"


def test_this_process_is_not_the_command():
    before = signal.getsignal(signal.SIGINT)
    interrupts.at_once()
    interrupts.in_order()
    assert signal.getsignal(signal.SIGINT) is before
    assert not interrupts.ACTIVE


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_a_command_that_waits_for_its_input_ends_with_one_line(tmp_path):
    model = str(tmp_path / "m.npz")
    with subprocess.Popen(
        [sys.executable, "-m", "bbb_numpy", "fit", "-", "--target", "y", "--model", model],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "bbb-numpy: interrupted\n")
    assert list(tmp_path.iterdir()) == []


# Python sends itself Ctrl-C at a draw of noise or a step of a chain
WHILE_FITTING = """
import os, signal, sys
sys.orig_argv = ["python", "/bin/bbb-numpy"]
import bbb_numpy
from bbb_numpy.cli.main import main
from bbb_numpy import Reparameterised
from bbb_numpy.sampling.mcmc import NUTS
def pressing(function, calls=[]):
    def pressed(*args, **kwargs):
        calls.append(1)
        if len(calls) == {call}:
            os.kill(os.getpid(), signal.SIGINT)
        return function(*args, **kwargs)
    return pressed
Reparameterised.fill, NUTS.step = pressing(Reparameterised.fill), pressing(NUTS.step)
sys.exit(main(["fit", "data.csv", "--target", "y", "--model", "m.npz", *{options!r}]))
"""
TRAINED = ["--epochs", "50", "--batch-size", "20"]  # one draw of noise an epoch
SAMPLED = ["--inference", "nuts", "--draws", "50", "--warm-up", "10", "--chains", "2"]


def stopped_fit(folder, options, call):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(20)
    rows = "".join(f"{a:.3f},{np.sin(a):.3f}\n" for a in x)
    (folder / "data.csv").write_text("x,y\n" + rows)
    code = WHILE_FITTING.format(call=call, options=options)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("options", "older"), [(TRAINED, None), (SAMPLED, b"older")], ids=["trained", "sampled"]
)
def test_ctrl_c_during_fit_stores_what_it_says_it_holds_beside_an_older_model(
    options, older, tmp_path
):
    model, beside = tmp_path / "m.npz", tmp_path / "m-unfinished.npz"
    if older:
        model.write_bytes(older)
    found = stopped_fit(tmp_path, options, 25)
    assert found.returncode == 130, found.stderr
    said, *_, stored = found.stderr.splitlines()
    assert "interrupted by user after" in said
    name = beside.name if older else model.name
    told = "; m.npz is as it was" if older else ""
    assert stored == f"the unfinished fit is stored in {name}{told}"
    kept = load(tmp_path / name)
    assert 0 < kept.n_iter_ < 50
    assert f"after {kept.n_iter_} of" in said or f"{kept.n_iter_} of 50 draws" in said
    assert main(["predict", str(tmp_path / name), str(tmp_path / "data.csv")]) == 0
    assert beside.exists() is (model.read_bytes() == older)
