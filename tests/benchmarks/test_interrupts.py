"""interrupts: a proof leaves the process as it was, and one that would not is found."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("it forks", allow_module_level=True)

from benchmarks import interrupts
from exactgrad import prove

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # and it forks


def tiny():
    return prove(interrupts.tiny, interrupts.THETA)


def replaces():
    """What a proof must not do: restore at the end, if it comes to the end."""
    call = np.vectorize.__call__
    np.vectorize.__call__ = lambda *args: call(*args)
    try:
        assert np.sum(1)
    finally:
        np.vectorize.__call__ = call


def test_an_interrupt_of_a_small_proof_leaves_no_trace():
    interrupted = interrupts.evenly(tiny, interrupts.ENTERING, 4)
    assert interrupted.children >= 4
    assert not interrupted.failed


def test_what_is_replaced_while_a_function_runs_is_found():
    places = interrupts.evenly(replaces, __file__, 4)
    assert 0 < len(places.failed) < places.children


def test_an_interrupt_of_a_proof_that_is_watched_leaves_no_trace():
    assert not interrupts.by_timer(lambda: str(prove(interrupts.wrong, interrupts.THETA)), 3)


@pytest.mark.slow
def test_no_interrupt_leaves_a_trace():
    """Of all events of the call of a copy, and of 200 of each of three proofs."""
    command = [sys.executable, "-m", "benchmarks.interrupts", "--interrupts", "600"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\w+: 0 of \d{2,}", done.stdout, re.M)) == 5
