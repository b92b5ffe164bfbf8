"""Try what nobody should type: hostile calls, settings and proofs, damaged files, kills, Ctrl-Cs.

    python -m benchmarks.fuzz                            # all of it, some minutes
    python -m benchmarks.fuzz --only calls --examples 20000 --seed 7

A hostile argument may be refused, by an error of the kinds that are documented. A defect is any
other exception (Hypothesis prints the shortest call), a hang, a crash, a warning of NumPy's out of
the package, a learner that a failed call has changed; of a setting in another type, that a part
stores or computes something else; of a proof, that anything in the process is another object
afterwards; of a file, that it is read as what it is not; of a killed process, that anything
finished is lost. Any defect makes the exit status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import inspect
import io
import os
import pickle
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import bbb_numpy
import bbb_numpy.evaluation
from bbb_numpy.cli.main import main as command
from benchmarks.fuzz_proofs import Program, check_program, programs
from benchmarks.fuzz_settings import Setting, check_setting, settings_given

CALL_TIMEOUT_S = 30  # that one call may take
DOCUMENTED_ERRORS = (
    TypeError, ValueError, KeyError, AttributeError, OSError, ArithmeticError, MemoryError,
    RuntimeError,  # scikit-learn's own, of `predict` with return_std and return_cov
)  # fmt: skip
# Names of which calls are made
NAMESPACE_CODE = """
import copy
from decimal import Decimal
from fractions import Fraction
import numpy as np, pandas as pd
from scipy import sparse
import bbb_numpy as bbb

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 2))
y = X[:, 0] + 0.1 * rng.standard_normal(12)
labels = (y > 0).astype(int)
shares = rng.dirichlet(np.ones(3), 12)
model = bbb.Model(bbb.MLP((2, 3, 1)))
estimator = bbb.Reparameterised(model)
theta = estimator.init(rng)
square = lambda t: ((t**2).sum(), 2 * t)
regressor = bbb.BayesianMLPRegressor((3,), epochs=2, random_state=0)
classifier = bbb.BayesianMLPClassifier((3,), epochs=2, random_state=0)
"""
LEARNERS = {"regressor": "y", "classifier": "labels"}  # and the targets of each
# Values that work, by the name of the argument
VALID_ARGUMENTS = {
    "X": "X", "x": "X", "y": "y", "sizes": "(2, 3, 1)", "network": "bbb.MLP((2, 3, 1))",
    "model": "model", "estimator": "estimator", "family": "estimator", "theta": "theta",
    "rng": "rng", "value_and_grad": "square", "proba": "shares", "labels": "np.arange(12) % 3",
    "mean": "y", "scale": "np.ones(12)", "pits": "np.linspace(0, 1, 9)", "ratio": "np.arange(9.0)",
    "share": "0.5", "means": "np.ones((5, 12, 1))", "scales": "np.ones((5, 12, 1))",
    "successes": "3", "trials": "9", "values": "y", "groups": "labels", "q": "0.5",
    "coverage": "0.9", "learner": "regressor", "path": "'model.npz'", "objective": "bbb.Renyi(0.0)",
    "log_factor": "2.0", "layout": "estimator.layout", "epochs": "2", "draws": "3", "warm_up": "3",
    "chains": "2", "progress": "False", "hidden_layer_sizes": "(3,)",
}  # fmt: skip
# Those that are given also where they have a default
ALWAYS_PASSED = {"hidden_layer_sizes", "epochs", "draws", "warm_up", "chains", "progress"}
HOSTILE_VALUES = """
None|True|0|-1|0.5|1e-320|1e308|np.nan|-np.inf|10**400|2**63|1j|Fraction(1, 3)|pd.NA|pd.NaT|''|'x'|
'1_0'|b'x'|'\\0'|np.float16(0.5)|np.longdouble('0.5')|np.timedelta64(3, 'D')|[]|{}|(3,)|{'a': 5}|
[[1, 2], [3]]|[None]|['a', 'b']|iter([1, 2])|slice(0, 2)|object()|(lambda *a: None)|
(lambda *a: 'x')|np|...|np.random.RandomState(0)|np.array(0.5)|np.array([])|np.empty((0, 2))|
np.empty((12, 0))|np.ones(12)|-np.ones(12)|np.ones((12, 1))|np.zeros((2, 2, 2))|
np.full((12, 2), np.nan)|np.full(12, np.inf)|np.full((12, 2), 1e200)|np.full((12, 2), 1e-320)|
np.array([1, 'a', None], object)|np.full((12, 2), 2**63, object)|X[::-1]|X.astype('c16')|
X.astype('>f8')|1e12 * X|np.arange(12).astype('M8[D]')|np.ma.masked_array(X, X > 0)|
sparse.csr_matrix(X)|np.matrix(X)|pd.DataFrame(X, columns=['a', 'b'])|pd.Series([1.0, None] * 6)|
pd.DataFrame({'a': [1, pd.NA] * 6, 'b': range(12)})|pd.Categorical(['a', 'b'] * 6)|
np.zeros(12, 'f8, i4')|np.tile(['no', 'yes'], 6)|bbb.Adam|bbb.Adam(1e200)|bbb.GaussianPrior|
bbb.LaplacePrior()|bbb.StudentTPrior()|bbb.PoissonLikelihood()|bbb.CategoricalLikelihood()|
bbb.FullRank()|bbb.EUBO()|bbb.NUTS()|bbb.HMC(0.5)|(2**40,)|'poisson'|'full-rank'|'map'|'iwae'|
'float16'|'flipout'|'linear'
"""
HOSTILE_CELLS = (
    """nan|inf||1_0|1,5|0x10|1e999|red|"a,b"|"|'|;|\t|true|2020-01-01|é|#|=1+1|NA|-0|$5|5 kg"""
)
FIT_COMMAND = ("fit", "data.csv", "--target", "target")


