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
    """Return parameters, and the fields of parts among them under names such as ``prior__scale``.

    Parameters
    ----------
    params : mapping
        Parameters by name, as the user has given them.
    parts : mapping
        Part or number that each parameter stands for, by the same names. It is used where `params`
        has None.
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
    """Return a copy of `params` with new values, also of fields such as ``prior__scale``.

    A part is replaced: ``{"prior": "laplace", "prior__scale": 0.2}`` makes ``LaplacePrior(0.2)``.

    Parameters
    ----------
    owner : str
        Name of the learner or part that has the parameters, for error messages.
    params : mapping
        Parameters of the owner, by name.
    changes : mapping
        New values by name; fields are named as in ``prior__scale``.
    task : {'regression', 'classification'}, optional
        Task of a learner, whose default part is changed where `params` has None. By default the
        owner is a part, none of whose fields stands for a default.

    Raises
    ------
    ValueError
        For a name that is neither in `params` nor a field of a part.
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
    """Return `value` if it is a part, or the part that it names for parameter `name`, else None."""
    if isinstance(value, str):
        # "mle" stands for a posterior and an objective together, and has no fields to set
        if value == "mle":
            return None
        value = names_of(name).get(value)
    return value if is_dataclass(value) and not isinstance(value, type) else None


def _fields(name: str, value: Any) -> dict[str, Any]:
    """Return the fields, by name, of the part that `value` is or names; empty if there is none."""
    part = _part_named(name, value)
    if part is None:
        return {}
    return {field.name: getattr(part, field.name) for field in fields(part)}
