"""Interrupt proofs wherever they can be, and look whether anything in the process is another then.

    python -m benchmarks.interrupts                     # 100,000 interrupts, for `make fuzz`
    python -m benchmarks.interrupts --interrupts 600    # of three proofs, evenly spread

A tracer counts the lines and opcodes of a proof. At those that are chosen it forks: the child gets
a KeyboardInterrupt there, and the dictionaries of all modules and of the proof's own classes,
closures and globals, and what NumPy, decimals, the garbage collector and the tracers are set to,
have to be what they were. While a refuted proof watches its function by a tracer of its own, a
timer interrupts it. Any difference makes the exit status 1.
"""

from __future__ import annotations

import argparse
import decimal
import gc
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.snapshots import identities, snapshot
from exactgrad import prove, prove_same

ENTERING = "trace/copies.py"  # makes what a proof calls, and enters and leaves its call
CHILD_TIMEOUT_S = 20  # that a child may take
N_TIMER_INTERRUPTS = 50  # by the timer
# JAX, where it is imported, warns at a fork; `warnings` would add this name at the first of them
__warningregistry__: dict[str, Any] = {}
THETA = np.array([0.3, -1.2, 0.7])


# --- proofs, of functions that lead to NumPy in several ways


def tiny(theta: Any) -> Any:
    """Return a sum of squares by a maker, and its gradient."""
    squares = np.zeros(3)
    squares[:] = theta * theta
    return squares.sum(), 2 * theta


class Layer:
    """A linear layer with a ReLU."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def forward(self, x: Any) -> tuple[Any, Any]:
        """Return the outputs, and where the gates are open."""
        gate = x > 0
        out = np.zeros(x.shape)
        out[gate] = self.slope * x[gate]
        return out, gate

    def backward(self, gate: Any, upstream: Any) -> Any:
        """Return the product with the Jacobian."""
        return np.where(gate, self.slope * upstream, 0.0)


def network() -> Any:
    """Return a recursive function of layers that it closes over."""
    layers = [Layer(2.0), Layer(0.5)]
    step = np.vectorize(lambda v: v * v, otypes=[float])

    def applied(x: Any, depth: int) -> Any:
        if depth == len(layers):
            return step(x).sum(), 2 * x
        out, gate = layers[depth].forward(x)
        value, upstream = applied(out, depth + 1)
        return value, layers[depth].backward(gate, upstream)

    return lambda theta: applied(theta, 0)


def roots(theta: Any) -> Any:
    """Return a norm, of which digits are asked, and its gradient."""
    norm = np.sqrt(np.array([*theta]) @ theta + 1)
    return norm, theta / norm


def log_sum(x: Any) -> Any:
    """Return the logarithm of a sum of exponentials, shifted."""
    maximum = x.max()
    return maximum + np.log(np.exp(x - maximum).sum())


def wrong(theta: Any) -> Any:
    """Return a value and a gradient that is too large: the proof says at which line."""
    value = np.zeros(1)
    value[0] = (theta**3).sum()
    d_theta = 4 * theta**2
    return value[0], d_theta


NETWORK = network()
PROOFS: dict[str, Callable[[], Any]] = {
    "network": lambda: prove(NETWORK, THETA, n_points=2),
    "roots": lambda: prove(roots, THETA, n_points=1),
    "same": lambda: prove_same(log_sum, lambda x: np.log(np.exp(x).sum()), THETA),
}


# --- what has to stay


def process_state() -> dict[Any, Any]:
    """Return by identity what dictionaries hold, and the settings of the process."""
    state: dict[Any, Any] = {**identities(snapshot() | {"Layer": dict(vars(Layer))})}
    del state["threading"]  # which a fork changes
    state |= {("module", name): id(module) for name, module in [*sys.modules.items()]}
    state |= {("cell", id(cell)): id(cell.cell_contents) for cell in _cells(NETWORK)}
    settings = np.geterr(), repr(decimal.getcontext()), gc.isenabled(), sys.gettrace()
    return state | {"settings": (*settings, len(warnings.filters))}


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        yield cell
        if isinstance(cell.cell_contents, FunctionType) and cell.cell_contents is not function:
            yield from (c for c in cell.cell_contents.__closure__ or () if c is not cell)


def changed_names(state_before: dict[Any, Any]) -> list[str]:
    """Return the names of what has changed since, and np.zeros if arrays cannot be pickled."""
    state = process_state()
    changed = [str(key) for key in state_before if state.get(key) != state_before[key]]
    try:
        is_pickled = type(pickle.loads(pickle.dumps(np.zeros(1)))) is np.ndarray
    except Exception:
        is_pickled = False
    return changed if is_pickled else [*changed, "np.zeros"]


# --- interrupts


class Interrupted(NamedTuple):
    """An interrupt after which something had changed."""

    event: int
    position: str
    status: int  # of the child; 1: something was another, 14: it did not end


class Interrupts:
    """A tracer that interrupts children of this process at chosen events."""

    def __init__(
        self, files: str, is_chosen: Callable[[int], bool], state_before: dict[Any, Any]
    ) -> None:
        self.files = files
        self.is_chosen = is_chosen
        self.state_before = state_before
        self.events = 0
        self.children = 0
        self.is_child = False
        self.failed: list[Interrupted] = []

    def run(self, work: Callable[[], Any]) -> Interrupts:
        """Run the work, and once more in each child that is interrupted."""
        tracer = sys.gettrace()
        try:
            sys.settrace(self.trace_calls)
            try:
                work()
            finally:
                sys.settrace(tracer)
        except KeyboardInterrupt:
            if not self.is_child:
                raise
        finally:
            if self.is_child:
                changed = changed_names(self.state_before)
                print(*changed[:3], sep=", ", end="\n" * bool(changed), flush=True)
                os._exit(bool(changed))
        return self

    def trace_calls(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow a function of the chosen files."""
        file = frame.f_code.co_filename
        if self.files not in file or (file == __file__ and frame.f_code.co_name == "run"):
            return None
        frame.f_trace_opcodes = True
        return self.trace_events

    def trace_events(self, frame: FrameType, event: str, _: Any) -> Any:
        """Count a line or an opcode; interrupt a child there if it is chosen."""
        if event not in ("line", "opcode"):
            return self.trace_events
        self.events += 1
        if not self.is_chosen(self.events):
            return self.trace_events
        self.children += 1
        if (child := os.fork()) == 0:
            self.is_child = True
            signal.alarm(CHILD_TIMEOUT_S)
            raise KeyboardInterrupt
        status = os.waitpid(child, 0)[1]
        if status:
            position = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            self.failed.append(
                Interrupted(self.events, position, os.waitstatus_to_exitcode(status))
            )
        return self.trace_events


