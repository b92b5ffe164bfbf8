"""Where docs/prerequisites.md says that a tool is first needed, the chapters first show it.

For tools that the path does not need, and that a word or symbol shows wherever they are used.
"""

import re

import pytest
from project.book import PAGES, PATH, ROOT, links, outside_fences, slug, without_foot
from project.letters import PRINTED

TOOLS = {  # row of the table: how the chapters show the tool, and whether it is needed there alone
    "integration by parts": (r"by parts", False),
    "determinant and inverse": (r"\\det|determinant", False),
    "eigenvalues": (r"eigenvalue", False),
    "Cholesky factor": (r"Cholesky", False),
    "Kronecker product": (r"\\otimes|Kronecker", True),
    "finite field": (r"finite field", True),
}
TABLE = (ROOT / "docs" / "prerequisites.md").read_text("utf-8")


def sections_with(pattern: str) -> list[str]:
    """Return the sections of the chapters, in the order of the contents, that show a pattern."""
    found = []
    for page in PAGES:
        name = page
        markdown = PRINTED.sub("", without_foot((ROOT / page).read_text("utf-8")))
        for line, free in zip(markdown.splitlines(), outside_fences(markdown), strict=True):
            heading = re.match(r"## (.*)", free)
            name = f"{page}#{slug(heading[1])}" if heading else name
            if name != page and not line.startswith("![") and re.search(pattern, line):
                found.append(name)
    return list(dict.fromkeys(found))


def test_the_path_needs_none_of_them() -> None:
    for tool, (pattern, _) in TOOLS.items():
        assert not [name for name in sections_with(pattern) if name.split("#")[0] in PATH], tool


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_first_needed_where_the_table_says(tool: str) -> None:
    pattern, alone = TOOLS[tool]
    (row,) = [line for line in TABLE.splitlines() if line.startswith(f"| {tool} |")]
    (link,) = links(row.rpartition(" | ")[2])
    found = sections_with(pattern)
    assert found[0] == link.target.removeprefix("../")
    assert ("alone" in row) == alone
    assert not alone or len(found) == 1, found
