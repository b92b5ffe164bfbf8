"""inference: one argument chooses the posterior's approximation, or draws from the posterior."""

import csv
import pickle
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from bbb_numpy import (
    HMC,
    IVON,
    MAP,
    MLE,
    NUTS,
    Adam,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    DrawnWeights,
    EarlyStopping,
    FreeEnergy,
    FullRank,
    GaussianLikelihood,
    GaussianPrior,
    GaussianWalk,
    HalfCauchy,
    HalfNormal,
    LocalReparameterisation,
    LogNormal,
    MeanField,
    MetropolisHastings,
    PointMass,
    Renyi,
    Reparameterised,
    load,
    save,
)
from bbb_numpy.cli.main import main
from bbb_numpy.evaluation import predictive
from bbb_numpy.learners import inference as inference_module
from bbb_numpy.learners.inference import Sampling, supports_partial_fit
from bbb_numpy.learners.plan import check_plan
from bbb_numpy.training import ensembles
from bbb_numpy.training.ensembles import ensemble_starts
from bbb_numpy.training.laplace import COVARIANCES, Laplace
from bbb_numpy.training.schedules import TrainingSchedule

SHORT = Sampling(NUTS(max_depth=3), chains=2, draws=20, warm_up=30, start="prior")
NUMBERS = np.random.default_rng(0)
X = NUMBERS.normal(size=(30, 2))
Y = 5.0 + 3.0 * (X[:, 0] - X[:, 1] + 0.3 * NUMBERS.normal(size=30))
SAMPLERS = ("hmc", "chees", "nuts", "mams", "mclmc", "sghmc", "sgld")
KINDS = np.array(["no", "yes", "maybe"])[np.digitize(X[:, 0], [-0.5, 0.5])]


# So short a warm-up ends with any step size; the sampler's own tests judge it
pytestmark = [
    pytest.mark.brief,
    pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* is not adjusted:UserWarning"),
]


def train_members_for(epochs, monkeypatch):
    """Let the members of an ensemble be trained for so many epochs."""
    schedule = TrainingSchedule(epochs, batch_size=32, samples=1, learning_rate=1e-2)
    monkeypatch.setattr(ensembles, "schedule_for", lambda *_: schedule)


@pytest.fixture(autouse=True)
def short_ensembles(monkeypatch, arviz):
    train_members_for(150, monkeypatch)


def regressor(inference=SHORT, **params):
    settings = {"hidden_layer_sizes": (3,), "activation": "tanh", "random_state": 0}
    settings |= {"epochs": 3 if supports_partial_fit(inference) else None, "predict_samples": 20}
    return BayesianMLPRegressor(**settings | params, inference=inference)


def classifier(inference=SHORT, **params):
    settings = {"hidden_layer_sizes": (3,), "activation": "tanh", "random_state": 0}
    settings |= {"epochs": 3 if supports_partial_fit(inference) else None}
    return BayesianMLPClassifier(**settings | params, inference=inference)


LAPLACE = {"inference": Laplace(rounds=4), "epochs": 150}


@pytest.fixture(scope="session")
def sampled():
    """Copies of a regressor that has drawn from its posterior."""
    return partial(deepcopy, regressor().fit(X, Y))


@pytest.fixture(scope="session")
def approximated():
    """Copies of a regressor with Laplace's approximation."""
    return partial(deepcopy, regressor(**LAPLACE).fit(X, Y))


def plan(**params):
    return check_plan(BayesianMLPRegressor(**params))


# What the names mean


