"""generated: what is gone leaves the pages with its notes, and nothing dies of it."""

import re

import pytest
from project import proofs
from project.book import DEFINED, ROOT
from project.generated import GENERATED, LISTS, PARTS_ROWS, with_names, with_parts

PAGE = (ROOT / "docs" / "parts.md").read_text("utf-8")


def test_what_is_generated_is_as_it_would_be_written():
    for name, made in GENERATED.items():
        text = (ROOT / name).read_text("utf-8")
        assert made(text) == text, f"make generated would change {name}"


@pytest.mark.parametrize("part", PARTS_ROWS)
@pytest.mark.parametrize(
    "with_another",
    ["`gone`, {0}", "{0}, `gone`", "{0} (told), `gone` (of [D5](x.md#d5))", "`gone` (told), {0}"],
)
def test_a_name_that_is_gone_leaves_its_row_with_what_is_said_of_it(part, with_another):
    (row,) = re.findall(rf"^\| {part} \|.*$", PAGE, re.MULTILINE)
    for name in (one for one in PARTS_ROWS[part] if f"`{one}` (" not in row):
        before = PAGE.replace(row, row.replace(f"`{name}`", with_another.format(f"`{name}`"), 1))
        assert before != PAGE
        assert with_parts(before).replace(f"`{name}` (told)", f"`{name}`") == PAGE


def test_a_row_of_which_all_names_are_gone_gets_those_that_there_are():
    (row,) = re.findall(r"^\| optimizer \|.*$", PAGE, re.MULTILINE)
    written = with_parts(PAGE.replace(row, "| optimizer | `gone` |"))
    (new,) = re.findall(r"^\| optimizer \|.*$", written, re.MULTILINE)
    assert re.findall(r"`([\w-]+)`", new) == list(PARTS_ROWS["optimizer"])


@pytest.mark.parametrize("argument", LISTS)
def test_a_name_that_is_gone_leaves_the_docstrings(argument):
    text = f"    {argument} : str\n        One of 'gone', 'other'.\n"
    written = re.sub(r"\s+", " ", with_names(text))
    assert written.endswith(f"One of {', '.join(map(repr, LISTS[argument]))}. ")


def test_a_tag_of_an_equation_that_is_gone_is_left_out(monkeypatch):
    monkeypatch.setattr(proofs, "DEFINED", {tag: None for tag in DEFINED if tag != "D44"})
    files = [ROOT / "exactgrad" / name for name in ("__init__.py", "proofs.py")]
    monkeypatch.setattr(proofs, "package_files", lambda: files)
    assert "D44" not in proofs.codes.__wrapped__()
    assert "D44" not in proofs.practice.__wrapped__()
