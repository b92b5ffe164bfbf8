"""What derivations/errata.md accuses a source of, the source prints: words and formulas."""

import pytest
from project.errata import (
    ERRATA,
    HALVES,
    SOURCE_NUMBERS,
    missing,
    pieces_of_rows,
    quotations,
    rows,
    source,
)


@pytest.mark.parametrize("letter", SOURCE_NUMBERS)
def test_every_accusation_has_what_is_accused(letter):
    """Words in quotation marks in the row, or a formula in the table above."""
    accused = pieces_of_rows(rows(ERRATA), letter)
    assert len(accused) >= 5
    assert [row for row, pieces in accused if not pieces] == []


@pytest.mark.parametrize("letter", SOURCE_NUMBERS)
def test_what_errata_quotes_is_printed(letter):
    text = source(letter)
    for row, pieces in pieces_of_rows(rows(ERRATA), letter):
        assert missing(pieces, text) == [], row.where


@pytest.mark.parametrize("letter", SOURCE_NUMBERS)
def test_what_the_book_quotes_as_printed_is_printed(letter):
    text = source(letter)
    for page, tag, box in HALVES:
        if tag.startswith(letter):
            assert missing(quotations(box), text) == [], (page, tag)