@pytest.mark.parametrize(
    ("params", "posterior", "objective"),
    [
        ({}, MeanField(rho_offset=-4.0), FreeEnergy()),
        ({"inference": "full-rank"}, FullRank(rho_offset=-4.0, unit=0.01), FreeEnergy()),
        ({"inference": "map"}, PointMass(), MAP()),
        ({"inference": "mle"}, PointMass(), MLE()),
        ({"inference": MeanField(), "objective": "iwae"}, MeanField(), Renyi(0.0)),
        ({"inference": PointMass(0.5)}, PointMass(0.5), MAP()),
        ({"inference": "laplace"}, Laplace(), MAP()),
        ({"inference": PointMass(0.5), "objective": "mle"}, PointMass(0.5), MLE()),
        *(({"inference": n}, Sampling(n), None) for n in SAMPLERS),
    ],
)
def test_each_name_chooses_posterior_and_objective(params, posterior, objective):
    resolved = plan(**params)
    assert (resolved.parts["inference"], resolved.parts["objective"]) == (posterior, objective)
    assert resolved.method.is_sampled == isinstance(posterior, Sampling)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inference": "map", "objective": "elbo"}, "contradicts objective=FreeEn"),
        ({"inference": "map", "objective": "mle"}, "contradicts objective=MLE"),
        ({"inference": "mle", "objective": MAP()}, "contradicts objective=MAP"),
        ({"inference": PointMass(), "objective": "iwae"}, "single value.*contradicts obj.*=Renyi"),
        ({"objective": "map"}, "'mean-field' trains a distribution of each weight, .*=MAP.*'map'"),
        ({"inference": "nuts", "objective": "map"}, "cannot use objective='map'"),
        (
            {"inference": "hmc", "gradient_estimator": "flipout"},
            "cannot use gradient_estimator='flipout'",
        ),
        ({"inference": "hmc", "optimizer": Adam()}, "trains nothing.*optimizer=Adam"),
        ({"inference": "nuts", "epochs": 3, "samples": 2}, "use epochs=3, samples=2; leave"),
        ({"inference": "laplace", "epochs": 3, "samples": 2}, "use samples=2; leave"),
        ({"inference": "nuts", "early_stopping": EarlyStopping()}, "early_stopping=Early"),
        ({"inference": "nuts", "validation_fraction": 0.2}, "validation_fraction=0.2"),
        ({"inference": Sampling(checkpoint="run")}, "random_state must be a whole number"),
        ({"inference": "laplace", "objective": "elbo"}, "MAP alone, so it cannot use objective='e"),
        ({"inference": Laplace(), "warm_start": True}, "warm_start=True; leave that out"),
        ({"inference": "laplace", "early_stopping": EarlyStopping()}, "early_stopping=Early"),
    ],
)
def test_contradictions_are_errors_that_say_so(params, message):
    with pytest.raises(ValueError, match=message):
        plan(**params)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sampler", "gibbs", "must be one of .*'nuts'"),
        ("sampler", NUTS, "must be"),
        *(
            (name, value, "must be")
            for name, value in {"chains": 0, "draws": "many", "warm_up": -1, "thin": 1.5}.items()
        ),
        ("metric", "full", "must be one of 'diagonal', 'dense'"),
        ("target_accept", 1.0, "must be > 0 and < 1"),
        ("start", "map", "must be one of 'prior', 'ensemble'; got 'map'"),
        ("start", np.zeros(3), "must be one of 'prior', 'ensemble'; got an"),
        ("groups", 5, "must be a whole number >= 1 and <= 4; got 5"),
        ("cores", 0, "must be a whole number >= 1; got 0"),
        ("hyperpriors", LogNormal(), "must be a mapping"),
        ("hyperpriors", {"log_noise": HalfNormal}, r"\['log_noise'\]"),
    ],
)
def test_settings_of_sampling_are_checked(name, value, message):
    with pytest.raises((TypeError, ValueError), match=f"{name}.*{message}"):
        regressor(Sampling(**{"start": "prior", name: value})).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampler": "gibbs"}, "sampler must be one of"),
        ({"groups": 5}, "groups must be .* <= 4; got 5"),
        ({"sampler": "chees", "groups": 4}, "from whose spread it learns its path"),
        ({"sampler": "chees", "chains": 1}, "from whose spread it learns its path"),
        ({"hyperpriors": {"log_scale": HalfNormal()}}, "hyperpriors must name .* got 'log_scale'"),
        ({"checkpoint": "taken/run"}, "taken"),
    ],
)
def test_what_sampling_cannot_do_is_refused_before_its_ensemble_trains(
    settings, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").touch()
    monkeypatch.setattr(inference_module, "ensemble_starts", lambda *_, **__: pytest.fail("trains"))
    with pytest.raises((ValueError, OSError), match=message):
        regressor(Sampling(**settings)).fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "y", "message"),
    [({"thin": 2}, Y, "thin was 1, is now 2"), ({}, Y + Y**2, "[;:] y was ")],
)
def test_a_checkpoint_of_another_run_is_refused_before_the_ensemble_trains(
    changes, y, message, tmp_path, monkeypatch
):
    run = replace(TINY, checkpoint=tmp_path, start="ensemble")
    starts = np.random.default_rng(0).normal(size=(2, 14))
    monkeypatch.setattr(inference_module, "ensemble_starts", lambda *_, **__: starts)
    regressor(run).fit(X, Y)
    monkeypatch.setattr(inference_module, "ensemble_starts", lambda *_, **__: pytest.fail("trains"))
    with pytest.raises(ValueError, match=message):
        regressor(replace(run, **changes)).fit(X, y)


