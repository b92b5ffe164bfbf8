"""Fields of parts as parameters of a learner, for `set_params` and grid searches.

They are named ``prior__scale``, ``optimizer__learning_rate``, ``optimizer__schedule__final``. Parts
are frozen, so that a part is replaced by another one, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .plan import names_of, resolve_defaults

__all__ = ["nested_params", "update_nested"]


def nested_params(
    params: Mapping[str, Any], parts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return parameters, and the fields of their parts by names such as ``prior__scale``.

    Parameters
    ----------
    params : mapping
        Parameters by name, as the user has given them.
    parts : mapping
        What each of them stands for. Where `params` has None, the fields are those of this part.
    """
    nested = dict(params)
    for name, value in params.items():
        if value is None:
            value = parts[name]
        own_fields = _fields(name, value)
        for field, field_value in nested_params(own_fields, own_fields).items():
            nested[f"{name}__{field}"] = field_value
    return nested


def update_nested(
    owner: str,
    params: Mapping[str, Any],
    changes: Mapping[str, Any],
    task: str | None = None,
) -> dict[str, Any]:
    """Return parameters with changes to them, or to fields of their parts.

    A part is replaced: ``{"prior": "laplace", "prior__scale": 0.2}`` makes ``LaplacePrior(0.2)``.

    Parameters
    ----------
    owner : str
        The learner or part that has the parameters, for the message of an error.
    params : mapping
        Its parameters by name.
    changes : mapping
        New values by name; names of fields as `nested_params` gives them.
    task : {'regression', 'classification'}, optional
        The task of a learner: where `params` has None, a field is that of the task's default.

    Raises
    ------
    ValueError
        For a name that is none of `params`, or of the fields of a part.
    """
    updated = dict(params)
    field_changes = dict[str, dict[str, Any]]()
    for name, value in changes.items():
        parameter, separator, field = name.partition("__")
        if parameter not in params:
            raise ValueError(
                f"Invalid parameter {parameter!r} for {owner}. Valid parameters are: "
                f"{list(params)!r}."
            )
        if separator:
            field_changes.setdefault(parameter, {})[field] = value
        else:
            updated[parameter] = value
    parts: Mapping[str, Any] = updated
    if task is not None:
        parts = resolve_defaults(task, updated).parts
    for name, changed_fields in field_changes.items():
        value = updated[name]
        if value is None:
            value = parts[name]
        owner_of_fields = f"{name}={value!r}"
        new = update_nested(owner_of_fields, _fields(name, value), changed_fields)
        updated[name] = replace(_part_named(name, value), **new)
    return updated


def _part_named(name: str, value: Any) -> Any:
    """Return the part that the value of a parameter is or names; None if it is no part."""
    if isinstance(value, str):
        if value == "mle":  # no part, but a posterior and an objective together
            return None
        value = names_of(name).get(value)
    return value if is_dataclass(value) and not isinstance(value, type) else None


def _fields(name: str, value: Any) -> dict[str, Any]:
    """Return the fields of the part that a value is or names; none if it is no part."""
    part = _part_named(name, value)
    if part is None:
        return {}
    return {field.name: getattr(part, field.name) for field in fields(part)}
