"""Compare checkers of gradients by the mistakes that they see and the right passes they accuse.

    python benchmarks/gradient_checkers.py           # all of it; prints README's table
    python benchmarks/gradient_checkers.py --print   # the table of what was measured

Every backward pass of the galleries of PyTorch and JAX is checked twice, as it is right and as it
is wrong, by `torch.autograd.gradcheck` or `jax.test_util.check_grads` and by `exactgrad`, each with
the settings that people use, at random inputs and at inputs that are written down quickly (zeros,
ones, 0 1 2 ..., one-hot rows). gradcheck gets the function itself, of which it compares the whole
Jacobian; the others get a scalar loss. `exactgrad` accuses if it refutes, and has no verdict where
it says so, such as at a kink or a tie. The others accuse if they return False or raise; they have
no verdict if there is no value, as of a singular matrix.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # to run as a plain script

RESULTS_PATH = ROOT / "benchmarks" / "results" / "gradient_checkers.json"
INPUTS = ("random", "zeros", "ones", "arange", "one-hot")
N_WARM_UP = 2  # passes that are checked before anything is timed


class Checker(NamedTuple):
    """One row of the table: a checker with its settings.

    `accuses` takes a program of the gallery and its inputs, theta first, and returns whether the
    checker says that the gradient is wrong, or None if it has no verdict.
    """

    name: str
    settings: str
    framework: str
    dtype: str
    accuses: Callable[..., bool | None]


def at_inputs(kind: str, value: NDArray[Any]) -> NDArray[Any]:
    """Return `value` if `kind` is "random", else an array of its shape, as of `INPUTS`."""
    shape = value.shape
    if kind == "random":
        return value
    if kind == "arange":
        return np.arange(value.size, dtype=value.dtype).reshape(shape)
    if kind == "one-hot" and shape:
        rows = np.arange(value.size // shape[-1]) % shape[-1]
        return np.eye(shape[-1], dtype=value.dtype)[rows].reshape(shape)
    return np.full(shape, kind != "zeros", value.dtype)


def convert(inputs: Sequence[Any], kind: str, to_array: Callable[[Any], Any]) -> list[Any]:
    """Return the inputs with theta, the first of them, replaced as of `kind`.

    Every array and tensor, also in tuples, is passed through `to_array`.
    """

    def convert_value(value: Any, kind: str) -> Any:
        if isinstance(value, tuple | list):
            return tuple(convert_value(element, kind) for element in value)
        return to_array(at_inputs(kind, np.asarray(value)))

    theta, *data = inputs
    return [convert_value(theta, kind), *(convert_value(value, "random") for value in data)]


# --- PyTorch


def to_tensor(dtype: str) -> Callable[[NDArray[Any]], Any]:
    """Return a function from an array to a tensor, of `dtype` if the array has floats."""
    import torch

    def convert(value: NDArray[Any]) -> Any:
        tensor = torch.as_tensor(np.array(value))
        return tensor.to(getattr(torch, dtype)) if tensor.is_floating_point() else tensor

    return convert


def gradcheck(**options: Any) -> Callable[..., bool]:
    """Return a check by `torch.autograd.gradcheck` with these options."""

    def accuses(loss: Any, theta: Any, weights: Any, *data: Any) -> bool:
        import torch

        theta = [tensor.detach().requires_grad_() for tensor in theta]
        return not torch.autograd.gradcheck(
            lambda *inputs: loss.apply(*inputs, *data), theta, **options
        )

    return accuses


# --- JAX


def check_grads(loss: Any, theta: Any, *data: Any) -> bool:
    """Return whether `jax.test_util.check_grads` accuses; it raises AssertionError if so."""
    from jax.test_util import check_grads

    if isinstance(loss, tuple):
        from gallery.jax_programs import custom

        check_grads(custom(*loss), (theta, *data), order=1, modes=["rev"])
    else:
        check_grads(lambda theta: loss(theta, *data), (theta,), order=1, modes=["rev"])
    return False


# --- exactgrad


def exactgrad(framework: str) -> Callable[..., bool | None]:
    """Return a check by `exactgrad.torch` or `exactgrad.jax`."""

    def accuses(program: Any, *inputs: Any) -> bool | None:
        prover = import_module(f"exactgrad.{framework}")
        if isinstance(program, tuple):
            proof = prover.prove_vjp(*program, *inputs)
        else:
            proof = prover.prove(program, *inputs)
        if proof:
            return False
        return True if proof.verdict == "refuted" else None

    return accuses


CHECKERS = [
    Checker("torch gradcheck", "as it is", "torch", "float64", gradcheck()),
    Checker("torch gradcheck", "fast_mode=True", "torch", "float64", gradcheck(fast_mode=True)),
    Checker("torch gradcheck", "eps=1e-3, atol=1e-2", "torch", "float32",
            gradcheck(eps=1e-3, atol=1e-2)),
    Checker("torch gradcheck", "as it is", "torch", "float32", gradcheck()),
    Checker("exactgrad", "as it is", "torch", "float64", exactgrad("torch")),
    Checker("exactgrad", "as it is", "torch", "float32", exactgrad("torch")),
    Checker("jax check_grads", 'order=1, modes=["rev"]', "jax", "float64", check_grads),
    Checker("jax check_grads", 'order=1, modes=["rev"]', "jax", "float32", check_grads),
    Checker("exactgrad", "as it is", "jax", "float64", exactgrad("jax")),
]  # fmt: skip


def gallery(framework: str) -> list[Any]:
    """Return the backward passes of a framework's gallery."""
    if framework == "torch":
        from gallery.torch_programs import TORCH

        return TORCH
    import jax
    from gallery.jax_programs import JAX

    jax.config.update("jax_enable_x64", True)
    return JAX