def test_an_empty_path_is_no_folder():
    with pytest.raises(ValueError, match="checkpoint must be the path of a folder; got ''"):
        Sampling(checkpoint="")


def test_unknown_hyperpriors_are_refused_and_an_earlier_fit_is_kept():
    model = regressor("mean-field").fit(X, Y)
    old_prediction = model.predict(X)
    unknown = replace(SHORT, hyperpriors={"log_scale": HalfNormal()})
    model.set_params(inference=unknown, epochs=None)
    with pytest.raises(
        ValueError, match="hyperpriors must name learned blocks of the model, which are lo"
    ):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), old_prediction)


# What is sampled


@pytest.mark.parametrize("sampler", ["nuts", "chees", "hmc", "mams"])
def test_a_linear_model_is_sampled_from_its_exact_posterior(sampler):
    """Without hidden layers the posterior is N(m, C), C^-1 = A^T A / s^2 + 1 / p^2."""
    noise, scale = 0.5, 0.7
    model = BayesianMLPRegressor(
        *((),), prior=GaussianPrior(scale), likelihood=GaussianLikelihood(noise), random_state=1,
        inference=Sampling(sampler, chains=16, draws=150, warm_up=150, start="prior"),
        standardize=False,
    ).fit(X, Y / 3.0 - 1.0)  # fmt: skip
    ones = np.column_stack([X, np.ones(30)])
    covariance = np.linalg.inv(ones.T @ ones / noise**2 + np.eye(3) / scale**2)
    mean = covariance @ ones.T @ (Y / 3.0 - 1.0) / noise**2
    deviation = np.sqrt(np.diag(covariance))
    chains = model.draws_.positions  # (T, S, D)
    error = chains.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(16)  # of the mean, between chains
    assert (np.abs(chains.mean(axis=(0, 1)) - mean) < 6 * error).all()  # t of 15: once in 1e4
    assert (error < 0.05 * deviation).all()
    np.testing.assert_allclose(chains.std(axis=(0, 1)), deviation, rtol=0.1)
    predictive = model.set_params(predict_samples=2000).predict_distribution(X)
    function = np.sqrt(np.einsum("nd,de,ne->n", ones, covariance, ones))
    np.testing.assert_allclose(predictive.mean, ones @ mean, atol=0.2 * function.max())
    np.testing.assert_allclose(predictive.epistemic, function, rtol=0.12)
    np.testing.assert_allclose(predictive.aleatoric, noise, rtol=1e-12)


def test_predictions_are_those_of_the_draws(sampled):
    model = sampled()
    shift, scale = model.y_mean_[0], model.y_scale_[0]
    x, y = (X - model.x_mean_) / model.x_scale_, (Y[:, None] - shift) / scale

    def asked(function, *rows):
        rng = np.random.default_rng(model.predict_seed_)
        drawn = DrawnWeights(model.draws_.target.model)
        return function(drawn, model.draws_.flat, *rows, rng=rng, samples=20)

    expected, distribution = asked(predictive.predict, x), model.predict_distribution(X)
    np.testing.assert_array_equal(distribution.mean, expected.mean[:, 0] * scale + shift)
    np.testing.assert_array_equal(distribution.epistemic, expected.epistemic[:, 0] * scale)
    functions = asked(predictive.sample_functions, x)[:, :, 0].T * scale + shift
    np.testing.assert_array_equal(model.sample_functions(X, 20), functions)
    density = asked(predictive.log_predictive_density, x, y) - np.log(scale)
    np.testing.assert_array_equal(model.log_predictive_density(X, Y), density)
    assert model.sample_y(X, 3).shape == (30, 3)
    assert model.score(X, Y) > 0.5


