"""Diagnosis of a fit: its report and, if the fit failed, likely causes, each with a remedy.

A cause is named only if a measurement supports it. A new cause is one entry of `CAUSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isinf, nan
from typing import Any

import numpy as np

from ..parts.posteriors import GaussianPosterior, PointMass
from ..parts.student_t import StudentTLikelihood
from ..sampling.mcmc import HMC
from ..training import EarlyStopping, Epoch
from ..training.optimizers import IVON, Adam
from ..training.recipe import Rows
from .fit_measures import (
    MAX_R_HAT,
    MIN_EPOCHS,
    TARGETS,
    JudgedFit,
    baseline_log_density,
    bulk_sd,
    chain_agreement,
    initial_parameters,
    largest_loss_rise,
    linear_gain,
    loss_slope,
    loss_slope_along_path,
    noise_is_fixed,
    offsets,
    prior_function_sd,
    split_r_hat,
)
from .fit_report import (
    MAX_FUNCTION_SD,
    MAX_LOSS_RISE,
    MIN_BULK_SD,
    MIN_PATH_LENGTH,
    MIN_PRIOR_FUNCTION_SD,
    N_STANDARD_ERRORS,
    NEGLIGIBLE_DENSITY,
    STRONG_EVIDENCE,
    UNIT_SIZE,
    FitReport,
    failed_checks,
)

__all__ = ["CAUSES", "Cause", "Evidence", "diagnose_fit", "likely_causes"]

# largest number of training rows on which a fit is judged
MAX_JUDGED_ROWS = 1000
# smallest and largest number of weight samples for predictions at these rows
MIN_JUDGED_SAMPLES = 32
MAX_JUDGED_SAMPLES = 100
# if a fit has failed, learning rates of Adam of at least MIN_LARGE_RATE are suspected to be too
# large, those below MAX_SMALL_RATE too small
MIN_LARGE_RATE = 0.1
MAX_SMALL_RATE = 1e-3
# largest KL term, in nats per weight, of a posterior that is called close to its prior: that of a
# posterior standard deviation 0.4 times the prior's
MAX_FREE_KL = 0.5
# names of the checks of how far targets are from the fit, not of the fit itself
SPREAD_FINDINGS = {"intervals", "dispersion", "zeros"}
LONGER_FACTOR = 4  # factor by which a remedy lengthens training or patience


def diagnose_fit(
    learner: Any, data: Rows, parts: Mapping[str, Any], history: Sequence[Epoch]
) -> FitReport:
    """Measure a fit on its training rows, and return the report with likely causes of failure.

    It takes the time of one prediction of the judged rows, or of three if the fit has failed. No
    generator of the learner is used.

    Parameters
    ----------
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    data : Rows
        Training rows, in training's units.
    parts : mapping of str to object
        Part or number that each constructor argument stood for, by the name of the argument.
    history : sequence of Epoch
        Epochs of this call to `fit`; empty after sampling.

    Returns
    -------
    FitReport
    """
    n_rows = len(data.x)
    judged = np.linspace(0, n_rows - 1, min(n_rows, MAX_JUDGED_ROWS)).astype(int)
    fit = JudgedFit(
        learner.estimator_,
        learner.theta_,
        learner.predict_seed_,
        data.x[judged],
        data.y[judged],
        _n_samples(learner.estimator_, len(judged), n_rows, parts, history),
    )
    with np.errstate(all="ignore"):
        report, fit = _measure(learner, data, fit, history)
        findings = failed_checks(report)
        if not findings:
            return report
        symptoms = _symptoms(learner, fit, n_rows, parts, history)
    report = replace(report, findings=tuple(findings.values()), **symptoms)
    evidence = Evidence(report, frozenset(findings), learner, parts, history)
    return replace(report, causes=tuple(likely_causes(evidence)))


def _n_samples(
    estimator: Any,
    n_judged: int,
    n_rows: int,
    parts: Mapping[str, Any],
    history: Sequence[Epoch],
) -> int:
    """Return the number of weight samples for predictions at `n_judged` of `n_rows` rows.

    It is chosen so that judging takes at most about a quarter of the passes of training, within
    `MIN_JUDGED_SAMPLES` and `MAX_JUDGED_SAMPLES`; a point estimate needs one. `history` are the
    epochs of training, `parts` the values of the constructor arguments by name.
    """
    if isinstance(getattr(estimator, "posterior", None), PointMass):
        return 1
    passes = inf
    if history:
        passes = len(history) * n_rows * parts["samples"] / 4
    return int(np.clip(passes / n_judged, MIN_JUDGED_SAMPLES, MAX_JUDGED_SAMPLES))


def _measure(
    learner: Any, data: Rows, fit: JudgedFit, history: Sequence[Epoch]
) -> tuple[FitReport, JudgedFit]:
    """Return the report of a fit, without causes of failure, and `fit` with its rows as float64.

    `data` are all training rows; `fit` holds those on which the posterior is judged; `history` are
    the epochs of training, none after sampling.
    """
    source: Any = fit.estimator
    model = source.model
    prior, likelihood = model.prior, model.likelihood
    n_rows = len(data.x)
    density_of_rows = fit.log_density()
    x, y = fit.x.astype(np.float64), fit.y.astype(np.float64)
    fit = replace(fit, x=x, y=y)
    network = model.network
    exposure = np.exp(offsets(network, data.x))
    judged_exposure = np.exp(offsets(network, x))
    baseline_of_rows, n_parameters = baseline_log_density(
        likelihood, data.y, y, exposure, judged_exposure
    )
    density, baseline = float(density_of_rows.mean()), float(baseline_of_rows.mean())
    chance = max(NEGLIGIBLE_DENSITY, (STRONG_EVIDENCE + 0.5 * n_parameters) / n_rows)
    if len(x) < n_rows and np.isfinite(density_of_rows).all():
        # Only a sample of the rows is judged, so that the mean density has a standard error
        sd = float((density_of_rows - baseline_of_rows).std())
        chance += N_STANDARD_ERRORS * sd / len(x) ** 0.5
    # mean log of dz/dy of standardised targets z, which converts log densities to units of y
    log_slope = float(learner.fitted_.units.log_slope(y).mean())
    linear_density = prior_sd = slope = slope_error = bulk_sd_y = kl = n_epochs = nan
    if not density > baseline + NEGLIGIBLE_DENSITY:
        linear_density = baseline + linear_gain(
            network.without_offset(x), y / judged_exposure
        )
        linear_density += log_slope
        prior_sd = prior_function_sd(source, x, y, fit.seed)
    if likelihood.target_kind == "real":
        bulk_sd_y = bulk_sd(data.y, y)
    if history:
        kl = history[-1].kl
        n_epochs = len(history)
    if history and not learner.training_.stopped:
        slope, slope_error = loss_slope(history, n_rows)
    initial_sd = final_sd = nan
    if history and prior.blocks() and isinstance(source.posterior, GaussianPosterior):
        initial_sd = prior.sd(initial_parameters(prior))
        final_sd = prior.sd(source.layout.views(fit.theta))
    target_kind = likelihood.target_kind
    if learner.fitted_.target_ == "log":
        target_kind = "log"
    report = FitReport(
        n_rows=n_rows,
        log_density=density + log_slope,
        baseline_density=baseline + log_slope,
        required_density=baseline - chance + log_slope,
        linear_density=linear_density,
        loss_slope=slope,
        loss_slope_error=slope_error,
        kl=kl,
        initial_prior_sd=initial_sd,
        final_prior_sd=final_sd,
        largest_x=float(np.abs(network.without_offset(data.x)).max()),
        largest_y=float(np.abs(data.y).max()),
        bulk_sd_x=bulk_sd(network.without_offset(data.x), network.without_offset(x)),
        bulk_sd_y=bulk_sd_y,
        prior_function_sd=prior_sd,
        interval_coverage=fit.interval_coverage(),
        n_epochs=n_epochs,
        target_kind=target_kind,
        **chain_agreement(learner, x),
        **(fit.spread_of_counts() if likelihood.target_kind == "count" else {}),
    )
    return report, fit


def _symptoms(
    learner: Any,
    fit: JudgedFit,
    n_rows: int,
    parts: Mapping[str, Any],
    history: Sequence[Epoch],
) -> dict[str, Any]:
    """Return measurements that tell causes of failure apart, as fields of a `FitReport` by name.

    They take the time of two more predictions.

    Parameters
    ----------
    learner : Learner
        The fitted learner.
    fit : JudgedFit
        Posterior of the learner, and the rows on which it is judged.
    n_rows : int
        Number of training rows.
    parts : mapping
        Part or number that each constructor argument stood for, by name, such as 'batch_size'.
    history : sequence of Epoch
        Losses of training; empty if the posterior was sampled.
    """
    symptoms: dict[str, Any] = {"posterior_function_sd": fit.posterior_function_sd()}
    if fit.estimator.model.likelihood.target_kind == "real":
        symptoms["rmse"] = fit.rmse()
    if not history:
        symptoms["density_r_hat"] = split_r_hat(learner.draws_.log_density)
        return symptoms
    steps_per_epoch = -(-n_rows // parts["batch_size"])
    rates = sum(epoch.learning_rate for epoch in learner.training_.history)
    symptoms["path_length"] = steps_per_epoch * rates
    symptoms["path_slope"], symptoms["path_slope_error"] = loss_slope_along_path(
        history, n_rows
    )
    symptoms["largest_loss_rise"] = largest_loss_rise(history, n_rows)
    return symptoms


@dataclass(frozen=True)
class Evidence:
    """Evidence about a failed fit, from which its likely causes are found.

    Parameters
    ----------
    report : FitReport
        Measurements of the fit.
    findings : frozenset of str
        Names of the checks that the fit fails.
    learner : BayesianMLPRegressor or BayesianMLPClassifier
        The fitted learner.
    parts : mapping of str to object
        Part or number that each constructor argument stood for, by the name of the argument.
    history : sequence of Epoch
        Epochs of this call to `fit`; empty after sampling.
    explained : bool
        Whether a cause has been named already.
    """

    report: FitReport
    findings: frozenset[str]
    learner: Any
    parts: Mapping[str, Any]
    history: Sequence[Epoch]
    explained: bool = False

    @property
    def model(self) -> Any:
        """Model of the learner: the network with its prior and likelihood."""
        return self.learner.estimator_.model

    @property
    def likelihood(self) -> Any:
        """Likelihood of the model: the distribution of y given the network's outputs."""
        return self.model.likelihood

    def factor_per_layer(self, factor: float) -> float:
        """Return the factor on the scale of each layer that multiplies the network's f by `factor`.

        f is proportional to the product of the scales of its n layers, so that it is the n-th root.
        """
        n_layers = len(self.model.network.sizes) - 1
        return factor ** (1 / n_layers)

    @property
    def beta(self) -> float:
        """Factor of the KL term in the objective; 1 if there is none."""
        objective = getattr(self.learner.estimator_, "objective", None)
        return getattr(objective, "beta", 1.0)

    @property
    def learning_rate(self) -> Any:
        """Learning rate of the optimizer, before its schedule."""
        return self.parts["optimizer"].learning_rate

    @property
    def uses_adam(self) -> bool:
        """Whether the optimizer is Adam, whose steps are at most about the learning rate."""
        return isinstance(self.parts["optimizer"], Adam)

    @property
    def unmoved(self) -> bool:
        """Whether training was too short for any weight to move far from its initial value."""
        short = self.uses_adam and self.report.path_length < MIN_PATH_LENGTH
        return len(self.history) < MIN_EPOCHS or short

    @property
    def usual_optimizer(self) -> str:
        """Default optimizer as text, such as "optimizer=Adam(0.01, schedule=Cosine())"."""
        rate = self.learner.defaults["optimizer"].learning_rate
        return f"optimizer=Adam({rate:g}, schedule=Cosine())"

    @property
    def unit_name(self) -> str:
        """Name of the unit of functions, such as "the standard deviation of y"."""
        return TARGETS[self.report.target_kind].unit_name


