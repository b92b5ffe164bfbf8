"""Helpers of the subcommands' parsers: adding commands and options, reading checked numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from inspect import cleandoc
from typing import Any

__all__ = ["Commands", "Options", "above_zero", "add_command", "add_options", "at_least_one",
           "at_least_two", "at_least_zero", "fraction", "option_flag", "share"]  # fmt: skip

# type of the result of `ArgumentParser.add_subparsers`, for which argparse has no public name
Commands = Any
# A table of options: keywords of `ArgumentParser.add_argument` by argument name
Options = Mapping[str, Mapping[str, Any]]


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add a subcommand and return its parser.

    Parameters
    ----------
    commands : object
        Result of ``ArgumentParser.add_subparsers``.
    name : str
        Name of the subcommand.
    run : callable
        Function that runs the subcommand: it takes the parsed arguments and returns the exit
        status. Its docstring describes the subcommand in ``--help``.
    usage : str, optional
        Usage text after the name of the subcommand. By default argparse lists all options, which is
        long in error messages.
    """
    description = cleandoc(run.__doc__ or name)  # `python -OO` removes docstrings
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=None if usage is None else f"bbb-numpy {name} {usage}",
        help=description[0].lower() + description[1:].partition("\n")[0].rstrip("."),
        description=description,
        formatter_class=_Help,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Help formatter that shows an option's default unless it is None, False or an empty list.

    A description of several lines, such as a table, keeps its lines.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Return the text wrapped to `width`, or unchanged if it has line breaks of its own."""
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        """Return the help text of an option, with its default if one is to be shown."""
        default = action.default
        is_silent = default is None or default is False or default == []
        return action.help if is_silent else super()._get_help_string(action)


def option_flag(name: str) -> str:
    """Return the option flag of an argument's name, such as ``--batch-size`` for ``batch_size``."""
    return f"--{name.replace('_', '-')}"


def add_options(group: Any, options: Options) -> None:
    """Add the options of a table to a parser, or to one of its argument groups."""
    for name, settings in options.items():
        group.add_argument(option_flag(name), **settings)


def _number_type(
    convert: type, is_accepted: Callable[[Any], bool], description: str
) -> Callable[[str], Any]:
    """Return an argparse type that converts text to a number for which `is_accepted` is true.

    `description` completes the message "must be ...".
    """

    def read(text: str) -> Any:
        """Return the number that `text` holds; raise ArgumentTypeError if it is not accepted."""
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not is_accepted(value):
            raise argparse.ArgumentTypeError(f"must be {description}; got {text!r}")
        return value

    return read


at_least_zero = _number_type(int, lambda value: value >= 0, "a whole number >= 0")
at_least_one = _number_type(int, lambda value: value >= 1, "a whole number >= 1")
at_least_two = _number_type(int, lambda value: value >= 2, "a whole number >= 2")
above_zero = _number_type(
    float, lambda value: 0.0 < value < float("inf"), "a number > 0"
)
fraction = _number_type(
    float, lambda value: 0.0 < value < 1.0, "a number between 0 and 1"
)
share = _number_type(
    float, lambda value: 0.0 <= value < 1.0, "a number from 0 to less than 1"
)