def test_what_a_sampled_model_has(sampled):
    model = sampled()
    draws = model.draws_
    assert draws.positions.shape == (20, 2, 14)  # 3 * 2 + 3 + 3 + 1 weights, the noise
    assert (model.theta_.shape, model.n_iter_) == ((40, 14), 20)
    noise = np.exp(draws.block("log_noise")).mean(axis=(0, 1))
    np.testing.assert_allclose(model.noise_scale_, noise * model.y_scale_, rtol=1e-12)
    with pytest.raises(AttributeError, match=r"has no epochs: use draws_\.stats"):
        _ = model.history_
    assert not hasattr(model, "training_")
    assert draws.target.hyperpriors == {"log_noise": HalfCauchy(1.0)}
    hyperpriors = {"log_noise": HalfNormal(0.3), "prior_log_scale": LogNormal(0.5)}
    learned = regressor(replace(SHORT, hyperpriors=hyperpriors), prior="gaussian-learned").fit(X, Y)
    assert learned.draws_.target.hyperpriors == hyperpriors
    fixed = regressor(likelihood="gaussian").fit(X, Y)
    assert fixed.draws_.target.hyperpriors == {}
    np.testing.assert_allclose(fixed.noise_scale_, 0.1 * fixed.y_scale_, rtol=1e-12)
    for name in ("theta_", "history_", "n_iter_", "noise_scale_"):
        with pytest.raises(NotFittedError):
            getattr(regressor(), name)


@pytest.mark.parametrize(
    ("make", "y", "dtype"), [(regressor, Y, "float32"), (classifier, KINDS, "float64")]
)
def test_the_same_seed_gives_the_same_draws_bit_for_bit(make, y, dtype):
    few_draws = replace(SHORT, draws=5, warm_up=10)
    one, two = (make(few_draws, dtype=dtype).fit(X, y) for _ in range(2))
    assert one.theta_.dtype == dtype
    assert one.theta_.tobytes() == two.theta_.tobytes()
    another_seed = make(few_draws, dtype=dtype, random_state=1).fit(X, y)
    assert another_seed.theta_.tobytes() != one.theta_.tobytes()
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("labels", [KINDS, KINDS == "yes"], ids=["three", "two"])
def test_a_classifier_predicts_from_draws(labels):
    sampler = "hmc" if labels.dtype == bool else NUTS(max_depth=4)
    model = classifier(Sampling(sampler, chains=2, draws=40, warm_up=60)).fit(X, labels)
    distribution = model.predict_distribution(X)
    np.testing.assert_allclose(distribution.proba.sum(axis=1), 1.0, rtol=1e-12)
    assert (distribution.epistemic > 0).any()
    assert model.score(X, labels) > 0.85
    assert model.log_predictive_density(X, labels).mean() > np.log(1.0 / len(model.classes_))
    assert model.sample_functions(X, 5).shape == (30, len(model.classes_), 5)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), distribution.proba, rtol=1e-9)


# Going on, starting anew, interruption


def test_draws_are_not_trained_further(sampled):
    model = sampled()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'"):
        classifier("hmc").partial_fit(X, KINDS, classes=np.unique(KINDS))
    with pytest.raises(ValueError, match="holds draws of its posterior, which partial_fit cannot"):
        model.set_params(inference="mean-field").partial_fit(X, Y)
    assert BayesianMLPRegressor.partial_fit.__doc__.startswith("Continue training")


def test_fit_starts_anew_whatever_was_fitted_before(sampled):
    model = sampled()
    model.set_params(inference="mean-field", epochs=3).fit(X, Y)
    assert not hasattr(model, "draws_")
    assert model.theta_.tobytes() == regressor("mean-field").fit(X, Y).theta_.tobytes()
    assert model.partial_fit(X, Y).n_iter_ == 4
    model.set_params(inference=SHORT, epochs=None).fit(X, Y)
    assert not hasattr(model, "training_")
    assert model.theta_.tobytes() == sampled().theta_.tobytes()


