"""ArviZ reads our draws; LOO is leave-one-out; functions converge where weights cannot."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from problems import exact_posterior, linear_problem
from scipy import stats

from bbb_numpy import MLP, DrawnWeights, GaussianLikelihood, GaussianPrior, LogJoint, Model
from bbb_numpy.evaluation import arviz_export, convergence
from bbb_numpy.evaluation.arviz_export import to_arviz
from bbb_numpy.parts.hyperpriors import HalfNormal
from bbb_numpy.sampling.draws import Draws
from bbb_numpy.sampling.mcmc import NUTS, Info

RNG = np.random.default_rng


@pytest.fixture(scope="module")
def az():
    return convergence.import_arviz()


def left_out(az, exported):
    """ArviZ's estimates of log P(y_i | the other rows): of each row, and their sum."""
    loo = az.loo(exported, pointwise=True)
    if hasattr(loo, "elpd_i"):
        return loo.elpd_i, loo.elpd
    return loo.loo_i, loo.elpd_loo


def drawn(joint, positions):
    """Positions (T, S, D) as if a chain had gone there, with a number for each of its statistics.

    What an export holds does not depend on how the draws were made, and this takes no time.
    """
    shape = positions.shape[:2]
    log_density = joint(positions.reshape(-1, positions.shape[-1]))[0].reshape(shape)
    info = dict(zip(Info._fields, RNG(0).uniform(1, 9, (6, *shape)), strict=True))
    info |= {
        "divergent": info["divergent"] > 5,
        "depth": np.floor(info["depth"]),
    }
    return Draws(positions, log_density, info, NUTS(0.2), joint, joint.layout, 60, 0, True)


def loaded(draws):
    """Draws as those of a learner that was loaded: they know their model and have no data."""
    return SimpleNamespace(draws_=replace(draws, target=DrawnWeights(draws.target.model)))


@pytest.fixture(scope="module")
def network():
    """A small network with learned noise, 4 chains of 60 draws."""
    rng = RNG(0)
    x = rng.uniform(-2, 2, (12, 2))
    y = np.tanh(x[:, :1]) + 0.4 * rng.standard_normal((12, 1))
    model = Model(MLP((2, 3, 1), "tanh"), GaussianPrior(0.7), GaussianLikelihood(0.5, learn=True))
    joint = LogJoint(model, x, y, {"log_noise": HalfNormal(1.0)})
    return drawn(joint, 0.5 * rng.standard_normal((60, 4, joint.layout.size)))


# What is in the groups


