"""names: every short name makes a part that works, and unknown ones are refused."""

import numpy as np
import pytest

from bbb_numpy.gradients import catalogue as names
from bbb_numpy.gradients.family import Family

TABLES = {name: getattr(names, name) for name in names.__all__ if name.isupper()}


def test_no_two_names_mean_the_same():
    for name, table in TABLES.items():
        parts = [repr(part) for part in table.values()]
        assert len(set(parts)) == len(parts), name


@pytest.mark.parametrize("name", names.KL_WEIGHTS)
def test_kl_weights_share_one_term(name):
    shares = names.KL_WEIGHTS[name]([32, 32, 7])
    assert (shares > 0).all()
    assert shares.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", names.WARM_UPS)
def test_warm_ups_end_at_the_whole_term(name):
    betas = np.array([names.WARM_UPS[name](epoch, 100) for epoch in range(100)])
    assert ((betas > 0) & (betas <= 1)).all()
    assert betas[-1] == 1.0
    assert (betas.min() < 1.0) == (name != "none")


def test_estimators_can_be_told_apart_by_class_and_antithetic_noise():
    for make in names.ESTIMATORS.values():
        assert issubclass(getattr(make, "func", make), Family)


@pytest.mark.parametrize("table", TABLES)
def test_an_unknown_name_is_refused_with_those_that_there_are(table):
    known = TABLES[table]
    for name in known:
        assert names.named("part", name, known) is known[name]
    with pytest.raises(ValueError, match=f"part must be one of {next(iter(known))}, .*; got 'x'"):
        names.named("part", "x", known)
