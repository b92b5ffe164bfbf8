"""names: every short name makes a part that works, and unknown ones are refused."""

import re
from dataclasses import is_dataclass, replace
from pathlib import Path

import pytest

import bbb_numpy
from bbb_numpy.gradients import catalogue as names
from bbb_numpy.learners.inference import Sampling
from bbb_numpy.learners.plan import TABLES as NAMED_BY_LEARNERS

TABLES = {
    name: one for name, one in vars(names).items() if name.isupper() and isinstance(one, dict)
}


def test_priors_by_name_differ_in_shape_and_all_have_about_the_deviation_one_half():
    fixed = ("gaussian", "laplace", "student-t")  # layerwise: from the widths
    spread = {name: names.PRIORS[name].deviation({}) for name in fixed}
    assert spread == pytest.approx(dict.fromkeys(fixed, 0.5), rel=0.02)
    # Krasser's numbers: sqrt(0.2 * 1^2 + 0.8 * 0.1^2)
    assert names.PRIORS["mixture"].deviation({}) == pytest.approx(0.208**0.5)


USING = (Path(__file__).parents[2] / "docs" / "using.md").read_text(encoding="utf-8")
NAMED_OTHERWISE = {
    (part, name): text
    for name, part, text in re.findall(
        r"^\| `([\w-]+)` \| (\w+) \| `(\w+\(.*?\))` \|", USING, re.MULTILINE
    )
}


def of_its_class(name, part):
    """The part that a reader of the class alone expects behind a name."""
    if isinstance(part, Sampling):
        return Sampling(name)
    return type(part)(**{"learn": True} if name.endswith("-learned") else {})


@pytest.mark.parametrize("part", NAMED_BY_LEARNERS)
def test_a_name_is_its_class_without_arguments_or_the_book_says_what_it_is(part):
    """One table of all names: nobody has to guess the numbers behind one."""
    table = {name: one for name, one in NAMED_BY_LEARNERS[part].items() if is_dataclass(one)}
    told = {name for kind, name in NAMED_OTHERWISE if kind == part}
    for name, named in table.items():
        fixed = name.removesuffix("-learned")
        if fixed not in told:
            assert repr(named) == repr(of_its_class(name, named)), name
            continue
        assert repr(named) != repr(of_its_class(name, named)), f"{name}: nothing to say"
        written = eval(NAMED_OTHERWISE[part, fixed], dict(vars(bbb_numpy)))
        learned = written if fixed == name else replace(written, learn=True)
        assert repr(named) == repr(learned), name  # kernels are no values: `eq=False`
    assert told <= set(table)


@pytest.mark.parametrize(
    "table",
    [names.PRIORS, names.LIKELIHOODS, names.CHECKED_PRIORS, names.CHECKED_LIKELIHOODS],
    ids=["priors", "likelihoods", "checked priors", "checked likelihoods"],
)
def test_what_learns_by_name_starts_from_what_is_fixed_by_name(table):
    learned = [name for name in table if name.endswith("-learned")]
    assert learned
    for name in learned:
        assert table[name] == replace(table[name.removesuffix("-learned")], learn=True)


@pytest.mark.parametrize("name", names.ESTIMATORS)
def test_what_is_antithetic_says_so_in_its_name(name):
    keywords = getattr(names.ESTIMATORS[name], "keywords", {})
    assert keywords == ({"antithetic": True} if "antithetic" in name else {})


@pytest.mark.parametrize("table", TABLES)
def test_an_unknown_name_is_refused_with_those_that_there_are(table):
    known = TABLES[table]
    for name in known:
        assert names.named("part", name, known) is known[name]
    with pytest.raises(ValueError, match=f"part must be one of {next(iter(known))!r}, .*; got 'x'"):
        names.named("part", "x", known)
