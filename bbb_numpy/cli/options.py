"""What the subcommands' parsers share: how one is added, and numbers that are checked."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..numeric.validation import positive

__all__ = ["Commands", "above_zero", "add_command", "at_least_one",
           "at_least_two", "at_least_zero", "option", "share"]  # fmt: skip

Commands = Any  # what `ArgumentParser.add_subparsers` returns; argparse has no public name for it


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add the subcommand `name`, which calls `run` and is described by its docstring.

    `usage` is what to type after the name; without, all options are listed with every error.
    """
    text = (run.__doc__ or name).strip()  # `python -OO` takes docstrings away
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=None if usage is None else f"bbb-numpy {name} {usage}",
        help=text[0].lower() + text[1:].rstrip("."),
        description=text,
        formatter_class=_Help,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Show defaults, but none of options that say in words what leaving them out means."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        silent = action.default is None or action.default is False or action.default == []
        return action.help if silent else super()._get_help_string(action)


def option(name: str) -> str:
    """Return the option that sets a name: ``--batch-size``."""
    return f"--{name.replace('_', '-')}"


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        """Read a whole number >= `least`."""
        digits = text.strip().removeprefix("-").isdecimal()
        if not digits or int(text) < least:
            got = text if digits else repr(text)
            raise argparse.ArgumentTypeError(f"must be a whole number >= {least}; got {got}")
        return int(text)

    return read


at_least_zero, at_least_one, at_least_two = map(_at_least, (0, 1, 2))


def above_zero(text: str) -> float:
    """Read a finite number > 0."""
    try:
        return positive("value", float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number > 0; got {text!r}") from None


def share(text: str) -> float:
    """Read a number between 0 and 1, both excluded."""
    value = above_zero(text)
    if value >= 1.0:
        raise argparse.ArgumentTypeError(f"must be below 1; got {text}")
    return value
