"""Variants of exercises: each is proved, says what it asks, and fails answers to the others."""

import ast
import itertools
import json
import os
import re

import numpy as np
import pytest

from bbb_course import judge
from bbb_course.exercise import Formula
from bbb_course.judging import FLOAT_SEEDS, agrees, judge_formula
from bbb_course.keys import exercises, find
from bbb_course.marks import BEGIN, END, template
from bbb_course.sandbox import grade_files
from bbb_course.templates import copy_templates, solution_paths, solution_text
from bbb_course.variants import (
    chosen,
    combinations,
    find_variant,
    index_of,
    n_variants,
    seed_of,
    varied,
    varied_solution,
)
from bbb_course.workload import effort_table
from bbb_numpy.cli.main import main
from tests.course.test_keys import check_digits

PATHS = {path.stem.lstrip("0123456789_"): path for path in solution_paths()}
VARIED = [name for name in exercises() if n_variants(name)]
WHOLE = {"geometric_shares", "occams_razor"}  # of whole numbers: nothing moves
QUICK = ("completing_the_square", "softplus", "gaussian_prior")  # judged by day
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def passes(exercise, answer):
    """Return whether an answer has the numbers of an exercise, at random and at edge cases."""
    for case in (*map(exercise.draw, (1, 2, *FLOAT_SEEDS)), *exercise.edge_cases):
        try:
            if not agrees(exercise, case, answer(*case)):
                return False
        except Exception:  # arguments of another shape, or too many
            return False
    return True


def answer_of(text, name):
    scope = {"__name__": name}
    exec(text, scope)
    return scope[name]


def check_statement(exercise, text):
    """Check that a statement names the arguments and blocks of a variant, in lines that fit."""
    shown = template(text)
    assert max(map(len, shown.splitlines())) <= 100
    tree = ast.parse(shown)
    (function,) = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    assert [argument.arg for argument in function.args.args] == list(exercise.arguments)
    statement = ast.get_docstring(tree)
    assert not re.search(r"^[-+*] ", statement, re.MULTILINE)  # a list, in a notebook
    for name in exercise.arguments:
        assert name in statement, (name, statement)
    numpydoc = ast.get_docstring(function)
    if "Parameters" in numpydoc:
        parameters, _, returns = numpydoc.partition("Returns\n---")
        assert all(name in parameters for name in exercise.arguments), numpydoc
        if returns:
            assert all(block in returns for block in exercise.returns), numpydoc


def check_variant(name, variations):
    exercise = varied(find(name), variations)
    book_s = PATHS[name].read_text("utf-8")
    text = varied_solution(book_s, exercise, variations, "2026")
    check_statement(exercise, text)
    paragraphs, book_s_paragraphs = (template(one).count("\n\n") for one in (text, book_s))
    assert paragraphs > book_s_paragraphs  # one more, and none run together
    assert all(variation.asks in " ".join(text.split()) for variation in variations)
    verdict = judge_formula(exercise, answer_of(text, name))
    assert verdict.verdict == ("right" if name in WHOLE else "proved"), verdict
    assert ("derivatives" in verdict.headline) == bool(exercise.slopes), verdict


def test_more_than_forty_exercises_have_variants_and_the_page_says_which():
    assert len(VARIED) >= 40
    rows = [line.split("|")[1:-1] for line in effort_table().splitlines()[2:-1]]
    for name, (*_, number) in zip(exercises(), rows, strict=True):
        assert number.strip() == f"{n_variants(name) or 'none'}"
    assert all(isinstance(find(name), Formula) for name in VARIED)


@pytest.mark.parametrize("name", ["mean_and_variances", "swag", "covariance_of_functions"])
def test_statements_name_their_results_and_no_line_is_an_item_of_a_list(name):
    for variations in combinations(name):
        exercise = varied(find(name), variations)
        text = varied_solution(PATHS[name].read_text("utf-8"), exercise, variations, "2026")
        check_statement(exercise, text)


