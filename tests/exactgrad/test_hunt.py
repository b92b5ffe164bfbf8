"""The gallery and the hunt: what is proved of others' gradients, and what is found wrong."""

import pytest
from gallery.gallery import GALLERY
from gallery.hunt import HUNT
from gallery.page import PAGE, page, without_times

from exactgrad import prove


def sampled(programs, every, *dear):
    """Every so many programs by day, all by night."""
    return [
        pytest.param(
            program,
            id=f"{number} {program.title}",
            marks=[] if number % every == 0 and number not in dear else [pytest.mark.slow],
        )
        for number, program in enumerate(programs)
    ]


@pytest.mark.parametrize("program", sampled(GALLERY, 3, 18))
def test_a_gradient_of_the_gallery_is_proved_and_an_error_planted_in_it_is_refuted(program):
    proof = prove(program.function, *program.arguments)
    assert proof.verdict == program.verdict, proof
    if proof:
        assert prove(program.changed, *program.arguments).verdict == "refuted"


@pytest.mark.parametrize("program", sampled(HUNT, 3, 36))
def test_a_public_gradient_is_what_is_said_of_it_and_repaired_it_is_proved(program):
    proof = prove(program.function, *program.arguments)
    assert proof.verdict.startswith(program.verdict), proof
    if program.change:
        proof = prove(program.changed, *program.arguments)
        assert proof, proof


def test_the_page_is_made_of_these_programs():
    assert without_times(PAGE.read_text("utf-8")) == without_times(page({}))


def test_there_are_thirty_public_gradients_of_each_of_which_the_source_is_named():
    assert len(HUNT) > 30
    assert all(": " in program.source or "tutorial" in program.source for program in HUNT)
