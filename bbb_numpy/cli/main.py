"""The command ``bbb-numpy``, or ``python -m bbb_numpy``: runs a subcommand, reports its errors."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from ..version import __version__
from .streams import safe_streams

__all__ = ["main"]

# Module that adds the parser of each subcommand, in the order in which --help lists them
COMMANDS = {
    "gradcheck": "bbb_numpy.cli.gradcheck",
    "prove": "bbb_numpy.cli.gradcheck",
    "fit": "bbb_numpy.cli.fit",
    "predict": "bbb_numpy.cli.fit",
    "evaluate": "bbb_numpy.cli.evaluate",
}
# Entry points by which other packages of this distribution add subcommands
ENTRY_POINT_GROUP = "bbb_numpy.commands"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        0 if it succeeds, 1 if a check fails, 2 if the input cannot be used, 130 after Ctrl-C.
    """
    with safe_streams():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(argv: Sequence[str]) -> int:
    """Run plugins and one subcommand; return its exit status, and print errors in one line."""
    try:
        while argv[:1] == ["--plugin"] and len(argv) > 1:
            _run_plugin(Path(argv[1]))
            argv = argv[2:]
        parser = _parser(argv[0] if argv else "")
        if not argv:
            parser.print_help(sys.stderr)
            return 2
        args, unknown = parser.parse_known_args(argv)
        if unknown:  # the subcommand's parser shows its own usage with the error
            args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(args.run(args))
    # the program that reads the output, such as `head`, ended before reading all of it
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("bbb-numpy: interrupted", file=sys.stderr)
        return 130
    except (
        ImportError,
        MemoryError,
        ArithmeticError,
        ValueError,
        OSError,
        UserWarning,
    ) as error:
        message = str(error) or type(error).__name__  # a MemoryError has no text
        if isinstance(error, OSError) and error.filename and error.strerror:
            message = f"{error.filename}: {error.strerror}"
        print(f"bbb-numpy {argv[0]}: {message}", file=sys.stderr)
        return 2


def _run_plugin(path: Path) -> None:
    """Import the plugin file `path` as a module, so that worker processes find its classes too."""
    sys.path.insert(0, str(path.resolve().parent))
    module = import_module(path.stem)
    if not path.exists() or Path(str(module.__file__)).resolve() != path.resolve():
        raise ValueError(
            f"--plugin {path} has the name of another module; rename the file"
        )


def _show_warning(message: Warning | str, *_args: Any, **_keywords: Any) -> None:
    """Print a warning as one line, without the source line that raised it."""
    print(f"bbb-numpy: warning: {message}", file=sys.stderr)


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of one subcommand, or of all if there is no `command` of this name.

    Only the module of that subcommand is imported, since imports such as scikit-learn take seconds.
    """
    parser = argparse.ArgumentParser(
        prog="bbb-numpy",
        description="Bayes by Backprop in NumPy, every gradient derived by hand and proved.",
    )
    parser.add_argument(
        "--version", action="version", version=f"bbb-numpy {__version__}"
    )
    text = "run a file that registers classes of your own (bbb_numpy.register); comes first"
    parser.add_argument("--plugin", metavar="FILE", help=text)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if command == "--version":
        return parser
    modules = dict(COMMANDS)
    if command not in modules:
        # Searching all distributions would be slow; code that is not installed has no distribution
        with suppress(PackageNotFoundError):
            entry_points = distribution("bbb-numpy").entry_points
            for entry_point in entry_points.select(group=ENTRY_POINT_GROUP):
                modules[entry_point.name] = entry_point.value
    if command in modules:
        modules = {command: modules[command]}
    for module in dict.fromkeys(modules.values()):
        import_module(module).add_parsers(commands)
    return parser