def check(checker: Checker, program: Any, inputs: Sequence[Any]) -> tuple[bool | None, float]:
    """Return whether a checker accuses (None: no verdict), and its seconds of processor time."""
    start_time = time.process_time()
    accused: bool | None = True  # an exception is how checks and PyTorch say that it is wrong
    try:
        accused = checker.accuses(program, *inputs)
    except Exception as error:
        if "LinAlgError" in type(error).__name__ or checker.name == "exactgrad":
            accused = None
    return accused, time.process_time() - start_time


def measure(checker: Checker, kind: str) -> dict[str, Any]:
    """Return how a checker judges all passes of its gallery at one kind of inputs."""
    to_array: Callable[[Any], Any] = np.asarray
    if checker.framework == "torch":
        to_array = to_tensor(checker.dtype)
    elif checker.dtype == "float32":
        to_array = to_single
    passes = gallery(checker.framework)
    verdicts, seconds = [], []
    for backward_pass in [*passes[:N_WARM_UP], *passes]:
        for is_wrong in (False, True):
            program, *inputs = backward_pass.make(is_wrong)
            verdict, duration = check(checker, program, convert(inputs, kind, to_array))
            verdicts.append(verdict)
            seconds.append(duration)
    right, wrong = verdicts[2 * N_WARM_UP :: 2], verdicts[2 * N_WARM_UP + 1 :: 2]
    titles = [backward_pass.title for backward_pass in passes]
    return {
        "checker": checker.name,
        "settings": checker.settings,
        "framework": checker.framework,
        "dtype": checker.dtype,
        "inputs": kind,
        "n_passes": len(passes),
        "not_seen": [title for title, accused in zip(titles, wrong, strict=True) if not accused],
        "accused": [title for title, accused in zip(titles, right, strict=True) if accused],
        "n_without_verdict": (right + wrong).count(None),
        "n_told_apart": list(zip(right, wrong, strict=True)).count((False, True)),
        "median_seconds": round(statistics.median(seconds[2 * N_WARM_UP :]), 4),
        "max_seconds": round(max(seconds[2 * N_WARM_UP :]), 4),
    }


def to_single(value: NDArray[Any]) -> NDArray[Any]:
    """Return an array of floats in single precision, and any other array itself."""
    return value.astype(np.float32) if np.issubdtype(value.dtype, np.floating) else value


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of README, one row for each checker, its settings and kind of inputs."""
    return "\n".join([
        "| checker | settings | of | floats | inputs | mistakes seen | right ones accused "
        "| no verdict | told apart | seconds, median | most |",
        "|---|---|---|---|---|---:|---:|---:|---:|---:|---:|",
        *map(row, results),
    ])  # fmt: skip


def row(result: dict[str, Any]) -> str:
    """Return a row of the table."""
    n = result["n_passes"]
    cells = [
        result["checker"],
        f"`{result['settings']}`" if "=" in result["settings"] else result["settings"],
        result["framework"],
        result["dtype"],
        result["inputs"],
        f"{n - len(result['not_seen'])} of {n}",
        f"{len(result['accused'])} of {n}",
        f"{result['n_without_verdict']} of {2 * n}",
        f"{result['n_told_apart']} of {n}",
        f"{result['median_seconds']:.2g}",
        f"{result['max_seconds']:.2g}",
    ]
    return "| " + " | ".join(cells) + " |"


def measurements(frameworks: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what `measure` returns for each checker of the frameworks and each kind of inputs."""
    for checker in CHECKERS:
        if checker.framework not in frameworks:
            continue
        for kind in INPUTS:
            yield measure(checker, kind)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, save and print the table; or print the saved one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="what was measured, not anew")
    parser.add_argument("--only", choices=["torch", "jax"], nargs="+", default=["torch", "jax"])
    options = parser.parse_args(arguments)
    results = json.loads(RESULTS_PATH.read_text("utf-8")) if RESULTS_PATH.exists() else []
    if not options.print:
        warnings.simplefilter("ignore")  # of gradcheck, in single precision
        results = [saved for saved in results if saved["framework"] not in options.only]
        for result in measurements(options.only):
            print(row(result), flush=True)
            results.append(result)
        results.sort(key=lambda result: result["framework"], reverse=True)
        RESULTS_PATH.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
