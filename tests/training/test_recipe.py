"""recipe: settings that are refused where they are made, and the shares of minibatches."""

import numpy as np
import pytest

from bbb_numpy import (
    EUBO,
    MLP,
    Adam,
    DoublyReparameterised,
    EarlyStopping,
    Model,
    Recipe,
    Renyi,
    Reparameterised,
    SelfNormalised,
)
from bbb_numpy.model.kl_weights import LinearWarmUp, NoWarmUp
from bbb_numpy.numeric.validation import MAX_STEPS

MODEL = Model(MLP((2, 1)))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("epochs", -1),
        ("epochs", MAX_STEPS + 1),
        ("samples", 0),
        ("batch_size", 0),
        ("kl_weights", 0.5),
        ("warm_up", 0.5),
        ("shuffle", 1),
        ("optimizer", 0.01),
        ("optimizer", Adam),
        ("early_stopping", 10),
        ("early_stopping", EarlyStopping),
        ("patience", 0),
        ("min_delta", -1e-9),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(name, wrong):
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be"):
        (EarlyStopping if name in ("patience", "min_delta") else Recipe)(**{name: wrong})


def test_whole_numbers_are_stored_as_such():
    recipe = Recipe(epochs=3.0, samples=2.0, batch_size=8.0)
    for setting in (recipe.epochs, recipe.samples, recipe.batch_size):
        assert type(setting) is int
    assert Recipe(epochs=MAX_STEPS).epochs == MAX_STEPS


@pytest.mark.equation("D30")
@pytest.mark.parametrize(
    "estimator",
    [
        Reparameterised(MODEL, objective=Renyi(0.5)),
        Reparameterised(MODEL, objective=Renyi(0.0)),
        DoublyReparameterised(MODEL, objective=Renyi(0.0)),
        SelfNormalised(MODEL, objective=EUBO()),
    ],
)
@pytest.mark.parametrize("sizes", [[16.0, 16.0], [1.0, 1e9]], ids=["equal", "a very small one"])
def test_shares_that_must_be_those_of_the_rows_are_so_to_nine_digits(estimator, sizes):
    plain = np.array(sizes) / sum(sizes)

    def moved(by, estimator=estimator, **options):
        shares = plain + by * plain[0] * np.array([1.0, -1.0])
        return Recipe(kl_weights=lambda sizes: shares, **options).shares(estimator, sizes)

    assert moved(1e-11) == pytest.approx(plain, rel=1e-9)
    for by, warm_up in ((1e-7, NoWarmUp()), (1.0, NoWarmUp()), (0.0, LinearWarmUp(0.5))):
        with pytest.raises(ValueError, match="which must be its share B_i / N of the data"):
            moved(by, warm_up=warm_up)
        moved(by, Reparameterised(MODEL), warm_up=warm_up)  # with the free energy it may
