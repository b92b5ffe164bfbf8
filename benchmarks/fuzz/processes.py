"""Processes that are killed, or interrupted by Ctrl-C, at random moments (POSIX alone)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .verdicts import names_

__all__ = ["ctrl_c", "kill"]

SLOWEST = 300  # seconds until any of these has ended by itself, on a busy machine too
OLDER = b"what an earlier command has left"
START = """
import sys, numpy as np, bbb_numpy
rng = np.random.default_rng(0)
x = rng.standard_normal((200, 2))
"""
SAMPLING = f"""{START}
model = bbb_numpy.Model(bbb_numpy.MLP((2, 5, 1), "tanh"))
draws = bbb_numpy.sample(
    model, x, x[:, :1], chains=2, draws=150, warm_up=150, seed=1, progress=False,
    sampler=bbb_numpy.HMC(path=0.5), checkpoint="run", checkpoint_every=0.02)
np.save("draws.npy", draws.positions)
"""
SAVING = f"""{START}
learners = [bbb_numpy.BayesianMLPRegressor((50,), epochs=1, random_state=seed).fit(x, x[:, 0])
            for seed in (0, 1)]
print("ready", flush=True)
while True:
    for learner in learners:
        bbb_numpy.save(learner, "model.npz")
"""
FIT = ["fit", "data.csv", "--target", "target", "--model", "model.npz", "--hidden", "5"]


def started(words: list[str], **how: Any) -> subprocess.Popen[str]:
    """Start Python with these arguments."""
    return subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, **how
    )


def ended(words: list[str]) -> float:
    """Run Python to its end, and return the seconds that it took."""
    began = time.monotonic()
    with started(words, stdout=subprocess.DEVNULL) as process:
        _, said = process.communicate(timeout=SLOWEST)
    if process.returncode:
        raise RuntimeError(said)
    return time.monotonic() - began


@cache
def table() -> None:
    """Write the table that is fitted."""
    rows = np.random.default_rng(0).standard_normal((300, 3))
    np.savetxt("data.csv", rows, delimiter=",", header="a,b,target", comments="")


@cache
def undisturbed(what: str) -> tuple[float, bytes]:
    """Return how long a command takes, and what it leaves, when nothing disturbs it."""
    table()
    words, result = commands()[what]
    seconds = ended(words)
    return seconds, Path(result).read_bytes()


def commands() -> dict[str, tuple[list[str], str]]:
    """Return what is killed, and the file that it makes."""
    fit = ["-m", "bbb_numpy", *FIT, "--epochs", "30"]
    return {"fit": (fit, "model.npz"), "sampling": (["-c", SAMPLING], "draws.npy")}


def kill(seed: int, trial: int, loud: bool = False) -> dict[str, Any]:
    """Kill a process at some moment; return what is lost or left over."""
    rng = np.random.default_rng([seed, trial])
    what = ["fit", "sampling", "saving"][trial % 3]
    faults = killed_while_saving(rng) if what == "saving" else killed_on_its_way(rng, what)
    faults += [f"left over {path}" for path in Path().glob(".model.npz.*")]
    if loud:
        print(what, faults)
    if faults:
        return {"what": what, "defect": faults[0], "text": "\n".join(faults)}
    return {"what": what}


def killed_on_its_way(rng: np.random.Generator, what: str) -> list[str]:
    """Kill a command, twice at times, run it again to its end, and compare."""
    seconds, wanted = undisturbed(what)
    words, result = commands()[what]
    shutil.rmtree("run", ignore_errors=True)
    Path(result).write_bytes(OLDER)
    faults = []
    for _ in range(int(rng.integers(1, 3))):
        with started(words, stdout=subprocess.DEVNULL) as process:
            time.sleep(rng.random() * seconds)
            process.kill()
        if Path(result).read_bytes() not in (OLDER, wanted) and what != "sampling":
            faults.append(f"{result} of {what} is damaged")
    ended(words)
    if Path(result).read_bytes() != wanted:
        faults.append(f"{what} once more ends elsewhere")
    return faults


def killed_while_saving(rng: np.random.Generator) -> list[str]:
    """Kill a process that saves one model after another, then save once."""
    with started(["-c", SAVING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.3 * rng.random())
        process.kill()
    known, faults = names_(), []
    try:
        known["load"]("model.npz")
    except (ValueError, OSError) as error:
        faults.append(f"model.npz after a kill: {error}")
    known["save"](known["fitted"]("trained"), "model.npz")
    return faults


INTERRUPTED = (
    [*FIT, "--epochs", "100000"],
    [*FIT, "--inference", "hmc", "--draws", "100000"],
    ["gradcheck", "--all"],
    ["gradcheck", "--exact", "--all"],
    ["uci", "--help"],
    ["predict", "whole.npz", "data.csv"],
)
ENDING = ("uci", "predict")  # those that end by themselves


def ctrl_c(seed: int, trial: int, loud: bool = False) -> dict[str, Any]:
    """Press Ctrl-C at some moment: the command ends with one line and 130.

    What it then says it has stored can be loaded, and nothing else is there.
    """
    rng = np.random.default_rng([seed, trial])
    table()
    command = INTERRUPTED[trial % len(INTERRUPTED)]
    Path("model.npz").unlink(missing_ok=True)
    known = names_()
    known["save"](known["fitted"]("named"), "whole.npz")
    with started(["-m", "bbb_numpy", *command], stdout=subprocess.DEVNULL) as process:
        wait_for_numpy(process)
        time.sleep(4.0 * rng.random() ** 2)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            process.kill()
            said = "goes on"
    lines = [line for line in said.splitlines() if "warning" not in line]
    # While it ends, Python lets the signal do what it does by default: all is done by then
    at_its_end = process.returncode == -signal.SIGINT and not said and command[0] in ENDING
    well = process.returncode == 0 or at_its_end or (process.returncode == 130 and len(lines) == 1)
    stored = "the unfinished fit is stored in model.npz" in said
    well = well and "Traceback" not in said and Path("model.npz").exists() is stored
    if stored:
        known["load"]("model.npz")
    if loud:
        print(command, process.returncode, said)
    if well:
        return {"what": "130" if process.returncode == 130 else "ended before"}
    return {"what": command[0], "defect": f"status {process.returncode}", "text": said[-800:]}


def wait_for_numpy(process: subprocess.Popen[str]) -> None:
    """Wait until the command is importing: before, the signal is Python's own affair."""
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and "_multiarray_umath" not in maps.read_text():
        time.sleep(0.01)
