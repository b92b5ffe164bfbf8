"""Every page that people read: its links lead somewhere, its examples print what they show."""

import pytest
from project.book import ROOT, complaints, from_root, link_problems

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "derivations/*.md", "exercises/*.md", "benchmarks/*.md",
                    "site/*.md", "bbb_course/solutions/*.md")
    for path in sorted(ROOT.glob(pattern))
]  # fmt: skip
EXAMPLES = [page for page in PAGES if "```python\n>>>" in (ROOT / page).read_text("utf-8")]


def text(page: str) -> str:
    return from_root((ROOT / page).read_text("utf-8"), page)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_something(page: str) -> None:
    problems = link_problems(text(page))
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_print_what_they_say(page: str) -> None:
    said = complaints(text(page))
    assert not said, said


def test_the_pages_that_have_examples_are_found() -> None:
    assert {"site/symptoms.md", "derivations/training.md"} <= set(EXAMPLES)
    assert len(PAGES) > 25


def test_the_figures_of_which_method_when_are_those_of_the_uci_page() -> None:
    def rows(page: str) -> list[list[str]]:
        lines = [line for line in text(page).splitlines() if line[:1] == "|"]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    measured = rows("benchmarks/uci.md")
    (sets,) = [row for row in measured if row[0] == "RMSE / NLL"]
    told = [row[2:6] for row in rows("docs/choosing.md") if len(row) == 7 and row[3][-1:].isdigit()]
    assert len(told) == 8
    for method, nll, seconds, gap in told:
        scores = next(row for row in measured if row[0] == method)[sets.index("concrete")]
        assert scores.replace("*", "").split(" / ")[1].split(" ± ")[0] == nll, method
        assert [row[4] for row in measured if row[0] == method and len(row) == 5] == [seconds]
        gaps = [row for row in measured if row[:2] == ["concrete", method] and len(row) == 7]
        assert [row[6] for row in gaps] == [gap], method
