"""Every page that people read: its links lead somewhere, its examples print what they show."""

import ast
import doctest
import re
from pathlib import Path

import pytest
from project.book import ROOT, complaints, from_root, link_problems

PAGES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "derivations/*.md", "exercises/*.md", "benchmarks/*.md",
                    "site/*.md", "bbb_course/solutions/*.md")
    for path in sorted(ROOT.glob(pattern))
]  # fmt: skip
EXAMPLES = [page for page in PAGES if "```python\n>>>" in (ROOT / page).read_text("utf-8")]
TRAINING = {  # pages whose examples train for seconds
    "site/symptoms.md", "derivations/correlated-posteriors.md", "derivations/training.md"
}  # fmt: skip


def text(page: str) -> str:
    return from_root((ROOT / page).read_text("utf-8"), page)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_something(page: str) -> None:
    problems = link_problems(text(page))
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page in TRAINING)) for page in EXAMPLES],
)
def test_the_examples_print_what_they_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # one saves a file
    said = complaints(text(page))
    assert not said, said


def test_the_examples_of_symptoms_that_train_nothing_print_what_they_say() -> None:
    opening, *sections = text("site/symptoms.md").split("\n## ")
    some = [part for part in sections if part.split("\n")[0] in ("nan", "KL scaled wrongly")]
    said = complaints("\n".join([opening, *some]))
    assert len(some) == 2
    assert not said, said


@pytest.mark.parametrize("page", PAGES)
def test_every_example_is_python_and_what_it_imports_exists(page: str) -> None:
    for block in re.findall(r"^```python\n(.*?)^```$", text(page), re.DOTALL | re.MULTILINE):
        prompts = doctest.DocTestParser().get_examples(block)
        tree = ast.parse("".join(each.source for each in prompts) or block)
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports = [node for node in imports if not getattr(node, "level", 0)]  # of the package
        for framework in {"jax", "torch"} & {
            alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names
        }:
            pytest.importorskip(framework)
        exec(compile(ast.Module(imports, []), page, "exec"), {})


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
