"""Read back the tables that the studies print."""

import re


def cells_of(text: str, first: str) -> dict[str, list[str]]:
    """Return the table of `text` whose head begins with `first`: its rows by their first cell."""
    lines = iter(text.splitlines())
    head = next(line for line in lines if line.startswith(first))
    assert set(next(lines)) == {"-"}, f"no table is below {head}"
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            break
        name, *cells = re.split(r"  +", line.strip())
        found.setdefault(name, []).extend(cells)
    return found
