"""Make one call, and say what became of it: done, refused in words, or a defect."""

from __future__ import annotations

import dataclasses
import linecache
import re
import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .calls import Call, drawn, names
from .children import GROWN, ROOT, Overtime, grown

__all__ = ["Verdict", "call", "judged"]

PACKAGE = str(ROOT / "bbb_numpy")
DOCUMENTED = (TypeError, ValueError, KeyError, OSError, AttributeError, ArithmeticError)
# Names that messages use as well
ALSO = {
    "x": {"X"},
    "X": {"x", "Input", "overflows", "extrapolates"},
    "y": {"Y", "target", "class", "count", "label", "overflows"},
    "hidden_layer_sizes": {"sizes"},
    "likelihood": {"count", "class"},
    "optimizer": {"overflows"},
    "kl_warm_up": {"warm-up"},
    "warm_up": {"warm-up"},
    "draws": {"signal_to_noise"},
}
FREE = ("NonFiniteError", "Diverged")  # what happened, not what was given
LEAKING = (RuntimeWarning, DeprecationWarning, FutureWarning, SyntaxWarning)
names_ = cache(names)


class Verdict(NamedTuple):
    """What became of a call."""

    result: str  # done, or the kind of the exception
    defect: str = ""  # empty: none
    text: str = ""


def call(seed: int, trial: int, loud: bool = False) -> dict[str, Any]:
    """Make the call of this number; a defect is told with the shortest call that shows it."""
    known = names_()
    one = drawn(np.random.default_rng([seed, trial]))
    verdict = judged(one, known)
    if verdict.defect:
        for change in one.changed:
            shorter = one.without(*change)
            if judged(shorter, known).defect == verdict.defect:
                one = shorter
    if loud:
        print(one, *verdict, sep="\n")
    if not verdict.defect:
        return {"what": verdict.result}
    return {"what": one.entry.text, "defect": verdict.defect, "text": f"{one}\n{verdict.text}"}


def judged(one: Call, known: dict[str, Any]) -> Verdict:
    """Make a call and judge it."""
    known["touched"].clear()
    with warnings.catch_warnings(record=True) as warned, grown() as peak:
        warnings.simplefilter("always")
        try:
            result, error = eval(str(one), known), None
        except Overtime:
            return Verdict("overtime", "hang", "took too long")
        except Exception as caught:
            result, error = None, caught
    close_figures()
    for warning in warned:
        if issubclass(warning.category, LEAKING) and "bbb_numpy" in warning.filename:
            where = f"{Path(warning.filename).name}:{warning.lineno}"
            name = warning.category.__name__
            return Verdict(name, f"{name} at {where}", str(warning.message))
    if peak() > GROWN:
        return Verdict("memory", "memory", f"grew by {peak() >> 20} MB")
    if error is not None:
        return refusal(error, one) or changed(error, known)
    if not one.entry.nan and not warned and has_nan(result):
        return Verdict("nan", "nan without a warning", repr(result)[:300])
    return Verdict("done")


def close_figures() -> None:
    """Forget the figures that a call made."""
    from matplotlib import pyplot

    pyplot.close("all")


def refusal(error: Exception, one: Call) -> Verdict | None:
    """Return the defect of an exception that does not say, in our words, what to change."""
    kind = type(error).__name__
    *outer, frame = traceback.extract_tb(error.__traceback__)
    theirs = any("sklearn" in Path(one.filename).parts for one in (*outer, frame))
    where, line = Path(frame.filename), linecache.getline(frame.filename, frame.lineno or 0).strip()
    place = f"{where.name}:{frame.lineno}"
    said = f"{kind}: {error}"[:500]
    if kind == "MissingDataError":
        return None  # names the file, and where to get it: nobody's argument
    if frame.filename == "<string>" or "required positional argument" in str(error):
        return None  # raised by a function that was an argument
    ours = frame.filename.startswith(PACKAGE) and line.startswith("raise")
    reading = isinstance(error, OSError) and error.filename is not None
    if not isinstance(error, DOCUMENTED) or not (ours or reading or theirs):
        return Verdict(kind, f"bare {kind} at {place}", said)
    if not one.changed:
        return Verdict(kind, f"{kind} without a reason at {place}", said)
    if not (reading or theirs or kind in FREE or is_named(one, str(error))):
        return Verdict(kind, f"{kind} names no argument at {place}", said)
    return None


def is_named(one: Call, message: str) -> bool:
    """Whether a message names one of the changed arguments, or a part that was given for it."""
    words = set()
    for which, name in one.changed:
        words |= {name.rstrip("s"), *ALSO.get(name, ())}
        given = re.match(r"[A-Za-z]{3,}", one.given[which][name].lstrip("'"))
        words |= {given[0]} if given else set()
    return any(re.search(rf"\b{re.escape(word)}", message, re.IGNORECASE) for word in words)


def changed(error: Exception, known: dict[str, Any]) -> Verdict:
    """Return the verdict on a refusal: a defect if it has changed a fitted learner."""
    kind = type(error).__name__
    if kind != "NonFiniteError":  # after which it is documented
        for learner, before in known["touched"]:
            if known["held"](learner) != before:
                return Verdict(kind, "changed state after a failure", f"{kind}: {error}"[:300])
    return Verdict(kind)


def has_nan(result: Any, levels: int = 4) -> bool:
    """Whether a result holds nan, at most so many levels inside."""
    if isinstance(result, float | complex | np.generic | np.ndarray):
        array = np.asarray(result)
        return array.dtype.kind in "fc" and bool(np.isnan(array).any())
    if levels == 0 or isinstance(result, str | bytes):
        return False
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        inside: Any = (getattr(result, one.name) for one in dataclasses.fields(result))
    elif isinstance(result, Mapping):
        inside = result.values()
    elif isinstance(result, list | tuple):
        inside = result
    else:
        return False
    return any(has_nan(one, levels - 1) for one in islice(inside, 100))