@pytest.mark.parametrize("name", QUICK)
def test_a_variant_is_proved(name):
    check_variant(name, combinations(name)[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIED)
def test_every_variant_is_proved_and_fails_the_answers_to_all_others(name):
    variants = [find(name)]
    for variations in combinations(name):
        check_variant(name, variations)
        variants.append(varied(find(name), variations))
    for exercise, other in itertools.permutations(variants, 2):
        assert not passes(exercise, other.right), f"{exercise.source}\n{other.source}"


@pytest.mark.slow
@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="no more digits")
@pytest.mark.parametrize("name", VARIED)
def test_the_key_of_a_variant_has_all_digits_where_answers_are_compared_with_it(name):
    for variations in combinations(name):
        check_digits(varied(find(name), variations))


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIED)
def test_a_copied_answer_is_told_that_it_answers_the_book_s_exercise(name):
    for seed in ("1", "2"):
        verdict = judge(name, find(name).right, variant=seed)
        assert not verdict.passed
        told = [finding.says for finding in verdict.findings]
        raises = verdict.verdict == "unusable" or "raises" in str(verdict.cases)
        shape = "of shape" in str(verdict.cases) or "must have the shape" in verdict.headline
        asks = " ".join(variation.asks for variation in chosen(name, seed))
        assert raises or shape or any(asks in says for says in told) or verdict.cases, verdict


def variants_to_try(name):
    """Yield the variants with one variation each, and one with several."""
    variants = combinations(name)
    for variations in variants:
        if len(variations) == 1 or variations == variants[-1]:
            yield varied(find(name), variations)


def mistakes_of(exercise):
    """Return the mistakes that can be made in an exercise, each with its answer."""
    answers = {mistake: exercise.edited(mistake) for mistake in exercise.wrong}
    return {mistake: answer for mistake, answer in answers.items() if answer is not None}


def numbers_of(exercise, answer):
    cases = [*map(exercise.draw, FLOAT_SEEDS[:4]), *exercise.edge_cases]
    return [np.ravel(block) for case in cases for block in exercise.blocks(answer(*case))]


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIED)
def test_every_mistake_of_a_variant_gets_its_sentence(name):
    for exercise in variants_to_try(name):
        for mistake, answer in mistakes_of(exercise).items():
            verdict = judge_formula(exercise, answer)
            assert not verdict.passed
            assert verdict.verdict == "known mistake", f"{mistake}\n{verdict}"
            assert mistake.says in [finding.says for finding in verdict.findings], verdict


@pytest.mark.parametrize("name", ["free_energy", "counts", "leapfrog"])
def test_the_mistakes_of_a_variant_have_numbers_of_their_own(name):
    for exercise in variants_to_try(name):
        answers = [exercise.right, *mistakes_of(exercise).values()]
        for one, two in itertools.combinations([numbers_of(exercise, a) for a in answers], 2):
            assert not all(map(np.allclose, one, two)), exercise.source


def test_students_with_a_variant_hear_what_they_did_wrong_as_often_as_others():
    for name in VARIED:
        of_variants = [
            sum(exercise.source.count(mistake.old) == 1 for mistake in exercise.wrong)
            for exercise in variants_to_try(name)
        ]
        of_the_book = len(find(name).wrong)
        assert min(of_variants) >= 0.5 * of_the_book, name
        assert np.mean(of_variants) >= 0.8 * of_the_book, name


def test_words_that_a_variation_leaves_out_or_restates_occur_in_sentences():
    occurs = {}
    for name in VARIED:
        variations = [several[0] for several in combinations(name) if len(several) == 1]
        sentences = [mistake.says for mistake in find(name).wrong]
        for variation in variations:
            sentences += [says for edits in variation.wrong.values() for says in edits.values()]
        for variation in variations:
            for words in (*variation.untrue, *variation.restated):
                found = any(words in sentence for sentence in sentences)
                occurs[words] = occurs.get(words, False) or found
    assert [words for words, found in occurs.items() if not found] == []


def test_of_known_mistakes_only_the_sentences_that_are_untrue_are_left_out():
    with_exp = varied(find("value_and_gradient"), chosen("value_and_gradient", "autumn"))
    said = [mistake.says for mistake in with_exp.wrong]
    assert any("the score is counted twice" in sentence for sentence in said)
    assert "the chain rule: sigma moves with rho by sigma itself." in said
    assert not any("(K24)" in sentence for sentence in said)