@pytest.mark.equation("D33")
def test_the_groups_hold_weights_scales_statistics_and_the_log_density_of_rows(network):
    """Likelihood of the rows and prior make up the density of the chain."""
    exported, statistics = to_arviz(network), network.stats
    prior = replace(network.target, power=0.0)(network.flat)[0].reshape(60, 4)
    total = exported.log_likelihood.y.values.sum(axis=-1).T + prior
    np.testing.assert_allclose(total, network.log_density, rtol=0, atol=1e-10)
    blocks = {name: network.block(name) for name in ("W0", "b0", "W1", "b1", "log_noise")}
    blocks["noise"] = np.exp(blocks["log_noise"])
    named = {"acceptance_rate": statistics["acceptance"], "diverging": statistics["divergent"],
             "energy": statistics["energy"], "n_steps": statistics["gradients"],
             "tree_depth": statistics["depth"], "lp": network.log_density}  # fmt: skip
    for group, expected in ((exported.posterior, blocks), (exported.sample_stats, named)):
        assert set(group.data_vars) == set(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(group[name].values.swapaxes(0, 1), values)
    assert exported.sample_stats.diverging.dtype == bool


@pytest.mark.equation("D33", "D45")
def test_rows_of_ones_own_count_once_in_place_of_those_that_the_chains_saw():
    """Of targets with two columns, too; draws that were loaded have no rows of their own."""
    rng = RNG(2)
    x, y = rng.standard_normal((6, 1)), rng.standard_normal((6, 2))
    plain = LogJoint(Model(MLP((1, 2)), likelihood=GaussianLikelihood(0.5, learn=True)), x, y)
    draws = drawn(plain, rng.standard_normal((9, 2, plain.layout.size)))
    weighted = replace(draws, target=replace(plain, sample_weight=np.arange(1.0, 7.0)))
    expected = plain.rowwise(draws.flat).reshape(9, 2, 6).swapaxes(0, 1)
    for exported in (to_arviz(weighted), to_arviz(loaded(draws), x.tolist(), y)):
        np.testing.assert_allclose(exported.log_likelihood.y, expected, rtol=1e-12)
    for exported in (to_arviz(loaded(draws)), to_arviz(draws, log_likelihood=False)):
        assert not hasattr(exported, "log_likelihood")


def test_arviz_1_gets_all_groups_in_one_dictionary(network, monkeypatch):
    """Whichever ArviZ is there; that this one accepts them, the other tests show."""
    arviz_1 = SimpleNamespace(__version__="1.0.0", from_dict=lambda groups: groups)
    monkeypatch.setattr(arviz_export, "import_arviz", lambda: arviz_1)
    assert {*to_arviz(network)} == {"posterior", "sample_stats", "log_likelihood"}


# ArviZ's own tools


def leave_one_out(estimator, x, y):
    """log P(y_i | the other rows) (N,) of the conjugate model, exactly (D8)."""
    log_densities = []
    for i in range(len(x)):
        q = exact_posterior(estimator, np.delete(x, i, axis=0), np.delete(y, i, axis=0))
        phi = np.append(x[i], 1.0)
        variance = estimator.model.likelihood.scale**2 + phi @ np.linalg.solve(q.precision, phi)
        log_densities.append(stats.norm.logpdf(y[i, 0], phi @ q.mean, np.sqrt(variance)))
    return np.array(log_densities)


@pytest.mark.equation("D8", "D33")
def test_loo_is_leave_one_out(az):
    """Of linear regression, whose posterior is a Gaussian to draw from."""
    estimator, x, y = linear_problem(seed=2, rows=80)  # so many that none decides a weight alone
    joint, q = LogJoint(estimator.model, x, y), exact_posterior(estimator, x, y)
    positions = RNG(0).multivariate_normal(q.mean, np.linalg.inv(q.precision), (4_000, 1))
    exact = leave_one_out(estimator, x, y)
    rows, total = left_out(az, to_arviz(drawn(joint, positions)))
    np.testing.assert_allclose(rows, exact, rtol=0, atol=0.1)
    assert total == pytest.approx(exact.sum(), abs=0.2)
    with_itself = np.log(np.exp(joint.rowwise(positions[:, 0])).mean(axis=0))
    assert np.abs(with_itself - exact).max() > 0.4, "what a row says of itself"


# Convergence


def around_a_mode():
    """Draws as of 4 perfect chains around one mode of a tanh network with learned noise."""
    rng = RNG(0)
    model = Model(MLP((1, 3, 1), "tanh"), GaussianPrior(), GaussianLikelihood(0.3, learn=True))
    x = rng.uniform(-1, 1, (8, 1))
    mode = np.array([1.0, -2.0, 3.0, 0.5, 0.0, -0.5, 2.0, -1.0, 1.0, 0.1, -1.0])
    positions = mode + 0.05 * rng.standard_normal((200, 4, 11))
    return drawn(LogJoint(model, x, np.sin(3 * x)), positions)


def rearranged(draws, order, signs):
    """Exchange the hidden units of the last chain, and turn their signs."""
    positions, signs = draws.positions.copy(), np.array(signs, float)
    blocks = draws.layout.views(positions)
    for name, axis, factors in (("W0", -1, signs), ("b0", -1, signs), ("W1", -2, signs[:, None])):
        last_chain = blocks[name][:, -1]  # (T, ...)
        last_chain[...] = np.take(last_chain, order, axis=axis) * factors
    return drawn(draws.target, positions)


@pytest.mark.parametrize(
    ("order", "signs"), [((2, 0, 1), (1, 1, 1)), ((0, 1, 2), (-1, 1, -1)), ((1, 0, 2), (1, -1, 1))]
)
def test_units_in_another_order_change_the_weights_r_hat_and_no_function(order, signs):
    """tanh is odd: negating what goes into a unit and what comes out of it changes nothing."""
    draws = around_a_mode()
    agreeing = convergence.convergence(draws)
    permuted = convergence.convergence(rearranged(draws, order, signs))
    assert agreeing.worst("weights").r_hat < 1.02
    assert permuted.worst("weights").r_hat > 1.5
    assert permuted.worst("weights").ess_bulk < 10
    # To the bit, since all are of ranks; but for a tie that rounding breaks in R-hat, which ranks
    # distances from the median too: of 800 draws the two in the middle have the same
    expected, functions = (
        [o for o in c.lines if o.space == "functions"] for c in (agreeing, permuted)
    )
    assert [replace(o, r_hat=0.0) for o in functions] == [replace(o, r_hat=0.0) for o in expected]
    assert [o.r_hat for o in functions] == pytest.approx([o.r_hat for o in expected], abs=1e-3)
    assert (agreeing.mixed, permuted.mixed) == (True, True)
    assert "order of hidden units" in str(permuted)


def test_the_table_is_that_of_arviz(az, network):
    lines = {line.name: line for line in convergence.convergence(network).lines}
    exported = to_arviz(network)
    assert lines["W0"].r_hat == float(az.rhat(exported).W0.max())
    assert lines["log_noise"].ess_tail == float(az.ess(exported, method="tail").log_noise.min())
    assert (lines["W0"].n_numbers, lines["E[y|x] at 12 rows"].n_numbers) == (6, 12)
    elsewhere = convergence.convergence(network, np.eye(2), weights=False)
    assert elsewhere.lines[0].name == "E[y|x] at 2 rows"
    assert convergence.function_r_hats(network, np.eye(2)).max() == elsewhere.lines[0].r_hat
    with pytest.raises(ValueError, match="got 'weights'"):
        elsewhere.worst("weights")


def test_a_loaded_learner_asks_for_rows_and_never_judges_by_its_weights(network):
    table = convergence.convergence(loaded(network))
    assert [(line.space, line.name) for line in table.lines] == [
        *(("functions", name) for name in ("log density", "log_noise")),
        *(("weights", name) for name in ("W0", "b0", "W1", "b1")),
    ]
    text = " ".join(str(table).split())
    assert all(phrase in text for phrase in ("E[y|x] are not judged", "give x", "hidden units"))
    for judged in (network,), (loaded(network), X):
        assert "not judged" not in str(convergence.convergence(*judged))


def test_chains_that_stand_still_have_not_converged():
    draws = around_a_mode()
    stuck = np.broadcast_to(draws.positions[:1], draws.positions.shape).copy()
    # of four draws there is no variance, to the last bit
    for positions, least in ((stuck, 100.0), (stuck[:4], np.inf)):
        table = convergence.convergence(drawn(draws.target, positions))
        assert table.worst("functions").r_hat >= least
    with pytest.raises(ValueError, match="no number ever changes"):
        convergence.convergence(drawn(draws.target, np.repeat(stuck[:, :1], 4, axis=1)))


# When chains count as mixed

ENOUGH = convergence.Line("functions", "E[y|x]", 5, r_hat=1.0099, ess_bulk=400.0, ess_tail=400.0)


@pytest.mark.parametrize(
    ("change", "mixed"),
    [({}, True), ({"r_hat": 1.01}, False), ({"r_hat": 1.0101}, False), ({"ess_bulk": 399.0}, False),
     ({"ess_tail": 399.0}, False), ({"r_hat": 2.0, "ess_bulk": 3.0, "space": "weights"}, True)],
)  # fmt: skip
def test_four_mixed_chains_have_400_effective_draws_and_an_r_hat_below_1_01(change, mixed):
    """Of the log density and the functions; weights, which modes permute, are not asked."""
    lines = (replace(ENOUGH, name="log density"), replace(ENOUGH, **change))
    table = convergence.Convergence(1000, 4, lines)
    verdict = "No lack of convergence is seen." if mixed else "Wanted are R-hat < 1.01 and 100 eff"
    assert table.mixed is mixed
    assert verdict in str(table)


def test_any_divergence_is_told_however_well_chains_agree():
    clean, divergent = (
        str(convergence.Convergence(1000, 4, (ENOUGH,), n_divergent=k)) for k in (0, 1)
    )
    sentence = "1 of 4000 draws followed a divergence: there may be a narrow region of"
    assert "diverg" not in clean
    assert divergent.startswith(f"{clean}\n{sentence}")


def test_the_worst_of_a_space_has_the_largest_r_hat_and_the_smallest_sizes():
    density = convergence.Line(
        "functions", "log density", 1, r_hat=1.2, ess_bulk=500.0, ess_tail=90.0
    )
    lines = (ENOUGH, density, replace(density, space="weights", r_hat=9.0))
    worst = convergence.Convergence(1000, 4, lines).worst("functions")
    assert worst == convergence.Line("functions", "all", 6, 1.2, 400.0, 90.0)


# What is refused

X = np.zeros((3, 2))
REFUSED = [
    (lambda d: to_arviz(d, log_likelihood="no"), "log_likelihood must be True or False"),
    (lambda d: to_arviz(d, y=X), "x holds nan"),
    (lambda d: to_arviz(replace(d, positions=d.positions[:0])), "interrupted"),
    (lambda d: to_arviz(d.positions), "learner with draws_"),
    (lambda d: to_arviz(replace(d, target=np.sin), X, X), "has a model"),
    (lambda d: convergence.convergence(replace(d, positions=d.positions[:, :1])), "two chains"),
    (lambda d: convergence.function_r_hats(replace(d, target=np.sin), X), "has a model"),
    (lambda d: convergence.convergence(replace(d, target=np.sin), X), "has a model"),
    *(
        (lambda d, far=far: convergence.convergence(d, X + far), "x must be between -1e.100 and")
        for far in (1.1e100, -1.1e100)
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_exported_or_judged_is_refused(network, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(network)


@pytest.mark.parametrize("call", [to_arviz, convergence.convergence])
def test_without_arviz_the_message_says_what_to_install(call, network, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"bbb-numpy\[diagnostics\]"):
        call(network)


def test_arviz_needs_docstrings_and_no_assertions(monkeypatch):
    for level, refused in ((1, nullcontext()), (2, pytest.raises(ImportError, match="-OO"))):
        flags = SimpleNamespace(optimize=level)
        monkeypatch.setattr(convergence, "sys", SimpleNamespace(flags=flags))
        with refused:
            convergence.import_arviz()
