"""Names that files of earlier versions hold, and the names of today.

Files hold classes, functions and fields by name. **Whoever renames one appends a row here**, and
files of before go on loading: ``tests/numeric/test_former_files.py`` loads some of every kind.
Versions of formats stay as they are. For example, where ``Memory`` has become ``OptimizerState``,
its field ``steps`` ``n_steps``, and the schedule ``'cosine'`` of a field of it ``'half-cosine'``::

    CLASSES = {"Memory": "OptimizerState"}
    FIELDS = {"OptimizerState": {"steps": "n_steps"}}
    VALUES = {"OptimizerState.schedule": {"cosine": "half-cosine"}}

Old names stand on the left. All others are of today, the owners too: whoever renames a second
time changes the rows that lead to the name, and adds one. A name that means something today, in
the same place, is never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OLD_NAMES", "OldNames"]

# Classes and functions; a learner's class is a value of "Stored.learner"
CLASSES: dict[str, str] = {
    "Memory": "OptimizerState",
    "Moving": "SGHMCState",
    "Paced": "ChEESState",
}

# Fields of a class, or keys of a dict in a field of it: "Draws.stats", "Run.draws" (statistics),
# "Stored.parameters", "Stored.fitted" (of a learner), "Stored.settings" (of a run).
# None: there is no such field any more, and what it held is left out
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

# Text in a field, or under a key of a dict in it: "MLP.activation", "Stored.parameters.inference"
VALUES: dict[str, dict[str, str]] = {}

# A file holds a named tuple as a list, without the names of its fields. For a tuple that has gained
# or lost fields since, by class: each earlier order of the fields, in today's names, with None for
# a removed field. A new field needs a default. The number of items tells which order a file has,
# so an earlier order must not have as many fields as today's
ORDERS: dict[str, tuple[tuple[str | None, ...], ...]] = {}


@dataclass(frozen=True)
class OldNames:
    """Tables of what files may hold by an earlier name.

    Parameters
    ----------
    classes : mapping
        From old names of classes and functions to those of today.
    fields : mapping
        By class, or by the field ``Class.field`` that holds a dict, from old names of fields or
        keys to those of today, or to None for what is left out.
    values : mapping
        By ``Class.field``, or ``Class.field.key`` of a dict, from old text to that of today.
    orders : mapping
        By named tuple, earlier orders of its fields, told apart by their lengths.
    """

    classes: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    orders: Mapping[str, Sequence[Sequence[str | None]]] = field(default_factory=dict)

    def rename_field(self, owner: str, name: Any) -> Any:
        """Return today's name of a field or a key; None if there is no such field any more.

        Parameters
        ----------
        owner : str
            Name of the class, or ``Class.field`` for a key of a dict in a field.
        name : object
            Name in the file.
        """
        return self.fields.get(owner, {}).get(name, name)

    def rename_value(self, location: str, text: str) -> str:
        """Return today's text for a text in a file.

        Parameters
        ----------
        location : str
            ``Class.field``, or ``Class.field.key`` for a key of a dict in a field.
        text : str
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
            Its fields of today.
        count : int
            Length of the list.
        """
        if count == len(names):
            return names
        by_length = {len(order): order for order in self.orders.get(owner, ())}
        return by_length.get(count, names)

    def rename_text(self, text: str) -> str:
        """Return the repr of an object of today's class from that of an earlier one."""
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
