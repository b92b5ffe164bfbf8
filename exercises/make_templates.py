"""Make the templates of the exercises from their solutions: the marked part becomes a hole.

``python exercises/make_templates.py`` writes them; a statement is changed in its solution.
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION\n", re.DOTALL | re.MULTILINE)


def template(solution: str) -> str:
    """Return a solution's text with a hole in the place of its marked part."""
    text, holes = SOLUTION.subn(r"\1# YOUR CODE HERE\n\1raise NotImplementedError\n", solution)
    if holes != 1:
        raise ValueError(f"a solution has one marked part; this has {holes}")
    return text


def templates() -> dict[Path, str]:
    """Return the text of every template by its path."""
    solutions = HERE / "solutions"
    return {
        HERE / path.relative_to(solutions): template(path.read_text(encoding="utf-8"))
        for path in sorted(solutions.rglob("*.py"))
    }


if __name__ == "__main__":
    for path, text in templates().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