def gain_without_a_square(features, factor, noise_scale):
    variance = np.sum((features @ factor) ** 2, axis=1)
    return np.log2(1 + 3 * variance / noise_scale) / 2


def laplace_noise_with_another_sign(f, y, noise):
    return np.sum(abs(y - f) / noise + np.log(2 * noise)), np.sign(y - f) / noise


def all_averaged(mean, variance, x, noise):
    return mean * x, (x**2 * variance + noise**2) / 3


@pytest.mark.parametrize(
    ("name", "starts", "answer", "says"),
    [
        # which are right for other variants: a variance is given, minus the value is asked for
        (
            "information_gain", ["At each place 3", "All results are in bits"],
            gain_without_a_square,
            "a variance is divided by a standard deviation",
        ),
        (
            "gaussian_likelihood", ["The noise is Laplace's"], laplace_noise_with_another_sign,
            "the sign: y - f falls with f",
        ),
        (
            "posterior_predictive", ["The new y is the mean of 3"], all_averaged,
            "w is the same in all measurements",
        ),
    ],
)  # fmt: skip
def test_a_mistake_of_a_student_is_named_also_where_it_is_right_for_another_variant(
    name, starts, answer, says
):
    (index,) = (
        index for index, several in enumerate(combinations(name))
        if len(several) == len(starts)
        and all(one.asks.startswith(start) for one, start in zip(several, starts, strict=True))
    )  # fmt: skip
    seed = next(seed for seed in map(str, range(999)) if index_of(name, seed) == index)
    ((_, told),) = judge(name, answer, variant=seed).findings
    assert says in told


def test_a_seed_makes_a_set_of_which_every_statement_is_another():
    for name in VARIED[::6]:
        text = solution_text(PATHS[name], "2026")
        exercise = find_variant(name, "2026")
        check_statement(exercise, text)
        assert not passes(exercise, find(name).right), name
        assert text.split("\n\n")[1].startswith("Variant 2026 of this exercise. ")


def test_a_seed_chooses_the_same_everywhere():
    names = ("completing_the_square", "free_energy", "leapfrog")
    assert [index_of(name, "2026") for name in names] == [0, 23, 1]
    assert [index_of(name, "autumn") for name in names] == [6, 18, 1]


def test_two_seeds_agree_as_often_as_one_in_the_number_of_variants():
    picked = np.bincount([index_of("free_energy", f"{seed}") for seed in range(2900)])
    assert len(picked) == n_variants("free_energy") == 29
    chi_square = np.sum((picked - 100) ** 2 / 100)
    assert chi_square < 28 + 5 * np.sqrt(2 * 28)  # five standard deviations


def test_a_set_is_written_without_solutions_and_each_file_names_its_seed(tmp_path, capsys):
    assert main(["grade", "--copy", str(tmp_path), "--variant", "2026"]) == 0
    out = capsys.readouterr().out
    left_out = [name for name in exercises() if not n_variants(name)]
    assert f"left out, since they have no variant: {', '.join(left_out)}" in out
    assert "then: bbb-numpy grade --variant 2026 " in out
    files = [*tmp_path.rglob("*.py")]
    assert len(files) == len(VARIED)
    assert sorted(tmp_path.rglob("*.*")) == sorted(files)
    for path in files:
        text = path.read_text("utf-8")
        assert seed_of(path) == "2026"
        assert BEGIN not in text
        assert END not in text
        assert "raise NotImplementedError" in text
        name = path.stem.lstrip("0123456789_")
        with pytest.raises(NotImplementedError):
            answer_of(text, name)(*find_variant(name, "2026").draw(1))
    assert set(copy_templates(tmp_path, seed="2026").values()) == {False}


@pytest.fixture
def submitted(tmp_path):
    """Write answers to softplus, of variant 7 and of others; return the files by what they are."""
    right = solution_text(PATHS["softplus"], "7")
    book_s = PATHS["softplus"].read_text("utf-8")
    other_seed = next(
        f"{seed}" for seed in range(8, 99)
        if index_of("softplus", f"{seed}") != index_of("softplus", "7")
    )  # fmt: skip
    another = solution_text(PATHS["softplus"], other_seed)
    texts = {
        "right": right,
        "the book's": book_s,
        "another": another,
        "the book's under the name of 7": book_s.replace(
            "\n\n", "\n\nVariant 7 of this exercise. \n\n", 1
        ),
        "another under the name of 7": another.replace(f"Variant {other_seed} ", "Variant 7 "),
    }
    for folder, text in texts.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1_softplus.py").write_text(text, "utf-8")
    return {folder: tmp_path / folder / "1_softplus.py" for folder in texts}


