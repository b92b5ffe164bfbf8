"""Settings of parts, given as numbers of other types: refused, or the same as a float or an int.

NumPy's whole numbers, fractions, arrays without axes, text, truth values. What a part accepts it
has to store as the float (or int) that it is, and to compute with it what it computes with that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import bbb_numpy
from bbb_numpy.learners.base import Learner
from bbb_numpy.parts.hyperpriors import Hyperprior
from bbb_numpy.parts.likelihoods import Likelihood
from bbb_numpy.parts.posteriors import Posterior
from bbb_numpy.parts.priors import Prior
from bbb_numpy.registry import FAMILIES, SHIPPED_CLASSES

__all__ = ["REFUSALS", "Setting", "check_setting", "fields", "settings_given"]

REFUSALS = (TypeError, ValueError, OverflowError)
NUMBERS = ("0.5", "0.25", "0.1", "1", "2", "3", "5", "100", "200", "-1", "-2", "0", "1e-3", "1e300")
# How a number may be given
VALUE_FORMS = (
    "np.int64({})", "np.uint8({})", "np.int8({})", "np.uint64({})", "np.float16({})",
    "np.float32({})", "np.float64({})", "np.longdouble({})", "np.array({})", "np.array([{}])",
    "np.array({}, np.float16)", "np.array({}, np.uint8)", "np.array({}, object)", "Fraction('{}')",
    "Decimal('{}')", "'{}'", "b'{}'", "[{}]", "({},)", "complex({})", "np.complex128({})",
    "bool({})", "np.bool_({})", "np.str_('{}')", "np.ma.masked_array({})", "int({})", "{}",
    "np.timedelta64({}, 's')", "np.datetime64(int({}), 's')", "type('F', (float,), {{}})({})",
    "type('I', (int,), {{}})({})", "pd.Series([{}])", "float('nan')", "np.float32('nan')",
    "np.array(np.nan)", "Decimal('nan')", "float('inf')", "np.float16('inf')", "pd.NA", "None",
)  # fmt: skip


Setting = tuple[str, str, str]  # names of a class and of a field, and a value as text
NUMBER_TYPES = {"float": float, "float | None": float, "int": int, "int | None": int}
LEARNER_SETTINGS = {  # which get them by set_params; the first are passed on to parts
    "prior__scale": float, "likelihood__scale": float, "inference__rho_offset": float,
    "optimizer__learning_rate": float, "objective__beta": float, "validation_fraction": float,
    "epochs": int, "batch_size": int, "samples": int, "predict_samples": int,
}  # fmt: skip
TUPLE_SETTINGS = {("LayerwiseGaussianPrior", "scales"): float, ("MLP", "sizes"): int}
X, Y = (np.random.default_rng(seed).standard_normal((12, 2)) for seed in (0, 1))


@cache
def parts() -> dict[str, Any]:
    """Return an object of each class that has settings which are numbers, by its name."""
    model = bbb_numpy.Model(bbb_numpy.MLP((2, 3, 2)))
    by_name = {"MLP": model.network, "LogJoint": bbb_numpy.LogJoint(model, X, Y)}
    exports = {name: getattr(bbb_numpy, name) for name in bbb_numpy.__all__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of what is deprecated
        for name, cls in (SHIPPED_CLASSES | exports).items():
            if dataclasses.is_dataclass(cls) and not issubclass(cls, Learner):
                with contextlib.suppress(TypeError):  # for those that need more than numbers
                    by_name.setdefault(name, cls())
    return by_name


@cache
def fields() -> dict[tuple[str, str], type]:
    """Return all settings that are numbers, as names of a class and of a field, with their type."""
    types: dict[tuple[str, str], type] = dict(TUPLE_SETTINGS)
    for name, part in parts().items():
        for field in dataclasses.fields(part):
            if field.init and str(field.type) in NUMBER_TYPES:
                types[name, field.name] = NUMBER_TYPES[str(field.type)]
    types |= {
        ("BayesianMLPRegressor", field): number_type
        for field, number_type in LEARNER_SETTINGS.items()
    }
    return types


@st.composite
def settings_given(draw: st.DrawFn) -> Setting:
    """Draw a setting and a value of another type."""
    name, field = draw(st.sampled_from(sorted(fields())))
    text = draw(st.sampled_from(VALUE_FORMS)).format(draw(st.sampled_from(NUMBERS)))
    return name, field, text


def with_setting(name: str, field: str, value: Any) -> Any:
    """Return a part with one other setting, or a learner that was fitted with it."""
    if name in parts():
        part = parts()[name]
        field_value = {"sizes": (value, 3, 2), "scales": (value, 0.5)}.get(field, value)
        return dataclasses.replace(part, **{field: field_value})
    learner = bbb_numpy.BayesianMLPRegressor((3,), epochs=2, random_state=0, progress=False)
    learner.set_params(**{field: value})
    if "__" in field:
        return getattr(learner, field.partition("__")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is fitted for two epochs, on purpose
        return learner.set_params(early_stopping=bbb_numpy.EarlyStopping(1)).fit(X, Y[:, 0])


def check_setting(setting: Setting, scope: dict[str, Any]) -> str:
    """Set a field of a part: return what became of it, or raise if that is a defect."""
    name, field, text = setting
    try:
        value = eval(text, scope)
    except (TypeError, ValueError, ArithmeticError):
        return "no such value"
    try:
        part = with_setting(name, field, value)
    except bbb_numpy.NonFiniteError:
        return "diverged"
    except REFUSALS as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert field.rpartition("__")[2] in message, f"refused without its name: {message}"
        return "refused"
    if value is None:
        return "done"
    assert not isinstance(value, str | bytes), f"text is accepted: {value!r}"
    expected = with_setting(name, field, fields()[name, field](value))
    assert stored_numbers(part) == stored_numbers(expected), f"{part} is stored, and not {expected}"
    assert compute_with(part) == compute_with(expected), "another value or gradient"
    return "done"


def stored_numbers(part: Any) -> tuple[Any, ...]:
    """Return the numbers that a part stores, with their types.

    None of a learner, which keeps its arguments as they are.
    """
    if isinstance(part, Learner):
        return ()
    stored = [getattr(part, field.name) for field in dataclasses.fields(part)]
    numbers = [value for value in stored if np.ndim(value) == 0 or isinstance(value, tuple)]
    return tuple((type(value), repr(value)) for value in numbers if "object at" not in repr(value))


@np.errstate(all="ignore")
def compute_with(part: Any) -> Any:
    """Return what is computed with a part, bit for bit, or the type of the error that it raises."""
    try:
        return tuple(np.asarray(result).tobytes() for result in _computed_numbers(part))
    except (*REFUSALS, ArithmeticError, RuntimeError) as error:
        return type(error)


def _computed_numbers(part: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    x = X[:4]
    y = Y[:4, :1]
    u = np.array([0.3, -0.2, 1.5])
    if isinstance(part, Learner):
        return (part.predict(X),)
    if isinstance(part, bbb_numpy.LogJoint):
        return part(rng.standard_normal((1, part.layout.size)))
    model_parts = {}
    for role, base_class in (("prior", Prior), ("likelihood", Likelihood)):
        model_parts |= {role: part} if isinstance(part, base_class) else {}
    estimator_parts = {"posterior": part} if isinstance(part, Posterior) else {}
    if any(isinstance(part, type(objective)) for objective in FAMILIES["objective"].named.values()):
        estimator_parts["objective"] = part
    if model_parts or estimator_parts:
        model = bbb_numpy.Model(bbb_numpy.MLP((2, 3, 1)), **model_parts)
        estimator = bbb_numpy.Reparameterised(model, **estimator_parts)
        theta = estimator.init(rng)
        estimate = estimator.value_and_grad(theta, estimator.draw(rng, 2, 4), x, y)
        return estimate[0], estimate[1]
    if isinstance(part, Hyperprior):
        return part.log_density(u, u + 1), part.slope(u, u + 1)
    if hasattr(part, "update") and hasattr(part, "init"):
        theta = np.array([0.5, -1.0, 2.0])
        grad = np.array([0.1, 3.0, -0.2])
        state = part.init(theta)
        part.update(theta, grad, state, 0.5)
        return (theta,)
    if callable(part):
        return (part(3, 10),)
    return ()