@dataclass(frozen=True)
class Cause:
    """A likely cause of a failure, and its remedy.

    Parameters
    ----------
    applies : callable
        Function of `Evidence` that returns whether the measurements support this cause.
    message, remedy : str or callable
        Texts of the cause and of the advice, or functions of `Evidence` that return them.
    """

    applies: Callable[[Evidence], bool]
    message: str | Callable[[Evidence], str]
    remedy: str | Callable[[Evidence], str]

    def __call__(self, evidence: Evidence) -> str:
        """Return the texts of the cause and its remedy, joined by a semicolon."""
        texts = (self.message, self.remedy)
        return "; ".join(text(evidence) if callable(text) else text for text in texts)


def likely_causes(evidence: Evidence) -> list[str]:
    """Return texts that name likely causes of a failed fit and their remedies, if any.

    A fit of one row has that cause alone. Otherwise causes in the data hide those in the model.
    After training the first cause in training that applies is added; for sampled fits, which have
    no history, causes in the chains are named if there is no other.
    """
    if "one row" in evidence.findings:
        return ["too few rows; give more of them"]
    for subject in ("data", "model"):
        causes = _causes(subject, evidence)
        if causes:
            break
    if not evidence.history:
        return causes or _causes("chains", evidence)
    return causes + _causes("training", replace(evidence, explained=bool(causes)))[:1]