@pytest.mark.parametrize(("make", "y"), [(regressor, Y), (classifier, KINDS)])
def test_a_warm_start_adds_draws_of_the_same_chains(make, y, tmp_path):
    model = make(replace(SHORT, groups=2, cores=1), warm_start=True).fit(X, y)
    first = model.draws_
    save(model, tmp_path / "m")
    model.fit(X, y)
    assert model.n_iter_ == 40
    np.testing.assert_array_equal(model.draws_.positions[:20], first.positions)
    assert repr(model.draws_.kernels) == repr(first.kernels)
    assert (np.ptp(model.draws_.positions[20:], axis=0) > 0).all()
    twin = load(tmp_path / "m")  # without the rows, which are given again
    np.testing.assert_array_equal(twin.fit(X, y).theta_, model.theta_)
    old_prediction = model.predict(X)
    for message, changes in {
        "start has draws of a different target": {},
        "the chains that it continues, NUTS; got 'hmc'": {"inference__sampler": "hmc"},
        r"\(4, 14\); got \(2, 14\)": {"inference__chains": 4},
        "the model has changed since it was fitted": {"prior__scale": 0.3},
    }.items():
        changed = clone(model).set_params(**changes)
        changed.fitted_ = model.fitted_
        with pytest.raises(ValueError, match=message if make is regressor else None):
            changed.fit(X if changes else X + X**2, y)
        np.testing.assert_array_equal(changed.predict(X), old_prediction)


def interrupt_at(monkeypatch, step):
    monkeypatch.setattr("bbb_numpy.sampling.run.POLL_INTERVAL_S", 0.0)  # one step at a time
    calls, true_step = [], NUTS.step

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == step:
            raise KeyboardInterrupt
        return true_step(self, *args)

    monkeypatch.setattr(NUTS, "step", interrupted)


STILL = Sampling(
    MetropolisHastings(GaussianWalk(1e-9)), chains=3, draws=1, warm_up=0, start="ensemble"
)


@pytest.mark.parametrize(
    ("make", "targets", "weights"),
    [(regressor, Y, None), (classifier, KINDS, np.linspace(0.5, 1.5, len(X)))],
)
def test_chains_can_start_at_the_members_of_an_ensemble(make, targets, weights, monkeypatch):
    trained = []

    def noted(*arguments, **options):
        trained.append(ensemble_starts(*arguments, **options))
        return trained[-1]

    monkeypatch.setattr(inference_module, "ensemble_starts", noted)
    train_members_for(500, monkeypatch)
    model = make(STILL).fit(X, targets, sample_weight=weights)
    np.testing.assert_allclose(model.draws_.positions[0], trained[0], atol=1e-5)
    apart = make(replace(STILL, start="prior")).fit(X, targets, sample_weight=weights)
    assert model.draws_.log_density.min() > apart.draws_.log_density.max() + 10
    another_seed = make(STILL, random_state=1).fit(X, targets, sample_weight=weights)
    assert not np.any(np.isclose(another_seed.theta_, model.theta_, atol=1e-5).all(axis=1))


def test_ctrl_c_keeps_the_draws_so_far(sampled, monkeypatch):
    uninterrupted = sampled()
    interrupt_at(monkeypatch, 30 + 8)
    with pytest.warns(UserWarning, match="interrupted by user after 37 steps; 7 of 20 draws"):
        part = regressor().fit(X, Y)
    assert not part.draws_.finished
    assert part.n_iter_ == 7
    np.testing.assert_array_equal(part.draws_.positions, uninterrupted.draws_.positions[:7])
    assert np.isfinite(part.predict(X)).all()


def test_ctrl_c_before_the_first_draw_leaves_the_earlier_fit(sampled, monkeypatch):
    model = sampled()
    old_prediction = model.predict(X)
    interrupt_at(monkeypatch, 12)
    with (
        pytest.warns(UserWarning, match="0 of 20 draws"),
        pytest.raises(KeyboardInterrupt, match="before the first draw"),
    ):
        model.fit(X, Y + X[:, 0])
    np.testing.assert_array_equal(model.predict(X), old_prediction)
    assert model.draws_.finished


