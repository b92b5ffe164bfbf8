"""Names in files of earlier versions, and the present names for the same things.

Files hold classes, functions and fields by name. **Whoever renames one appends a row here**, so
that earlier files can still be loaded: ``tests/numeric/test_former_files.py`` loads some of every
kind. Versions of formats stay the same. For example, if ``Memory`` was renamed to
``OptimizerState``, its field ``steps`` to ``n_steps``, and the value ``'cosine'`` of its field
``schedule`` to ``'half-cosine'``::

    CLASSES = {"Memory": "OptimizerState"}
    FIELDS = {"OptimizerState": {"steps": "n_steps"}}
    VALUES = {"OptimizerState.schedule": {"cosine": "half-cosine"}}

Old names are on the left. All other names are present ones, owners included: whoever renames a
second time changes the rows that contain the name, and adds one. A name that is in use at present,
in the same place, is never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OLD_NAMES", "OldNames"]

# Classes and functions by old name; a learner's class is a value of "Stored.learner" instead
CLASSES: dict[str, str] = {
    "Memory": "OptimizerState",
    "Moving": "SGHMCState",
    "Paced": "ChEESState",
}

# Fields of a class, or keys of a dict in a field of a class: "Draws.stats", "Run.draws"
# (statistics), "Stored.parameters", "Stored.fitted" (of a learner), "Stored.settings" (of a run).
# None stands for a field that was removed, whose value is ignored
FIELDS: dict[str, dict[str, str | None]] = {
    "FitReport": {
        "rows": "n_rows",
        "base": "baseline_density",
        "least": "required_density",
        "line": "linear_density",
        "slope": "loss_slope",
        "slope_error": "loss_slope_error",
        "prior_start": "initial_prior_sd",
        "prior_end": "final_prior_sd",
        "spread_x": "bulk_sd_x",
        "spread_y": "bulk_sd_y",
        "reach": "prior_function_sd",
        "apart": "share_unmixed",
        "held": "interval_coverage",
        "path": "path_length",
        "rise": "largest_loss_rise",
        "error": "rmse",
        "spread_f": "posterior_function_sd",
    },
}

# Text values of a field, or of a key of a dict in a field, such as "MLP.activation" or
# "Stored.parameters.inference"
VALUES: dict[str, dict[str, str]] = {}

# A file holds a named tuple as a list, without the names of its fields. For each class of tuples
# that has gained or lost fields, this table has every earlier order of the fields, in present
# names, with None for a removed field. A new field needs a default. The number of items tells which
# order a file has, so that no earlier order may have as many fields as the present one
ORDERS: dict[str, tuple[tuple[str | None, ...], ...]] = {}


@dataclass(frozen=True)
class OldNames:
    """Tables of old names in files, with the present name of each.

    Parameters
    ----------
    classes : mapping
        Present name of each class or function, by old name.
    fields : mapping
        For each class, or each field ``Class.field`` that holds a dict, the present names of
        fields or keys by old name; None for a name whose value is ignored.
    values : mapping
        For each ``Class.field``, or ``Class.field.key`` of a dict, the present text by old text.
    orders : mapping
        For each class of named tuples the earlier orders of its fields, of different lengths.
    """

    classes: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    orders: Mapping[str, Sequence[Sequence[str | None]]] = field(default_factory=dict)

    def rename_field(self, owner: str, name: Any) -> Any:
        """Return the present name of a field or key in a file, or None if it was removed.

        Parameters
        ----------
        owner : str
            Name of the class, or ``Class.field`` for a key of a dict in a field.
        name : object
            Name in the file; a present name is returned unchanged.
        """
        return self.fields.get(owner, {}).get(name, name)

    def rename_value(self, location: str, text: str) -> str:
        """Return the present spelling of a text value, such as an option's name, in a file.

        Parameters
        ----------
        location : str
            ``Class.field``, or ``Class.field.key`` for a key of a dict in a field.
        text : str
            Text in the file; a present text is returned unchanged.
        """
        return self.values.get(location, {}).get(text, text)

    def order(
        self, owner: str, names: Sequence[str], count: int
    ) -> Sequence[str | None]:
        """Return the field names of a named tuple that was stored as a list of `count` items.

        Parameters
        ----------
        owner : str
            Name of the class.
        names : sequence of str
            Present names of its fields.
        count : int
            Length of the list in the file.
        """
        if count == len(names):
            return names
        by_length = {len(order): order for order in self.orders.get(owner, ())}
        return by_length.get(count, names)

    def rename_text(self, text: str) -> str:
        """Return the repr `text` of an object with all old names in it replaced by present ones."""
        owners = [""]

        def rename(match: re.Match[str]) -> str:
            name, mark, value = match.groups()
            if mark == "(":
                name = self.classes.get(name, name)
                owners.append(name)
            elif mark == ")" and len(owners) > 1:
                owners.pop()
            elif mark == "=":
                name = self.rename_field(owners[-1], name) or name
                if value is not None:
                    return (
                        f"{name}={self.rename_value(f'{owners[-1]}.{name}', value)!r}"
                    )
            quoted = "" if value is None else f"'{value}'"
            return f"{name}{mark}{quoted}"

        return re.sub(r"(\w*)([()=])(?:'([^']*)')?", rename, text)


OLD_NAMES = OldNames(CLASSES, FIELDS, VALUES, ORDERS)
