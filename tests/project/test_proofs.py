"""proofs.md has a row for every equation: its proof, its code, and a test that carries its tag."""

import pytest
from derivations.other_proofs import ENUMERATION, EXACT_ARITHMETIC, NOT_ALGEBRA
from project.book import DEFINED, ENTRIES, ROOT, Entry, claims, textbook_tags
from project.proofs import PAGE, Proof, codes, page, proofs, textbook_proofs

KINDS = ("algebra", "exact arithmetic", "enumeration", "checked")


def carries(path: str, test: str, tag: str) -> bool:
    """Tell whether the test exists and its mark names the tag."""
    file = ROOT / path
    return file.is_file() and tag in claims(file.read_text("utf-8")).get(test, set())


def problems(entry: Entry, found: list[Proof]) -> list[str]:
    """Say what the row of an equation lacks."""
    wrong = [] if found else ["no proof: no test of derivations/ and no reason why not"]
    code = codes()[entry.tag]
    wrong += [] if code and code[0].line else ["no line of the packages has the tag behind it"]
    for proof in found:
        if proof.kind not in KINDS:
            wrong.append(f"{proof.kind} is no kind of proof")
        by_name = f"{proof.path}::{proof.test}" in textbook_proofs().get(entry.tag, ())
        if not by_name and not carries(proof.path, proof.test, entry.tag):
            wrong.append(f"{proof.path}::{proof.test} is no test with this tag in its mark")
    return [f"{entry.tag}: {what}" for what in wrong]


def test_every_equation_has_a_proof_a_line_of_code_and_a_test() -> None:
    found = proofs()
    wrong = [what for entry in ENTRIES for what in problems(entry, found[entry.tag])]
    assert not wrong, "\n" + "\n".join(wrong)
    assert set(found) == set(DEFINED)


def test_what_algebra_proves_is_not_excused_from_it() -> None:
    proved = {tag for tag, each in proofs().items() if "algebra" in {one.kind for one in each}}
    assert proved | set(NOT_ALGEBRA) | textbook_tags() == set(DEFINED)
    assert not proved & set(NOT_ALGEBRA)
    for reason, _ in NOT_ALGEBRA.values():
        assert reason
    assert set(EXACT_ARITHMETIC) | set(ENUMERATION) <= set(DEFINED)


def test_each_proof_by_algebra_carries_the_one_tag_that_it_proves_or_is_run_for_each() -> None:
    for path in sorted(ROOT.glob("tests/derivations/test_*.py")):
        source = path.read_text("utf-8")
        for test, tags in claims(source).items():
            if test.startswith("test") and f"def {test}(tag" not in source:
                assert len(tags) == 1, (path.name, test, tags)


@pytest.fixture(scope="module")
def generated_page() -> str:
    """The page, for which all tests and packages are read."""
    return page()


def test_the_page_is_the_generated_one(generated_page: str) -> None:
    assert PAGE.read_text("utf-8") == generated_page, "run python tests/project/proofs.py"