@pytest.mark.parametrize("start", ["prior", "ensemble"])
def test_an_interrupted_run_on_disk_goes_on_bit_for_bit(start, tmp_path, monkeypatch):
    sampling = replace(SHORT, start=start, draws=10, warm_up=10)
    uninterrupted = regressor(sampling).fit(X, Y)
    model = regressor(replace(sampling, checkpoint=tmp_path / "run"))
    with monkeypatch.context() as patch:
        interrupt_at(patch, 15)
        with pytest.warns(UserWarning, match="the same call goes on"):
            model.fit(X, Y)
    assert model.fit(X, Y).theta_.tobytes() == uninterrupted.theta_.tobytes()
    with pytest.raises(ValueError, match="written by a different call"):
        model.fit(X, 2 * X[:, 0] + Y)


# Laplace's approximation


@pytest.mark.parametrize(("make", "y"), [(BayesianMLPRegressor, Y), (BayesianMLPClassifier, KINDS)])
def test_ivon_is_a_mean_field_that_is_trained_on_stored_and_loaded(make, y, tmp_path):
    model = make((5,), inference="ivon", epochs=6, random_state=0, warm_start=True).fit(X, y)
    assert isinstance(model.estimator_, LocalReparameterisation)
    assert isinstance(check_plan(model).parts["optimizer"], IVON)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for one in (model, loaded):
        one.fit(X, y).partial_fit(X, y, epochs=2)
    assert model.n_iter_ == 14
    np.testing.assert_array_equal(model.theta_, loaded.theta_)
    with pytest.raises(ValueError, match="the model has changed since it was fitted"):
        model.set_params(inference="mean-field").fit(X, y)


def test_ivon_takes_fewer_epochs_and_other_estimators():
    plan = check_plan(BayesianMLPRegressor(inference="ivon"))
    assert plan.parts["epochs"] == 200
    assert check_plan(BayesianMLPClassifier(inference="ivon")).parts["epochs"] == 50
    for params in ({"prior": "laplace"}, {"objective": "iwae"}):
        model = BayesianMLPRegressor((3,), inference="ivon", epochs=2, **params).fit(X, Y)
        assert isinstance(model.estimator_, Reparameterised)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"inference": "ivon", "optimizer": Adam()}, "is trained by IVON; got optimizer=Adam"),
        (
            {"inference": "full-rank", "optimizer": IVON()},
            "must have independent weights, MeanField",
        ),
        ({"inference": "map", "optimizer": IVON()}, "IVON needs the posterior MeanField"),
    ],
)
def test_ivon_is_refused_where_there_is_no_mean_field(params, message):
    with pytest.raises(ValueError, match=message):
        BayesianMLPRegressor(**params).fit(X, Y)


@pytest.mark.equation("D54")
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_laplace_predicts_with_a_band_that_is_wider_outside(covariance):
    model = regressor(Laplace(covariance), epochs=150).fit(X, Y)
    inside, outside = (model.predict_distribution(at * np.ones((1, 2))) for at in (0.0, 8.0))
    assert outside.epistemic > 2 * inside.epistemic > 0
    assert model.score(X, Y) > 0.85  # a straight line has 0.889
    tolerance = 0.5 if covariance == "diagonal" else 0.3  # the diagonal's noise is too large
    assert abs(model.noise_scale_[0] / (3.0 * 0.3) - 1) < tolerance
    np.testing.assert_allclose(inside.aleatoric, model.noise_scale_, rtol=1e-12)
    low, high = model.predict_interval(X, 0.9).T
    assert 0.8 < np.mean((low < Y) & (high > Y)) <= 1.0


@pytest.mark.equation("D55")
def test_the_evidence_is_in_units_of_y_and_prefers_the_inputs_that_matter(approximated):
    model, wider = approximated(), regressor(**LAPLACE).fit(X, 10.0 * Y)
    change = wider.log_evidence_ - model.log_evidence_
    assert change == pytest.approx(-30 * np.log(10.0), rel=1e-9)
    assert model.log_evidence_ > regressor(**LAPLACE).fit(X[:, :1], Y).log_evidence_ + 5
    twice = regressor(**LAPLACE).fit(X, Y, sample_weight=np.full(30, 2.0))
    assert twice.log_evidence_ < 1.5 * model.log_evidence_ < 0


@pytest.mark.parametrize("labels", [KINDS, KINDS == "yes"], ids=["three", "two"])
def test_laplace_for_classes(labels):
    model = classifier(**LAPLACE).fit(X, labels)
    distribution = model.predict_distribution(X)
    np.testing.assert_allclose(distribution.proba.sum(axis=1), 1.0, rtol=1e-12)
    assert (distribution.epistemic > 0).all()
    assert model.score(X, labels) > 0.8
    assert model.log_predictive_density(X, labels).mean() > np.log(1.0 / len(model.classes_))


