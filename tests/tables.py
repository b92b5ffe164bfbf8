"""Read back the tables that the studies print, and look at their pictures."""

import re

import numpy as np
from PIL import Image


def cells_of(text: str, first: str) -> dict[str, list[str]]:
    """Return the table of `text` whose head begins with `first`: its rows by their first cell."""
    lines = iter(text.splitlines())
    head = next(line for line in lines if line.startswith(first))
    assert set(next(lines)) == {"-"}, f"no table is below {head}"
    cells_by_row: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            break
        name, *cells = re.split(r"  +", line.strip())
        cells_by_row.setdefault(name, []).extend(cells)
    return cells_by_row


def check_picture(path, width, contrast):
    """Raise unless there is a picture at `path`, wider than that and not of one grey."""
    with Image.open(path) as image:
        assert image.width > width
        assert np.asarray(image.convert("L")).std() > contrast
