"""The command line, ``bbb-numpy`` or ``python -m bbb_numpy``: one subcommand, and its errors."""

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

# subcommand: the module that adds its parser, in the order of --help
COMMANDS = {
    "gradcheck": "bbb_numpy.cli.gradcheck",
    "prove": "bbb_numpy.cli.gradcheck",
    "fit": "bbb_numpy.cli.fit",
    "predict": "bbb_numpy.cli.fit",
    "evaluate": "bbb_numpy.cli.evaluate",
}
# entry points: the subcommands of packages that stand on the library
GROUP = "bbb_numpy.commands"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return 0, 1 when a check fails, 2 on input that cannot be used.

    After Ctrl-C 130.
    """
    with safe_streams():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(argv: Sequence[str]) -> int:
    try:
        while argv[:1] == ["--plugin"] and len(argv) > 1:
            _run_plugin(Path(argv[1]))
            argv = argv[2:]
        parser = _parser(argv[0] if argv else "")
        if not argv:
            parser.print_help(sys.stderr)
            return 2
        args, strange = parser.parse_known_args(argv)
        if strange:  # the subcommand's own usage says what it takes
            args.parser.error(f"unrecognized arguments: {' '.join(strange)}")
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return int(args.run(args))
    except BrokenPipeError:  # the reader of our output left, as `head` does
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
        said = str(error) or type(error).__name__  # of a MemoryError
        if isinstance(error, OSError) and error.filename and error.strerror:
            said = f"{error.filename}: {error.strerror}"
        print(f"bbb-numpy {argv[0]}: {said}", file=sys.stderr)
        return 2


def _run_plugin(path: Path) -> None:
    """Import a file that the user names, by its stem: other processes find its classes so too."""
    sys.path.insert(0, str(path.resolve().parent))
    module = import_module(path.stem)
    if not path.exists() or Path(str(module.__file__)).resolve() != path.resolve():
        raise ValueError(
            f"--plugin {path} has the name of another module; rename the file"
        )


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    """Print a warning as one line, without the source line that raised it."""
    print(f"bbb-numpy: warning: {message}", file=sys.stderr)


def _parser(first: str) -> argparse.ArgumentParser:
    """Return the parser of the subcommand that the `first` argument names, else of all.

    Importing what one of them needs can take seconds, as scikit-learn does; the others need not
    wait for it.
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
    if first == "--version":
        return parser
    modules = dict(COMMANDS)
    if first not in modules:
        with suppress(PackageNotFoundError):  # a copy of the code that is not installed
            # a scan takes longer
            own = distribution("bbb-numpy").entry_points.select(group=GROUP)
            modules |= {one.name: one.value for one in own}
    for module in (
        [modules[first]] if first in modules else dict.fromkeys(modules.values())
    ):
        import_module(module).add_parsers(commands)
    return parser