def test_laplace_learns_the_scales_unless_they_are_given(approximated):
    learned = approximated()
    blocks = learned.estimator_.layout.views(learned.theta_)
    assert {"prior_log_scale", "log_noise"} <= set(blocks)
    fixed = GaussianPrior(0.4), GaussianLikelihood(0.3)
    fixed_scales = regressor(**LAPLACE, prior=fixed[0], likelihood=fixed[1]).fit(X, Y)
    assert fixed_scales.estimator_.model.learned() == ()
    np.testing.assert_allclose(fixed_scales.noise_scale_, 0.3 * fixed_scales.y_scale_, rtol=1e-12)
    counts = regressor(**LAPLACE, likelihood="poisson").fit(X, np.round(np.abs(Y)))
    assert (counts.predict(X) > 0).all()


def test_laplace_is_not_trained_further_and_gives_way_to_other_fits(approximated):
    model = approximated()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match="the model has changed since it was fitted"):
        model.set_params(inference="map").partial_fit(X, Y)
    assert not hasattr(model.fit(X, Y), "log_evidence_")
    assert model.theta_.tobytes() == regressor("map", epochs=150).fit(X, Y).theta_.tobytes()


def test_ctrl_c_in_laplace_keeps_the_map_estimate_and_warns(monkeypatch, tmp_path):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bbb_numpy.training.laplace.compute_spectrum", interrupted)
    model = regressor("laplace", epochs=20)
    with pytest.warns(UserWarning, match="after 20 epochs; the model holds the MAP estimate after"):
        model.fit(X, Y)
    assert not hasattr(model, "log_evidence_")
    assert model.training_.stopped == "interrupted"
    distribution = model.predict_distribution(X)
    assert np.std(distribution.mean) > 0.0
    np.testing.assert_array_equal(distribution.epistemic, 0.0)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), distribution.mean)


def test_ctrl_c_before_the_first_epoch_of_laplace_keeps_the_fit_before(monkeypatch):
    model = regressor("map").fit(X, Y)
    old_prediction = model.predict(X)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bbb_numpy.training.laplace.Mode.fill_gradient", interrupted)
    with pytest.warns(UserWarning, match="interrupted by user after 0 epochs"):
        model.set_params(inference="laplace").fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), old_prediction)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("make", "y"), [(regressor, Y), (classifier, KINDS)])
def test_laplace_comes_back_from_a_file_and_in_a_clone(make, y, covariance, tmp_path):
    model = make(Laplace(covariance, rounds=2), dtype="float32", epochs=10).fit(X, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    assert twin.get_params() == model.get_params()
    assert twin.log_evidence_ == model.log_evidence_
    for one in (twin, clone(model).fit(X, y), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(
            one.log_predictive_density(X, y), model.log_predictive_density(X, y)
        )


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"prior": "laplace"}, ValueError, "needs a prior whose curvature is its precision"),
        ({"likelihood": "student-t"}, TypeError, "curvature of StudentTLikelihood depends on y"),
        ({"hidden_layer_sizes": (3000,)}, ValueError, "accepted are 8,000 at most. Use Laplace"),
        ({"inference": Laplace}, ValueError, "inference"),
    ],
)
def test_what_laplace_cannot_do_is_refused_before_training(params, error, message):
    model = regressor("map").fit(X, Y)
    old_prediction = model.predict(X)
    with pytest.raises(error, match=message):
        model.set_params(**{"inference": "laplace", "epochs": 10**6} | params).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), old_prediction)


# Files