def test_a_file_of_another_variant_is_refused_and_says_why(submitted):
    book_s, another = grade_files([submitted["the book's"], submitted["another"]], variant="7")
    assert not book_s.passed
    assert not another.passed
    assert "it names no variant, and variant 7 is graded" in book_s.headline
    assert f"that of variant {seed_of(submitted['another'])}, and" in another.headline


@pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX")
def test_a_file_without_an_end_or_with_a_hostile_seed_names_none(tmp_path):
    pipe, endless, hostile, gone = (tmp_path / f"{i}_softplus.py" for i in range(1, 5))
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")
    hostile.write_bytes(b"\nVariant \x1b[2J of this exercise. \n\xff")
    assert [seed_of(path) for path in (pipe, endless, hostile, gone)] == [""] * 4


@pytest.mark.slow
def test_a_copied_answer_does_not_pass_whatever_seed_its_file_names(submitted, capsys):
    verdicts = dict(zip(submitted, grade_files([*submitted.values()], variant="7"), strict=True))
    assert [what for what, verdict in verdicts.items() if verdict.passed] == ["right"]
    says = {
        what: verdict.findings[0].says for what, verdict in verdicts.items() if verdict.findings
    }
    assert "this answers the book's exercise; asked" in says["the book's under the name of 7"]
    assert "this answers another variant" in says["another under the name of 7"]
    assert verdicts["right"].variant == "7"
    assert verdicts["right"].seconds > 0
    # without a seed a file is graded as what it names
    assert main(["grade", "--json", str(submitted["right"])]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0]["variant"] == "7"


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (["--list", "--variant", "a seed"], "a seed has 1 to 40 letters"),
        (["--list", "--variant", "../x"], "a seed has 1 to 40 letters"),
        (["--list", "--variant=-a"], "a seed has 1 to 40 letters"),
        (["--list", "--variant", '"); import os; ("'], "a seed has 1 to 40 letters"),
    ],
)
def test_a_seed_that_cannot_stand_in_a_file_is_refused(typed, complaint, capsys):
    assert main(["grade", *typed]) == 2
    assert complaint in capsys.readouterr().err


def test_a_list_says_which_variant_a_seed_makes(capsys):
    assert main(["grade", "--list", "--variant", "2026"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, line in zip(exercises(), lines, strict=True):
        if name not in VARIED:
            assert line.endswith("no variant")
            continue
        assert f"variant {index_of(name, '2026') + 1} of {n_variants(name)}: " in line
        assert chosen(name, "2026")[0].asks in line


def test_exports_of_a_variant_are_graded_as_it(tmp_path, capsys):
    typed = ["grade", str(PATHS["softplus"]), str(PATHS["powerball"]), "--variant", "7"]
    for form in ("otter", "nbgrader"):
        alone = ["grade", str(PATHS["powerball"]), "--variant", "7", "--export", form]
        assert main([*alone, "--out", str(tmp_path)]) == 2
        assert "none of these exercises has a variant" in capsys.readouterr().err
        assert main([*typed, "--export", form, "--out", str(tmp_path)]) == 0
    (notebook,) = (tmp_path / "source").rglob("*.ipynb")
    statement, answer, tests = json.loads(notebook.read_text("utf-8"))["cells"]
    assert "Variant 7 of this exercise." in statement["source"]
    scope = {}
    exec(f"{answer['source']}\n{tests['source']}", scope)
    assert scope["verdict"].variant == "7"
    book_s = {}
    exec(PATHS["softplus"].read_text("utf-8"), book_s)
    with pytest.raises(AssertionError, match="this answers the book's exercise"):
        exec(tests["source"], book_s)
    (test_file,) = (tmp_path / "tests").glob("*.py")
    assert 'judge("softplus", env["softplus"], variant="7")' in test_file.read_text("utf-8")
