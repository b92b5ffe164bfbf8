"""Checks of the files that a subcommand will write, made before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..numeric.files import check_writable

__all__ = ["check_folder", "check_outputs"]


def check_outputs(
    inputs: Sequence[str], *outputs: str | None, picture: str | None = None
) -> None:
    """Raise an error unless the output files can be written and differ from each other and inputs.

    Parameters
    ----------
    inputs : sequence of str
        Paths of the files that the command reads.
    *outputs : str or None
        Paths of the files that it writes; None for no file, ``-`` for standard output.
    picture : str, optional
        Path of a picture that it writes.

    Raises
    ------
    ValueError
        If a path is empty, a folder, in a folder that does not exist, or another file of this
        command, or if the ending of the picture is none of matplotlib's formats.
    OSError
        If the system does not let the file be written.
    """
    used = [Path(path).resolve() for path in inputs]
    for path in (*outputs, picture):
        if path is None or path == "-":
            continue
        resolved = Path(path).resolve()
        is_file = resolved.is_file() or not resolved.exists()
        if not (path and resolved.parent.is_dir() and is_file):
            raise ValueError(
                f"{path or repr(path)} cannot be written: name a file in a folder that exists"
            )
        if resolved in used:
            raise ValueError(
                f"{path} would replace another file of this command; name another"
            )
        check_writable(Path(path))
        used.append(resolved)
    if picture is not None:
        _check_format(picture)


def check_folder(path: str) -> Path:
    """Return the output folder `path`, which need not exist yet; raise an error if not writable."""
    resolved = Path(path).resolve()
    existing = next(
        folder for folder in (resolved, *resolved.parents) if folder.exists()
    )
    if not path or not existing.is_dir():
        raise ValueError(
            f"{path or repr(path)} cannot be written to: name a folder with --out"
        )
    try:
        check_writable(existing / "trial")
    except OSError as error:
        error.filename = path
        raise
    return Path(path)


def _check_format(picture: str) -> None:
    """Raise ValueError unless matplotlib can write the format that ends a picture's path."""
    from matplotlib.backend_bases import FigureCanvasBase

    formats = FigureCanvasBase.get_supported_filetypes()
    if Path(picture).suffix[1:].lower() not in formats:
        raise ValueError(
            f"a picture must end in .png, or one of {', '.join(formats)}; got {picture}"
        )