TINY = Sampling("nuts", chains=2, draws=4, warm_up=10, start="prior")
SETTINGS = [
    *(replace(TINY, sampler=name) for name in SAMPLERS),
    Sampling("mh", chains=1, draws=5, warm_up=5),
    replace(TINY, sampler=NUTS(max_depth=4), thin=2, target_accept=0.9),
    Sampling(HMC(path=2.0, jitter=0.5), draws=5, warm_up=60, metric="dense"),
    replace(TINY, hyperpriors={"log_noise": LogNormal(None, 2.0)}),
    Sampling(MetropolisHastings(GaussianWalk(0.1)), draws=5, warm_up=0),
    replace(SHORT, start="ensemble", groups=2, cores=1),
]


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_draws_and_settings_come_back(number, tmp_path):
    inference = SETTINGS[number]
    make, y = (classifier, KINDS) if number % 2 else (regressor, Y)
    model = make(inference, dtype="float32").fit(X, y)
    save(model, tmp_path / "m")
    twin = load(tmp_path / "m")
    with np.load(tmp_path / "m") as file:  # no data
        assert not [name for name in file.files if len(X) in file[name].shape]
    assert repr(twin.get_params()) == repr(model.get_params())
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        twin.log_predictive_density(X, y), model.log_predictive_density(X, y)
    )
    draws, twin_draws = model.draws_, twin.draws_
    np.testing.assert_array_equal(draws.positions, twin_draws.positions)
    np.testing.assert_array_equal(draws.log_density, twin_draws.log_density)
    for name, stat in draws.stats.items():
        np.testing.assert_array_equal(stat, twin_draws.stats[name])
    assert repr(draws.kernels) == repr(twin_draws.kernels)
    assert draws.summary() == twin_draws.summary()
    assert (draws.warm_up, draws.layout) == (twin_draws.warm_up, twin_draws.layout)
    assert twin.fit(X, y).theta_.tobytes() == model.theta_.tobytes()


# The command line


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    with open(path, "w", newline="") as file:
        rows = np.column_stack([X, Y]).tolist()
        csv.writer(file).writerows([["size", "age", "price"], *rows])
    return path


def fit(table, path, *options):
    return main(["fit", str(table), "--target", "price", "--model", str(path), *options])


def test_fit_samples_and_predict_reads_what_it_stored(table, tmp_path, capsys):
    path, out = tmp_path / "m.npz", tmp_path / "p.csv"
    settings = ["--chains", "2", "--draws", "8", "--warm-up", "12", "--thin", "2"]
    settings += ["--metric", "diagonal", "--target-accept", "0.9", "--activation", "tanh"]
    settings += ["--start", "prior", "--cores", "1"]
    assert fit(table, path, "--hidden", "3", "--inference", "nuts", *settings) == 0
    printed = capsys.readouterr().out
    model = load(path)
    assert model.inference == Sampling("nuts", 2, 8, 12, 2, "diagonal", 0.9, start="prior", cores=1)
    assert model.draws_.summary().startswith("8 draws of 2 chains")
    assert "method             nuts, as --inference says; " in printed
    assert f"noise sd           {model.noise_scale_[0]:.6g} (units of price)" in printed
    assert main(["predict", str(path), str(table), "--output", str(out)]) == 0
    with open(out, newline="") as file:
        means = [float(row["mean"]) for row in csv.DictReader(file)]
    rows = pd.read_csv(table, dtype=str)[["size", "age"]].astype(float)
    assert means == model.predict(rows).tolist()


SAMPLED_FIT = ["--inference", "nuts", "--draws", "8", "--warm-up", "12", "--hidden", "3"]
SAMPLED_FIT += ["--start", "prior"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("step", [5, 16])
def test_ctrl_c_while_sampling_stores_the_draws_if_there_are_any(
    step, table, tmp_path, monkeypatch, capsys
):
    interrupt_at(monkeypatch, step)
    assert fit(table, tmp_path / "m.npz", *SAMPLED_FIT) == 130
    assert "interrupted" in capsys.readouterr().err
    assert (tmp_path / "m.npz").exists() is (step > 12)  # the warm-up


def test_clones_pickles_and_grids_take_settings(sampled):
    twin = clone(regressor())
    assert repr(twin.inference) == repr(SHORT)
    model = sampled()
    assert twin.fit(X, Y).theta_.tobytes() == model.theta_.tobytes()
    assert "_works" not in vars(model.draws_.target)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    value, _ = copy.draws_.target(copy.draws_.positions[-1])
    np.testing.assert_allclose(value, copy.draws_.log_density[-1], rtol=1e-12)
    few_draws = replace(SHORT, draws=4, warm_up=4)
    grid = {"inference": ["map", few_draws, replace(few_draws, sampler="hmc")]}
    search = GridSearchCV(regressor(), grid, cv=2).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