def evenly(work: Callable[[], Any], files: str, interrupts: int | None) -> Interrupts:
    """Interrupt work at events evenly spread over the files whose path contains `files`."""
    work()  # what is imported late and remembered is there
    events = Interrupts(files, lambda _: False, {}).run(work).events
    stride = max(1, events // interrupts) if interrupts else 1
    return Interrupts(files, lambda event: event % stride == 0, process_state()).run(work)


def by_timer(work: Callable[[], Any], times: int) -> list[list[str]]:
    """Interrupt work after random times, and return what had changed after each."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    work()
    rng = np.random.default_rng(0)
    state_before = process_state()
    changed = []
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-3, 0.1))
                work()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            changed.append(changed_names(state_before))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    return [names for names in changed if names]


def main(argv: list[str] | None = None) -> int:
    """Interrupt all proofs; return 1 if anything has changed after one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--interrupts", type=int, default=100_000, help="in all (%(default)d)")
    parser.add_argument("--entering", default=ENTERING, help="the file of which all is interrupted")
    options = parser.parse_args(argv)
    n_per_proof = options.interrupts // len(PROOFS)
    trials = {"entering": lambda: evenly(lambda: prove(tiny, THETA), options.entering, None)}
    trials |= {
        name: lambda work=work: evenly(work, "", n_per_proof) for name, work in PROOFS.items()
    }
    failed = False
    for name, trial in trials.items():
        result = trial()
        print(
            f"{name}: {len(result.failed)} of {result.children} of {result.events} events",
            flush=True,
        )
        for interrupted in result.failed[:5]:
            print(f"  {interrupted}", flush=True)
        failed |= bool(result.failed)
    changed = by_timer(lambda: str(prove(wrong, THETA)), N_TIMER_INTERRUPTS)
    print(
        f"explained: {len(changed)} of {N_TIMER_INTERRUPTS} by the timer", *changed[:1], flush=True
    )
    return int(failed or bool(changed))


if __name__ == "__main__":
    sys.exit(main())