def _causes(subject: str, evidence: Evidence) -> list[str]:
    """Return texts of the causes of `subject`, a key of `CAUSES`, that the evidence supports."""
    return [cause(evidence) for cause in CAUSES[subject] if cause.applies(evidence)]


# Functions for causes in the data: magnitudes far from 1, and outliers.


def _extreme_units(evidence: Evidence) -> list[str]:
    """Return texts such as "X reaches 350" for X and y if their largest magnitude is far from 1."""
    sizes = {"X": evidence.report.largest_x}
    if evidence.likelihood.target_kind == "real":
        sizes["y"] = evidence.report.largest_y
    return [
        f"{name} reaches {size:.3g}"
        for name, size in sizes.items()
        if size and not 1 / UNIT_SIZE < size < UNIT_SIZE
    ]


def _has_extreme_units(evidence: Evidence) -> bool:
    """Return whether the fit is worse than ignoring X, with unscaled data of extreme magnitude."""
    unscaled = "worse" in evidence.findings and not evidence.parts["standardize"]
    return unscaled and bool(_extreme_units(evidence))


def _is_no_better(evidence: Evidence) -> bool:
    """Return whether the fit fails a check which shows that it is no better than ignoring X."""
    return bool(evidence.findings - SPREAD_FINDINGS - {"falling", "collapsed"})


