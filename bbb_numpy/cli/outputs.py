"""What the subcommands write: refused before any work where it cannot be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..numeric.files import check_writable

__all__ = ["check_folder", "check_outputs", "check_picture"]


def check_outputs(inputs: Sequence[str], *outputs: str | None) -> None:
    """Raise ValueError for files that cannot be written, or would replace an input.

    Parameters
    ----------
    inputs : sequence of str
        The files that the command reads.
    *outputs : str or None
        Those that it writes; None is none, and ``-`` standard output.
    """
    taken = [Path(path).resolve() for path in inputs]
    for path in outputs:
        if path is None or path == "-":
            continue
        place = Path(path).resolve()
        named = (
            path and place.parent.is_dir() and (place.is_file() or not place.exists())
        )
        if not named:
            raise ValueError(
                f"{path or repr(path)} cannot be written: name a file in a folder that exists"
            )
        if place in taken:
            raise ValueError(
                f"{path} would replace another file of this command; name another"
            )
        check_writable(Path(path))
        taken.append(place)


def check_folder(path: str) -> Path:
    """Return an output folder, or raise where it cannot hold files; nothing is made yet."""
    place = Path(path).resolve()
    there = next(one for one in (place, *place.parents) if one.exists())
    if not path or not there.is_dir():
        raise ValueError(
            f"{path or repr(path)} cannot be written to: name a folder with --out"
        )
    try:
        check_writable(there / "trial")
    except OSError as error:
        error.filename = path
        raise
    return Path(path)


def check_picture(path: str | None) -> None:
    """Raise ValueError for a picture whose ending names no format; None is no picture."""
    if path is None:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in formats:
        raise ValueError(
            f"{path} names no picture: end it in .png, or one of {', '.join(formats)}"
        )
