"""What the subcommands' parsers share: how one is added, and numbers that are checked."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

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
    """Show defaults, but none of options that say in words what leaving them out means.

    A text of several lines, as a table is, keeps its lines.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        silent = (
            action.default is None or action.default is False or action.default == []
        )
        return action.help if silent else super()._get_help_string(action)


def option(name: str) -> str:
    """Return the option that sets a name: ``--batch-size``."""
    return f"--{name.replace('_', '-')}"


def _reader(
    kind: type, accepted: Callable[[Any], bool], what: str
) -> Callable[[str], Any]:
    """Return what reads a number, and says what is accepted."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not accepted(value):
            raise argparse.ArgumentTypeError(f"must be {what}; got {text!r}")
        return value

    return read


at_least_zero = _reader(int, lambda value: value >= 0, "a whole number >= 0")
at_least_one = _reader(int, lambda value: value >= 1, "a whole number >= 1")
at_least_two = _reader(int, lambda value: value >= 2, "a whole number >= 2")
above_zero = _reader(float, lambda value: 0.0 < value < float("inf"), "a number > 0")
share = _reader(float, lambda value: 0.0 < value < 1.0, "a number between 0 and 1")