def _remedy_for_outliers(evidence: Evidence) -> str:
    """Return advice for outliers in y, with a learned Student's t likelihood unless in use."""
    remedy = "correct or leave out those rows"
    likelihood = evidence.likelihood
    if isinstance(likelihood, StudentTLikelihood) and likelihood.learn:
        return remedy
    return f"{remedy}, or use likelihood='student-t-learned'"


# Functions for causes in the model: fixed noise that is too small, a KL term with a factor above 1,
# a prior that is too narrow.


def _noise_is_too_small(evidence: Evidence) -> bool:
    """Return whether fixed noise is less than half the RMSE, or intervals hold too few targets."""
    if "intervals" in evidence.findings:
        return True
    scale = inf
    if noise_is_fixed(evidence.learner.estimator_):
        scale = evidence.likelihood.scale
    return "worse" in evidence.findings and evidence.report.rmse > 2.0 * scale


def _remedy_for_noise(evidence: Evidence) -> str:
    """Return advice to learn the noise scale, naming the present kind of likelihood first."""
    names = ["gaussian-learned", "student-t-learned"]
    if isinstance(evidence.likelihood, StudentTLikelihood):
        names.reverse()
    return f"learn it, as likelihood={names[0]!r} and {names[1]!r} do"


def _counts_spread_too_far(evidence: Evidence) -> bool:
    """Return whether counts refute their likelihood, and there is one that suits them better.

    Weights that cannot have moved far in training explain large errors better.
    """
    if evidence.history and evidence.unmoved:
        return False
    refuted = bool(evidence.findings & {"dispersion", "zeros"})
    return refuted and _likelihood_of_counts(evidence) != ""


def _likelihood_of_counts(evidence: Evidence) -> str:
    """Return the name of a likelihood for counts that refute theirs; empty if there is none.

    Extra zeros are likelier than varying rates if there are more zeros than a negative binomial
    distribution of the same dispersion has, by three standard errors.
    """
    report, likelihood = evidence.report, evidence.likelihood
    learned = dict(likelihood.initial_values())
    share = report.dispersed_zero_share
    n_judged = min(report.n_rows, MAX_JUDGED_ROWS)
    chance = N_STANDARD_ERRORS * (share * (1.0 - share) / n_judged) ** 0.5
    extra_zeros = report.zero_share > share + chance
    if not learned:
        return "zero-inflated" if extra_zeros else "negative-binomial"
    if learned.keys() == {"logit_zeros"} or (
        learned.keys() == {"log_dispersion"} and "zeros" in evidence.findings
    ):
        return "zero-inflated-negative-binomial"
    return ""


