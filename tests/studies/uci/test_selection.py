"""Hyperparameters: the lowest criterion wins, and it sees the training part only."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from uci_trials import TINY

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.objectives import MAP
from bbb_numpy.parts.posteriors import PointMass
from bbb_studies.uci import selection
from bbb_studies.uci.methods import METHODS, SAMPLERS, Candidate, Fit, model
from bbb_studies.uci.selection import candidates, refinements, select_and_fit

pytestmark = pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")
BY_BOUND = tuple(name for name, method in METHODS.items() if method.criterion == "bound")
BY_VALIDATION = tuple(name for name, method in METHODS.items() if method.criterion == "validation")
CHOOSING = (*BY_BOUND, *BY_VALIDATION)
KINDS = ("renyi", "map", "eubo", "hmc")  # by bound; by validation, refined or not; a sampler
MEMBERS = ((0.5, 0.7), (-1.0, 0.4))  # means and deviations of two constant functions
PRIORS = {"N(0, 1)": None} | {f"{m:g} x (1, 1/sqrt(units))": m for m in (1.0, 2.0, 4.0)}


class Fits:
    """In place of `fit` and `_loss`: remembers calls, and scores each candidate by `criterion`."""

    def __init__(self, monkeypatch, criterion):
        self.calls, self.losses, self.criterion = [], [], criterion
        monkeypatch.setattr(selection, "fit", self.fit)
        monkeypatch.setattr(selection, "_loss", self.loss)

    def fit(self, x, y, method, some, settings, seed):
        self.calls.append((x, y, list(some), settings, list(seed)))
        return [Fit((one,), (np.zeros(1),), self.criterion(one)) for one in some]

    def loss(self, found, x, y, seed):
        self.losses.append((x, y))
        return self.criterion(found.sources[0])

    @property
    def tried(self):
        """Candidates in order, each once."""
        return list(dict.fromkeys(one for _, _, some, *_ in self.calls for one in some))


def numbered(rows=50):
    """Rows that say their numbers."""
    x = np.arange(rows, dtype=np.float32)[:, None]
    return x, -x


def name_of(one):
    (prior,) = (name for name, value in PRIORS.items() if value == one.prior)
    return f"{prior}, rate {one.learning_rate:g}, length {one.length:g}"


def lowest(method, best):
    """The criterion of which `best` is the lowest, all others apart and of both signs."""
    every = [*candidates(method)]
    for one in candidates(method):
        every += refinements(method, one)
    order = {one: 0.3 * place - 0.5 for place, one in enumerate(dict.fromkeys(every))}
    return lambda one: -9.0 if one == best else order[one]


@pytest.mark.parametrize(
    ("method", "best"),
    [
        (method, best)
        for method in KINDS
        for best in [*candidates(method), *refinements(method, candidates(method)[0])]
    ],
)
def test_the_candidate_with_the_lowest_criterion_wins(monkeypatch, method, best):
    fits = Fits(monkeypatch, lowest(method, best))
    found, chosen = select_and_fit(*numbered(), method, TINY, 3)
    assert found.sources == (best,)
    assert f"{chosen['prior']}, rate {chosen['learning_rate']:g}, length {chosen['length']:g}" == (
        name_of(best)
    )
    assert chosen["tried"] == {name_of(one): fits.criterion(one) for one in fits.tried}
    assert min(chosen["tried"], key=chosen["tried"].get) == name_of(best)
    assert chosen["by"] == ("bound" if method in BY_BOUND else "validation")
    first, others = fits.tried[:3], fits.tried[3:]
    assert first == candidates(method)  # only the best prior is refined
    assert {one.prior for one in others} == ({best.prior} if others else set())
    assert bool(others) == (method not in (*SAMPLERS, "eubo"))


def test_dropout_compares_shares_that_are_left_out(monkeypatch):
    fits = Fits(monkeypatch, lambda one: abs(one.left_out - 0.02))
    _, chosen = select_and_fit(*numbered(), "dropout", TINY, 3)
    assert chosen["left_out"] == 0.02
    assert [name.split("left out ")[1] for name in chosen["tried"]] == ["0.005", "0.02", "0.1"]
    assert [one.left_out for one in fits.tried] == [0.005, 0.02, 0.1]


@pytest.mark.parametrize("method", ["default", "laplace", "last-layer"])
def test_nothing_is_chosen_where_all_is_given(monkeypatch, method):
    fits = Fits(monkeypatch, lambda one: 0.0)
    x, y = numbered()
    _, chosen = select_and_fit(x, y, method, TINY, 3)
    ((fitted_x, fitted_y, some, *_),) = fits.calls  # once, to all training rows
    assert (fitted_x is x, fitted_y is y, len(some), fits.losses) == (True, True, 1, [])
    assert chosen == {"by": "nothing", "tried": {}}


@pytest.mark.parametrize("method", BY_BOUND)
def test_methods_with_a_bound_use_all_training_rows_always(monkeypatch, method):
    fits = Fits(monkeypatch, lowest(method, candidates(method)[0]))
    monkeypatch.setattr(selection, "_loss", lambda *given: pytest.fail("needs held-out rows"))
    x, y = numbered()
    select_and_fit(x, y, method, TINY, 3)
    assert all(given[0] is x and given[1] is y for given in fits.calls)
    assert {tuple(seed) for *_, seed in fits.calls} == {(3, 0)}
    assert all(given[3] is TINY for given in fits.calls)


@pytest.mark.parametrize("method", ["eubo", "nuts"])
@pytest.mark.parametrize(("folds", "count"), [(1, 50), (2, 53), (5, 50), (5, 53)])
def test_folds_are_disjoint_fifths_of_the_training_part(monkeypatch, method, folds, count):
    fits = Fits(monkeypatch, lowest(method, candidates(method)[1]))
    x, y = numbered(count)
    select_and_fit(x, y, method, replace(TINY, folds=folds), 3)
    *compared, final = fits.calls
    out = {}  # one entry for each fold
    for fold_x, fold_y in fits.losses:
        np.testing.assert_array_equal(fold_y, -fold_x)
        out[tuple(fold_x[:, 0].astype(int))] = None
    assert len(out) == folds
    held_out = [row for fold in out for row in fold]
    assert len(set(held_out)) == len(held_out) == folds * (count // 5)
    assert {len(fold) for fold in out} == {count // 5}
    assert set(held_out) < set(range(count)) or (folds, count) == (5, 50)
    for rest, targets, *_ in compared:
        np.testing.assert_array_equal(targets, -rest)
        left = tuple(sorted(set(range(count)) - set(rest[:, 0].astype(int))))
        assert left in out  # fitted without exactly one fold
        assert len(rest) + len(left) == count
    assert final[0] is x
    assert final[1] is y
    assert len(final[2]) == 1
    assert (final[4], {tuple(seed) for *_, seed in compared}) == ([3, 0], {(3, 3)})


@pytest.mark.parametrize("method", ["map", "ensemble", "hmc"])
def test_runs_that_compare_are_shorter_and_the_last_is_not(monkeypatch, method):
    fits = Fits(monkeypatch, lambda one: 0.0)
    settings = replace(TINY, warm_up=100, draws=31, members=5, chains=4, pilot=0.4)
    select_and_fit(*numbered(), method, settings, 3)
    *compared, final = (given[3] for given in fits.calls)
    assert final == settings
    for one in compared:
        assert one == replace(settings, warm_up=40, draws=13, members=2, chains=2)


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize("how", ["nan", "an error"])
@pytest.mark.parametrize("which", [0, 2])
def test_a_candidate_that_diverges_loses_and_says_so(monkeypatch, method, how, which):
    bad, best = candidates(method)[which], candidates(method)[1]
    order = lowest(method, best)
    fits = Fits(monkeypatch, lambda one: math.nan if one == bad else order(one))
    if how == "an error":

        def failing(x, y, method, some, settings, seed):
            if bad in some:
                raise ArithmeticError("it diverged")
            return fits.fit(x, y, method, some, settings, seed)

        monkeypatch.setattr(selection, "fit", failing)
    found, chosen = select_and_fit(*numbered(), method, TINY, 3)
    assert found.sources == (best,)
    assert chosen["tried"][name_of(bad)] is None  # JSON has no nan
    others = {name: value for name, value in chosen["tried"].items() if name != name_of(bad)}
    assert others == {name_of(one): order(one) for one in fits.tried if one != bad}
    Fits(monkeypatch, lambda one: math.nan)
    with pytest.raises(ArithmeticError, match=r"every candidate diverged: .*rate 0.01, length"):
        select_and_fit(*numbered(), method, TINY, 3)


@pytest.mark.equation("D5")
def test_the_loss_is_that_of_the_mixture_of_all_members():
    parts = replace(TINY, units=1)
    source = Reparameterised(model(1, Candidate(1.0), parts), PointMass(), MAP())
    # f = w2 relu(w1 x + b1) + b2: constants here
    thetas = [np.array([0.0, 0.0, 0.0, mean, math.log(noise)]) for mean, noise in MEMBERS]
    y = np.array([[0.3], [-1.0], [2.0]])
    found = selection._loss(Fit((source, source), tuple(thetas)), np.zeros((3, 1)), y, 3)
    densities = stats.norm.pdf(y, *np.transpose(MEMBERS))  # (rows, members)
    assert found == pytest.approx(-np.log(densities.mean(axis=1)).mean(), rel=1e-12)
