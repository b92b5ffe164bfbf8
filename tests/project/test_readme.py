"""README and docs/: examples run and print what they show, links and commands exist."""

import contextlib
import io
import re
import textwrap
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from bbb_numpy import plain
from bbb_numpy import registry as names
from bbb_numpy.cli.main import main
from bbb_numpy.learners.inference import inferences
from benchmarks import tables

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
READING = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
PARTS = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
USING = [  # one question a page: docs/using.md lists them
    path.read_text(encoding="utf-8")
    for name in re.findall(r"\]\((\w[\w-]*\.md)\)", (ROOT / "docs" / "using.md").read_text("utf-8"))
    if name
    not in (
        "own-loop.md",
        "prove.md",
        "frameworks.md",
        "stability.md",
        "fit-report.md",
        "counts.md",
    )  # which have tests of their own
    for path in [ROOT / "docs" / name]
]
PAGES = {
    "README.md": README,
    "docs/reading.md": READING,
    **{f"docs/{number}": page for number, page in enumerate(USING)},
}
# Programs and what they print: a block of Python, then one of text
EXAMPLES = re.findall(
    r"```python\n((?:(?!```).)*)```\n\n```text\n((?:(?!```).)*)```",
    "".join([README, *USING]),
    re.DOTALL,
)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def block(language, page=README):
    return re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)[1]


def printed_by(code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    return printed.getvalue()


@pytest.mark.equation("K30")
@pytest.mark.parametrize(
    "epochs",  # None: as many as it takes
    [pytest.param(3, marks=pytest.mark.brief), pytest.param(None, marks=pytest.mark.slow)],
)
def test_the_example_prints_what_the_readme_shows(epochs):
    code, text = EXAMPLES[0]
    printed = printed_by(code.replace("random_state=0", f"random_state=0, epochs={epochs}"))
    assert len([line for line in code.splitlines() if line]) == 10
    shown, found = (np.array(NUMBER.findall(lines), float) for lines in (text, printed))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", text)
    assert found[-1] <= 1e-12  # the gradient error, which differs between machines
    assert epochs or np.allclose(found[:-1], shown[:-1], rtol=0.02)


def examples_of_using_it():
    """Return each example as a parameter of the test below; those with chains are slow."""
    used = [(code, shown) for code, shown in EXAMPLES if any(code in page for page in USING)]
    assert len(used) >= 7
    for code, shown in used:
        samples = "Sampling(" in code or "ensemble_starts" in code
        yield pytest.param(code, shown, marks=[pytest.mark.slow] if samples else [])


@pytest.mark.parametrize(("code", "shown"), [*examples_of_using_it()], ids=count())
def test_the_examples_of_using_it_print_what_the_page_shows(code, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed_by(code) == shown


def test_the_core_that_it_shows_is_that_of_plain_and_its_length_is_right():
    source = (ROOT / "bbb_numpy" / "plain.py").read_text(encoding="utf-8")
    core = block("python")
    assert textwrap.indent(core, "    ", lambda line: bool(line.strip())) in source
    assert core.startswith("mu, rho = ")
    assert "d_rho = " in core.splitlines()[-1]
    assert f"the rest of its {len(source.splitlines())} lines" in README


def test_every_subcommand_it_names_exists(capsys):
    names = set(re.findall(r"`bbb-numpy (\w+)", "".join(PAGES.values())))
    assert names >= {"gradcheck", "fit", "predict", "report"}
    for name in names:
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert name in capsys.readouterr().out


# modules of the root that are read for their own sake, and the packages above the library
ALONE = {
    *("bbb_numpy/plain.py", "bbb_numpy/registry.py", "bbb_numpy/combinations.py"),
    *("exactgrad", "bbb_studies", "bbb_course"),
}


def test_the_table_of_the_learners_as_they_come_is_the_one_that_was_measured():
    assert tables.markdown(tables.read_records(tables.RECORDS_PATH), "B") in README


def test_the_map_has_every_folder_and_the_modules_that_stand_alone_once():
    package = ROOT / "bbb_numpy"
    folders = {f"bbb_numpy/{path.parent.name}" for path in package.glob("*/__init__.py")}
    table = re.search(r"\| folder \| what lives there \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", READING)[1]
    linked = re.findall(r"\]\(\.\./([\w./]+?)/?\)", table)
    assert sorted(linked) == sorted(folders | ALONE)


@pytest.mark.brief
def test_every_choice_of_parts_that_it_shows_can_be_fitted():
    choices = [line for line in block("py", PARTS).splitlines() if line]
    scope = {}
    exec(choices[0], scope)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 2))
    counts, classes = rng.poisson(2.0, 40), x[:, 0] > 0
    assert len(choices) > 5
    for choice in choices[1:]:
        model = eval(choice, scope).set_params(epochs=3, random_state=0)
        model.fit(x, classes if "Classifier" in choice else counts)
        assert np.isfinite(model.theta_).all()


def test_it_lists_every_short_name():
    arguments = {
        "prior": names.PRIORS,
        "likelihood": names.LIKELIHOODS,
        "inference": inferences(),
        "objective": set(names.OBJECTIVES) - {"map", "mle"},  # which `inference` names
        "gradient_estimator": names.ESTIMATORS,
        "kl_weights, kl_warm_up": {*names.KL_WEIGHTS, *names.WARM_UPS},
    }
    for argument, table in arguments.items():
        (row,) = re.findall(rf"^\| {argument} \| (.*) \|$", PARTS, re.MULTILINE)
        assert set(re.findall(r"`([\w-]+)`", row)) == set(table), argument


def test_the_first_picture_of_readme_and_book_is_the_band_of_plain():
    book = (ROOT / "derivations.md").read_text(encoding="utf-8")
    for page in (README, book):
        assert re.search(r"!\[[^\]]*\]\(([^)]+)\)", page)[1] == "figures/band.png"
        assert page.index("figures/band.png") < page.index("plain.py", page.index("band.png"))
    assert README.index("figures/band.png") < README.index("make report") < 2000  # one screen
    assert "figures/band.png" in plain.__doc__