def _kl_is_too_heavy(evidence: Evidence) -> bool:
    """Return whether the KL term has a factor above 1, and is below half a nat per weight."""
    kl_per_weight = evidence.report.kl / evidence.model.layout.size
    return evidence.beta > 1.0 and kl_per_weight < MAX_FREE_KL


def _remedy_for_narrow_prior(evidence: Evidence) -> str:
    """Return advice to use a wider prior, with the factor by which to multiply its scale."""
    factor = evidence.factor_per_layer(1 / evidence.report.prior_function_sd)
    return f"use one about {factor:.3g} times as wide"


# Functions for the cause in chains: R-hat of the log density of halves of the chains.


def _state_of_chains(evidence: Evidence) -> str:
    """Return text that states R-hat of the log density, or that the chains do not move."""
    r_hat = evidence.report.density_r_hat
    if isinf(r_hat):
        return "stand still"
    return f"R-hat {r_hat:.3g}"


def _remedy_for_chains(evidence: Evidence) -> str:
    """Return advice for chains that have not converged: longer chains, or another sampler."""
    remedy = "use a longer warm_up, more draws"
    sampler = evidence.parts["inference"].sampler
    if sampler == "hmc" or isinstance(sampler, HMC):
        return remedy
    return f"{remedy} or 'hmc'"


# Functions for causes in training: steps that are too large, a posterior close to its prior, too
# few steps.


def _steps_are_too_large(evidence: Evidence) -> bool:
    """Return whether Adam's learning rate is large, and the loss rose during training."""
    large = evidence.uses_adam and evidence.learning_rate >= MIN_LARGE_RATE
    rises = evidence.report.largest_loss_rise > MAX_LOSS_RISE
    return not evidence.explained and not evidence.unmoved and large and rises


def _posterior_keeps_to_prior(evidence: Evidence) -> bool:
    """Return whether the posterior is close to its prior, and leaves f at training rows open."""
    if evidence.explained or evidence.unmoved:
        return False
    report = evidence.report
    free = report.kl < MAX_FREE_KL * evidence.model.layout.size
    unsure = report.posterior_function_sd > MAX_FUNCTION_SD
    return free and unsure and bool(evidence.findings - SPREAD_FINDINGS - {"falling"})


def _remedy_for_wide_posterior(evidence: Evidence) -> str:
    """Return advice for a posterior close to its prior: fewer units, wider prior, or more rows."""
    report = evidence.report
    sizes = evidence.model.network.sizes
    widest = max(report.posterior_function_sd, report.prior_function_sd)
    factor = evidence.factor_per_layer(MAX_FUNCTION_SD / widest)
    remedies = [
        f"a prior about {factor:.2g} times as wide",
        "more rows, or inference='map'",
    ]
    usual_sizes = evidence.learner.defaults["hidden_layer_sizes"]
    if sum(sizes[1:-1]) > sum(usual_sizes):
        remedies.insert(0, f"fewer units, such as hidden_layer_sizes={usual_sizes}")
    return f"use {', '.join(remedies)}"


def _training_is_short(evidence: Evidence) -> bool:
    """Return whether the loss still fell as training ended, or no weight can have moved far.

    If another cause explains the failure, a loss that falls slowly is no evidence, but a steep fall
    or a path so short that no weight can have moved still is.
    """
    report = evidence.report
    chance = N_STANDARD_ERRORS * report.path_slope_error
    least = max(chance, NEGLIGIBLE_DENSITY, STRONG_EVIDENCE / report.n_rows)
    falls = -report.path_slope > least and not evidence.explained
    steep = "falling" in evidence.findings and "collapsed" not in evidence.findings
    return (evidence.unmoved or steep or falls) and not report.out_of_reach


def _length_of_training(evidence: Evidence) -> str:
    """Return text that states the length of training, and why it is too short."""
    report = evidence.report
    n_epochs = len(evidence.history)
    count = f"{n_epochs} epoch{'s' * (n_epochs > 1)}"
    count = f"{count} with a learning rate of {evidence.learning_rate:g}"
    if evidence.learner.training_.stopped:
        count = f"early stopping after {count}"
    if evidence.unmoved and evidence.uses_adam:
        return f"{count}, in which a weight moves by {report.path_length:.2g} at most"
    fall = f"by {-report.path_slope:.3g} nats per row if it went on"
    return f"{count}, after which the loss still fell ({fall})"