@cache
def namespace() -> dict[str, Any]:
    """Return the names of which calls are made; the learners are fitted."""
    scope: dict[str, Any] = {}
    exec(NAMESPACE_CODE, scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fitted for two epochs, on purpose
        for name, target in LEARNERS.items():
            scope[name].fit(scope["X"], scope[target])
    for module in pkgutil.iter_modules(bbb_numpy.evaluation.__path__):
        scope[module.name] = importlib.import_module(f"bbb_numpy.evaluation.{module.name}")
    scope["convergence"].import_arviz()  # which takes so long that a call may seem to hang
    return scope


@cache
def public_calls() -> dict[str, list[str]]:
    """Return what users call, and its arguments: exports, evaluation, methods of the learners."""
    scope = namespace()
    names_to_call = [f"bbb.{name}" for name in bbb_numpy.__all__]
    for module in pkgutil.iter_modules(bbb_numpy.evaluation.__path__):
        names_to_call += [
            f"{module.name}.{name}" for name in getattr(scope[module.name], "__all__", ())
        ]
    for name in LEARNERS:
        names_to_call += [
            f"{name}.{key}" for key in dir(scope[name]) if key[0] != "_" and "_request" not in key
        ]
    arguments_by_call = {}
    for text in names_to_call:
        function = eval(text, scope)
        is_error = inspect.isclass(function) and issubclass(function, BaseException)
        if callable(function) and not is_error:
            arguments_by_call[text] = arguments(function)
    return arguments_by_call


def arguments(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments, a star before those that must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # made by C
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        f"*{parameter.name}"
        if parameter.default is parameter.empty or parameter.name in ALWAYS_PASSED
        else parameter.name
        for parameter in parameters
        if parameter.kind not in variadic
    ]


def valid_call(text: str, **overrides: str) -> str:
    """Return a call, as text that can be typed in: as usual but for the other arguments."""
    required = [name[1:] for name in public_calls()[text] if name.startswith("*")]
    values = {name: VALID_ARGUMENTS.get(name, "None") for name in required}
    if "y" in values:
        values["y"] = LEARNERS.get(text.partition(".")[0], "y")
    return f"{text}({', '.join(f'{name}={value}' for name, value in (values | overrides).items())})"


@st.composite
def calls(draw: st.DrawFn) -> str:
    """Draw a call, all as usual but for one or two arguments."""
    text = draw(st.sampled_from(sorted(public_calls())))
    arguments_taken = [name.lstrip("*") for name in public_calls()[text]] or ["x"]
    changed = draw(st.lists(st.sampled_from(arguments_taken), min_size=1, max_size=2, unique=True))
    pool = st.sampled_from(HOSTILE_VALUES.replace("\n", "").split("|"))
    return valid_call(text, **{name: draw(pool) for name in changed})


class Hang(BaseException):
    """A call took too long."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise where a call hangs, or NumPy warns out of the package."""

    def stop(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(CALL_TIMEOUT_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", category=RuntimeWarning, module=r"bbb_numpy\.")
            yield
    finally:
        signal.alarm(0)


def learned_state(learner: Any) -> bytes:
    """Return what a learner has learned: names such as coef_, and not a module's __builtins__."""
    attributes = getattr(learner, "__dict__", {}).items()
    return pickle.dumps({k: v for k, v in attributes if k[-1] == "_" != k[0]})


def try_call(text: str) -> str:
    """Make a call: return what became of it, or raise what is a defect."""
    scope = dict(namespace())
    owner = text.partition(".")[0]
    if owner in LEARNERS:
        scope[owner] = pickle.loads(pickle.dumps(scope[owner]))
    state_before = learned_state(scope.get(owner))
    with limited():
        try:
            eval(text, scope)
            return "done"
        except bbb_numpy.NonFiniteError:
            return "diverged"  # training has begun, and says so
        except DOCUMENTED_ERRORS as error:
            message = str(error)
    assert message, "refused without a word"
    assert learned_state(scope.get(owner)) == state_before, (
        f"{message}: and the learner has changed"
    )
    return "refused"


@cache
def saved_model() -> tuple[bytes, Any]:
    """Return the file of a learner, and what it predicts."""
    scope = namespace()
    bbb_numpy.save(scope["regressor"], "whole.npz")
    return Path("whole.npz").read_bytes(), scope["regressor"].predict(scope["X"])


@st.composite
def damaged_models(draw: st.DrawFn) -> bytes:
    """Draw a damaged file of a learner: bits flipped, a stretch left out, doubled or replaced."""
    data = bytearray(saved_model()[0])
    positions = st.integers(0, len(data) - 1)
    for position in draw(st.lists(positions, max_size=3)):
        data[position] ^= 1 << draw(st.integers(0, 7))
    low, high = sorted((draw(positions), draw(positions)))
    middle = draw(st.sampled_from([bytes(data[low:high]), b"", bytes(data[low:high]) * 2, b"\xff"]))
    return bytes(data[:low]) + middle + bytes(data[high:])


def load_damaged(data: bytes) -> str:
    """Read a damaged model: it is refused in words, or predicts as the whole one does."""
    Path("damaged.npz").write_bytes(data)
    with limited():
        try:
            learner = bbb_numpy.load("damaged.npz")
        except (ValueError, OSError):
            return "refused"
        assert np.array_equal(learner.predict(namespace()["X"]), saved_model()[1]), (
            "read as another model"
        )
    return "done"


@st.composite
def damaged_tables(draw: st.DrawFn) -> bytes:
    """Draw a table with cells, lines and encodings that real files have."""
    rows = [["a", "b", "target"], *([f"{i}.5", f"{i * i % 7}", f"{i % 5}"] for i in range(12))]
    cells = [*HOSTILE_CELLS.split("|"), "9" * 400, "\0", "1\n2"]
    for _ in range(draw(st.integers(0, 4))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        column = draw(st.integers(-1, len(row)))
        row[max(column, 0) : column + 1] = [draw(st.sampled_from(cells))] if column >= 0 else []
    text = draw(st.sampled_from(["\n", "\r\n"])).join(
        map(draw(st.sampled_from([",", ";", "\t", " "])).join, rows)
    )
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return text.encode(encoding)[: draw(st.one_of(st.none(), st.integers(0, 300)))]


def fit_damaged(data: bytes) -> str:
    """Fit a damaged table by the command: status 0, or 2 with a reason and no file."""
    Path("data.csv").write_bytes(data)
    Path("new.npz").unlink(missing_ok=True)
    arguments = [*FIT_COMMAND, "--model", "new.npz", "--epochs", "2", "--hidden", "3"]
    stderr = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(stderr), limited():
        try:
            status = command(arguments)
        except SystemExit as exit_request:
            status = int(exit_request.code or 0)
    assert status in (0, 2), stderr.getvalue()
    assert (status == 0) is Path("new.npz").exists(), stderr.getvalue()
    assert status == 0 or "bbb-numpy" in stderr.getvalue()
    return "refused" if status else "done"


SAVING_PROGRAM = """
import numpy as np, bbb_numpy
x = np.random.default_rng(0).standard_normal((200, 2))
learner = bbb_numpy.BayesianMLPRegressor((50,), epochs=1, random_state=0).fit(x, x[:, 0])
print("ready", flush=True)
while True:
    bbb_numpy.save(learner, "model.npz")
"""


def kill(rng: np.random.Generator, program: str = SAVING_PROGRAM) -> None:
    """Kill a process that saves: the model stays whole, and the next save leaves no other file."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.3 * rng.random())
        process.kill()
    bbb_numpy.load("model.npz")
    for path in Path().glob(".model.npz.*"):
        os.utime(path, (0, 0))  # begun long ago
    bbb_numpy.save(namespace()["regressor"], "model.npz")
    leftovers = [path for path in os.listdir() if "model.npz" in path and path != "model.npz"]
    assert not leftovers, leftovers


def interrupt(rng: np.random.Generator) -> None:
    """Press Ctrl-C in a fit: status 130, no traceback, and what it says is stored is there."""
    Path("data.csv").write_text("a,target\n" + "\n".join(f"{i},{i % 7}" for i in range(300)))
    Path("model.npz").unlink(missing_ok=True)
    arguments = [*FIT_COMMAND, "--model", "model.npz", "--epochs", "1000000"]
    with subprocess.Popen(
        [sys.executable, "-m", "bbb_numpy", *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(3.0 + 3.0 * rng.random())
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr, stderr
    if "stored" in stderr:
        bbb_numpy.load("model.npz")


def try_setting(setting: Setting) -> str:
    """Give a part a number of another type: refused, or the same as by a float or an int."""
    with limited():
        return check_setting(setting, namespace())


def try_proof(program: Program) -> str:
    """Ask for a proof of a hostile function: it must leave the process as it was."""
    with limited():
        return check_program(program)


STRATEGIES: dict[str, tuple[Callable[[], Any], Callable[[Any], str], int]] = {
    "calls": (calls, try_call, 1), "models": (damaged_models, load_damaged, 4),
    "tables": (damaged_tables, fit_damaged, 20), "settings": (settings_given, try_setting, 1),
    "proofs": (programs, try_proof, 4),
}  # fmt: skip
PROCESS_TRIALS = {"kills": kill, "interrupts": interrupt}


def run(name: str, examples: int, random_seed: int) -> None:
    """Try one sort of input and print how many were done and refused; a defect raises."""
    counts: dict[str, int] = {}
    if name in PROCESS_TRIALS:
        for trial in range(examples // 250 + 1):
            PROCESS_TRIALS[name](np.random.default_rng([random_seed, trial]))
        print(f"{name}: {examples // 250 + 1} survived", flush=True)
        return
    strategy, check, divisor = STRATEGIES[name]

    @seed(random_seed)
    @settings(
        max_examples=examples // divisor + 1, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(strategy())
    def check_example(example: Any) -> None:
        outcome = check(example)
        counts[outcome] = counts.get(outcome, 0) + 1

    check_example()
    print(f"{name}: {counts}", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Try every sort of input in a folder of its own; return 1 if any has a defect."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*STRATEGIES, *PROCESS_TRIALS], metavar="KIND")
    parser.add_argument("--examples", type=int, default=5000, help="of calls (%(default)d)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    faulthandler.enable()
    failed = False
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in args.only or [*STRATEGIES, *PROCESS_TRIALS]:
            try:
                run(name, args.examples, args.seed)
            except (Exception, Hang):
                sys.excepthook(*sys.exc_info())
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
