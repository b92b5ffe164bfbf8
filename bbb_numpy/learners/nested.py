"""Fields of parts as parameters of a learner: ``prior__scale``, ``optimizer__learning_rate``.

The parts are frozen, so that a part is replaced by another one, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ..gradients.catalogue import LIKELIHOODS, OBJECTIVES, PRIORS, WARM_UPS
from ..model.kl_weights import NoWarmUp
from ..model.objectives import FreeEnergy
from ..sampling.run import SAMPLERS
from .inference import INFERENCES, TRAINING, check_inference, is_sampled, natural_objective
from .plan import OPTIMIZER, Task

__all__ = ["nested_params", "with_nested"]

# 'mle' is no part but a posterior and an objective together
NAMED = {name: part for name, part in INFERENCES.items() if name != "mle"}
TABLES: dict[str, Mapping[str, Any]] = {
    "prior": PRIORS,
    "likelihood": LIKELIHOODS,
    "inference": NAMED,
    "objective": OBJECTIVES,
    "kl_warm_up": WARM_UPS,
    "sampler": SAMPLERS,
}


def nested_params(params: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Return the fields of all parts among `params`, by names such as ``prior__scale``.

    Where a parameter is None or a short name, those of the part that it stands for.
    """
    found: dict[str, Any] = {}
    for name in params:
        found |= _listed(name, _stands_for(name, params, task))
    return found


def with_nested(
    params: Mapping[str, Any], changes: Mapping[str, Any], task: Task
) -> dict[str, Any]:
    """Return `params` with the fields named by `changes` replaced; nothing is changed in place.

    Raises
    ------
    TypeError, ValueError
        If a part has no such field, or does not accept the value.
    """
    changed, grouped = dict(params), _grouped(changes)
    for name in params:  # in their order: what objective=None means depends on inference
        if name in grouped:
            part = _stands_for(name, changed, task)
            if part is None:
                raise ValueError(
                    f"Invalid parameter {next(iter(grouped[name]))!r} for {name}="
                    f"{params[name]!r}, which has no parameters of its own. Set {name} to an "
                    "object that has"
                )
            changed[name] = _replaced(name, part, grouped[name])
    return changed


def _grouped(changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort ``{"prior__scale": 1.0}`` into ``{"prior": {"scale": 1.0}}``."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        head, _, rest = name.partition("__")
        grouped.setdefault(head, {})[rest] = value
    return grouped


def _is_part(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _stands_for(name: str, params: Mapping[str, Any], task: Task) -> Any:
    """Return the part that a parameter stands for; None if that is nothing with fields."""
    value = params[name]
    if value is None:
        value = _default(name, params, task)
    if isinstance(value, str):
        value = TABLES.get(name, {}).get(value)
    return value if _is_part(value) else None


def _default(name: str, params: Mapping[str, Any], task: Task) -> Any:
    """Return what None means, for parameters whose None is a part."""
    inference = params.get("inference")
    if name in TRAINING and is_sampled(inference):
        return None
    if name == "objective":
        try:
            return natural_objective(check_inference(inference) and inference)
        except (TypeError, ValueError):
            return None  # an inference that `fit` will refuse
    if name == "kl_warm_up":
        objective = _stands_for("objective", params, task)
        return task.kl_warm_up if isinstance(objective, FreeEnergy) else NoWarmUp()
    return {"prior": task.prior, "likelihood": task.likelihood, "optimizer": OPTIMIZER}.get(name)


def _listed(name: str, part: Any) -> dict[str, Any]:
    if not _is_part(part):
        return {}
    found: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        found[f"{name}__{field.name}"] = value
        found |= _listed(f"{name}__{field.name}", _inside(field.name, value))
    return found


def _inside(name: str, value: Any) -> Any:
    """Return the part that a field of a part holds, maybe by its name."""
    return TABLES.get(name, {}).get(value) if isinstance(value, str) else value


def _replaced(name: str, part: Any, changes: Mapping[str, Any]) -> Any:
    """Return `part` with other fields; all at once, since they may be checked together."""
    known = [field.name for field in fields(part)]
    new: dict[str, Any] = {key: value for key, value in changes.items() if "__" not in key}
    deeper = _grouped({key: value for key, value in changes.items() if "__" in key})
    for key in [*new, *deeper]:
        if key not in known:
            raise ValueError(
                f"Invalid parameter {key!r} for {name}={part!r}. Valid parameters are: {known!r}."
            )
    for key, inner in deeper.items():
        held = _inside(key, new.get(key, getattr(part, key)))
        if not _is_part(held):
            raise ValueError(
                f"Invalid parameter {next(iter(inner))!r} for {name}__{key}={held!r}, which has "
                "no parameters of its own"
            )
        new[key] = _replaced(f"{name}__{key}", held, inner)
    return replace(part, **new)