def _remedy_for_short_training(evidence: Evidence) -> str:
    """Return advice for short training: more epochs, more patience, or the default optimizer."""
    if evidence.learner.training_.stopped:
        patience = LONGER_FACTOR * evidence.parts["early_stopping"].patience
        patience = max(patience, EarlyStopping().patience)
        return f"use EarlyStopping(patience={patience})"
    n_epochs = len(evidence.history)
    usual_epochs = evidence.parts["usual_epochs"]
    slow = evidence.learning_rate < MAX_SMALL_RATE or not evidence.uses_adam
    if isinstance(evidence.parts["optimizer"], IVON):
        slow = False
    remedies = []
    if n_epochs < usual_epochs or not slow:
        longer = usual_epochs
        if not slow:
            longer = max(LONGER_FACTOR * n_epochs, usual_epochs)
        remedies.append(f"train for more, such as epochs={longer}")
    if slow:
        remedies.append(f"use {evidence.usual_optimizer}")
    return " and ".join(remedies)


# Causes by subject. Of data, model and chains all causes that apply are named, of training only
# the first one
CAUSES: dict[str, tuple[Cause, ...]] = {
    "data": (
        Cause(
            _has_extreme_units,
            lambda evidence: (
                "units far from 1, in which training starts "
                f"({', '.join(_extreme_units(evidence))})"
            ),
            "use standardize=True",
        ),
        Cause(
            lambda evidence: (
                _is_no_better(evidence) and evidence.report.bulk_sd_y < MIN_BULK_SD
            ),
            "outliers in y",
            _remedy_for_outliers,
        ),
        Cause(
            lambda evidence: (
                _is_no_better(evidence) and evidence.report.bulk_sd_x < MIN_BULK_SD
            ),
            "outliers in X",
            "correct or leave out those rows, or transform the column",
        ),
        Cause(
            lambda evidence: "collapsed" in evidence.findings,
            "a prior that the data do not need",
            "fix it (learn=False)",
        ),
    ),
    "model": (
        Cause(
            _noise_is_too_small,
            lambda evidence: (
                f"a noise scale that is fixed, {evidence.likelihood}, while rows are "
                f"{evidence.report.rmse:.2g} from the fit"
            ),
            _remedy_for_noise,
        ),
        Cause(
            _counts_spread_too_far,
            lambda evidence: (
                f"a likelihood, {evidence.likelihood}, that is too narrow for these counts"
            ),
            lambda evidence: f"use likelihood={_likelihood_of_counts(evidence)!r}",
        ),
        Cause(
            _kl_is_too_heavy,
            lambda evidence: f"a KL term that counts {evidence.beta:g} times",
            "use objective='elbo'",
        ),
        Cause(
            lambda evidence: (
                0 < evidence.report.prior_function_sd < MIN_PRIOR_FUNCTION_SD
            ),
            lambda evidence: (
                "a prior that is too narrow: under it functions vary from row to row by "
                f"{evidence.report.prior_function_sd:.2g} of {evidence.unit_name}"
            ),
            _remedy_for_narrow_prior,
        ),
    ),
    "chains": (
        Cause(
            lambda evidence: evidence.report.density_r_hat > MAX_R_HAT,
            lambda evidence: (
                "chains that have not converged (their log density: "
                f"{_state_of_chains(evidence)})"
            ),
            _remedy_for_chains,
        ),
    ),
    "training": (
        Cause(
            _steps_are_too_large,
            lambda evidence: (
                f"steps with a learning rate of {evidence.learning_rate:g}, during which the loss "
                f"rose by {evidence.report.largest_loss_rise:.3g} nats per row"
            ),
            lambda evidence: f"use {evidence.usual_optimizer}",
        ),
        Cause(
            _posterior_keeps_to_prior,
            lambda evidence: (
                f"a posterior that keeps to its prior, {evidence.report.n_rows} rows for "
                f"{evidence.model.layout.size} weights: its functions differ at these rows by "
                f"{evidence.report.posterior_function_sd:.2g} of {evidence.unit_name}"
            ),
            _remedy_for_wide_posterior,
        ),
        Cause(_training_is_short, _length_of_training, _remedy_for_short_training),
    ),
}
