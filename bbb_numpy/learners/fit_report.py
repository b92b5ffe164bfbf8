"""The report of a fit: its measurements, the checks that it has to pass, and the verdict.

All measurements are made on the training rows: a fit may pass and still predict poorly, but a fit
that fails does not even describe the rows that it was trained on. A new check is one entry of
`CHECKS`, which holds its threshold and the reason for it. `diagnosis` finds the likely causes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan

from ..numeric.deprecation import accept_old_attributes
from ..numeric.old_names import OLD_NAMES
from .fit_measures import COVERAGE, MAX_R_HAT, MIN_EPOCHS, TARGETS

__all__ = ["CHECKS", "Check", "FitReport", "failed_checks"]

# log odds, in nats of all rows together, that count as strong evidence: 150 to 1 (Kass and Raftery
# 1995)
STRONG_EVIDENCE = 5.0
# largest difference of log densities that is ignored, in nats per row: a predictive standard
# deviation that is wrong by a quarter costs as much
NEGLIGIBLE_DENSITY = 0.05
# number of standard errors by which a slope or share must differ to fail a check
N_STANDARD_ERRORS = 3.0
# smallest standard deviation of functions under the prior that passes, in units of `TARGETS`: with
# it, a function that varies as y does costs `STRONG_EVIDENCE` nats of KL
MIN_PRIOR_FUNCTION_SD = (2 * STRONG_EVIDENCE) ** -0.5
# largest gain in log density of a row, in nats: log 10, as the noise scale falls from 1 to 0.1
MAX_GAIN = 2.3
# smallest ratio of the bulk's standard deviation to the column's that passes: the network could
# tell smaller differences apart only with large weights, or with little noise
MIN_BULK_SD = 0.1
MIN_COVERAGE = 0.8  # smallest share of targets in 90 % intervals that passes
# the largest magnitude of X and of y should be in [1 / UNIT_SIZE, UNIT_SIZE] as training starts
UNIT_SIZE = 10.0
# smallest standard deviation of a learned prior that passes; a smaller one makes f constant
MIN_PRIOR_SD = 1e-6
# smallest ratio of a learned prior's standard deviation to its initial value that passes
MIN_PRIOR_SD_RATIO = 1e-3
# KL term, in nats, below which the weights have learned next to nothing from the data
MIN_KL = 1.0
# largest rise of the loss that passes, in nats per row; a larger one means too large steps
MAX_LOSS_RISE = 1.0
# smallest sum of the learning rates of all steps that passes: Adam moves no weight farther, and
# 0.25 is half the standard deviation of the default prior of regression
MIN_PATH_LENGTH = 0.25
# largest standard deviation of f(x) under the posterior at training rows that passes, in units of
# `TARGETS`
MAX_FUNCTION_SD = 0.3

NO_CAUSE = (
    "No cause was found in units, outliers, noise, prior and training; try whether "
    "inference='map', a single vector of weights, and 'hmc', the whole posterior, fail too"
)


@dataclass(frozen=True)
class FitReport:
    """Measurements of a fit on at most a thousand of its training rows, and causes of failure.

    Densities are means per row, in nats, for y in its own units. All else is in the units of
    training, which with ``standardize=True`` are standard deviations from the mean. A number that
    was not measured is nan. ``print(report)`` shows every number with its threshold; see
    docs/fit-report.md.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    log_density : float
        Mean of log P(y|x, D) under the fit; -inf where it overflows.
    baseline_density : float
        Mean log density of the baseline, which ignores X: N(mean(y), var(y)), the base rates, or a
        distribution of counts of the mean rate.
    required_density : float
        Smallest `log_density` that passes: that of the baseline minus a margin for chance.
    linear_density : float
        Log density of a least-squares line, minus the BIC penalty of its coefficients; nan where
        the fit beats the baseline.
    loss_slope, loss_slope_error : float
        Change of a row's negative log likelihood if training went on for as many epochs with the
        slope of its last quarter, and the standard error of that change; nats.
    kl : float
        KL term of the last epoch, nats.
    initial_prior_sd, final_prior_sd : float
        Standard deviation of a weight under a learned prior, before and after training.
    largest_x, largest_y : float
        Largest magnitude of the inputs, and of the targets.
    bulk_sd_x, bulk_sd_y : float
        Standard deviation of the bulk of a column, estimated from its 10 % and 90 % quantiles, as a
        share of the column's standard deviation; the smallest one of all columns.
    prior_function_sd : float
        Median over functions under the prior of their standard deviation over rows. The unit is the
        standard deviation of y; for classes a logit of 3, for counts a log rate of 1.
    r_hat : float
        Largest R-hat of E[y|x] on 50 rows, for chains; nan without ArviZ.
    share_unmixed : float
        Share of these rows whose R-hat is above 1.1. No threshold: most tables have such rows.
    interval_coverage : float
        Share of targets in their 90 % intervals, if the noise is fixed.
    path_length : float
        Sum of the learning rates of all steps.
    path_slope, path_slope_error : float
        Change of a row's negative log likelihood if the sum of the learning rates doubled, and the
        standard error of that change; nats.
    largest_loss_rise : float
        Largest rise of a row's negative log likelihood above its lowest earlier value; nats.
    rmse : float
        Root mean square of y - E[y|x, w], over rows and weight samples.
    posterior_function_sd : float
        Standard deviation of f(x) over weight samples, in the unit of `prior_function_sd`.
    density_r_hat : float
        R-hat of the log density, of chains cut in halves.
    unmeasured : str
        Reason why chains have no `r_hat`, and what to install; empty if they have.
    findings : tuple of str
        Messages of the checks that the fit fails; empty for a fit that passes.
    causes : tuple of str
        Likely causes, each with its remedy.
    n_epochs : float
        Number of epochs of the call; nan after sampling, and in a file of an earlier version.
    dispersion, largest_dispersion : float
        Sum of squared errors of counts, divided by the variance that the model expects, and the
        largest value that it explains: that of drawn counts, plus three standard deviations.
    zero_share, largest_zero_share : float
        Share of zeros among the counts, and the largest one that the model explains.
    dispersed_zero_share : float
        Share of zeros of negative binomial counts with this dispersion. No threshold: it tells
        whether extra zeros or varying rates are the likelier cause.
    target_kind : {'real', 'log', 'class', 'count', ''}
        Kind of y, 'log' where its logarithm is modelled; empty in a file of an earlier version.
    """

    n_rows: int
    log_density: float
    baseline_density: float
    required_density: float
    linear_density: float
    loss_slope: float
    loss_slope_error: float
    kl: float
    initial_prior_sd: float
    final_prior_sd: float
    largest_x: float
    largest_y: float
    bulk_sd_x: float
    bulk_sd_y: float
    prior_function_sd: float = nan
    r_hat: float = nan
    share_unmixed: float = nan
    interval_coverage: float = nan
    path_length: float = nan
    path_slope: float = nan
    path_slope_error: float = nan
    largest_loss_rise: float = nan
    rmse: float = nan
    posterior_function_sd: float = nan
    density_r_hat: float = nan
    unmeasured: str = ""
    findings: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    n_epochs: float = nan
    target_kind: str = ""
    dispersion: float = nan
    largest_dispersion: float = nan
    zero_share: float = nan
    largest_zero_share: float = nan
    dispersed_zero_share: float = nan

    @property
    def passed(self) -> bool:
        """Whether the fit passes all checks."""
        return not self.findings

    @property
    def message(self) -> str:
        """Failed checks, likely causes and remedies as one line of text; empty if it passed."""
        if self.passed:
            return ""
        likely = NO_CAUSE
        if self.causes:
            likely = f"Likely cause: {'; or '.join(self.causes)}"
        return f"{'; '.join(self.findings)}. {likely}"

    @property
    def linear_advantage(self) -> float:
        """Log density of a least-squares line minus that of the fit, in nats per row."""
        return self.linear_density - self.log_density

    @property
    def loss_fall(self) -> float:
        """Extrapolated fall of the loss, in nats per row, if the number of epochs doubled."""
        return -self.loss_slope

    @property
    def prior_cost(self) -> float:
        """KL cost, in nats of all rows, of a function that varies over rows as much as y does.

        It is 1 / (2 r^2) for `prior_function_sd` r.
        """
        square = self.prior_function_sd**2
        return inf if square == 0.0 else 0.5 / square

    @property
    def out_of_reach(self) -> bool:
        """Whether a function that varies as y does costs more KL than the likelihood can gain.

        Each row gains at most `MAX_GAIN` nats, as much as 10 times less noise brings.
        """
        return PRIOR_COST.fails(self)

    def __str__(self) -> str:
        """Return a table of the measurements with their thresholds, and the verdict."""
        lines = [f"{'':<66} {'measured':>10}  threshold"]
        lines += [check.line(self) for check in CHECKS if check.is_measured(self)]
        if self.unmeasured:
            lines.append(f"R-hat of the predictions: not measured: {self.unmeasured}")
        return "\n".join([*lines, self.message or "nothing is wrong on these rows"])


accept_old_attributes(FitReport, OLD_NAMES.fields["FitReport"])

Threshold = float | Callable[[FitReport], float]


def _always(report: FitReport) -> bool:
    """Return True, for checks that apply to every report."""
    return True


@dataclass(frozen=True, kw_only=True)
class Check:
    """A number of the report with its thresholds, and the message if it is beyond them.

    Parameters
    ----------
    measure : str
        Name of a field or property of `FitReport`. A number that is nan was not measured and
        passes.
    label : str
        Description of the number with its unit, as the report prints it.
    at_least, at_most : float or callable, optional
        Lower and upper threshold, or functions of the report that return them.
    reason : str
        Reason for the threshold.
    applies : callable
        Function of the report that returns whether the check applies to it.
    name : str
        Name of the failure, to which likely causes refer. If empty, the number is not a failure by
        itself, but may tell the cause of one.
    message : callable, optional
        Function of the report that returns the message of the failure.
    alternative : bool
        Whether the check is one of several that report the same failure: of these only the first
        one that fails is reported.
    """

    measure: str
    label: str
    at_least: Threshold | None = None
    at_most: Threshold | None = None
    reason: str = ""
    applies: Callable[[FitReport], bool] = _always
    name: str = ""
    message: Callable[[FitReport], str] = str
    alternative: bool = False

    def is_measured(self, report: FitReport) -> bool:
        """Return whether the report has the number of this check: whether it is not nan."""
        return not isnan(getattr(report, self.measure))

    def limits(self, report: FitReport) -> dict[str, float]:
        """Return the thresholds of this check, a dict with the keys 'at least' and 'at most'.

        A key is absent if there is no such threshold, or if the check does not apply.
        """
        if not self.applies(report):
            return {}
        thresholds = {"at least": self.at_least, "at most": self.at_most}
        return {
            side: threshold(report) if callable(threshold) else threshold
            for side, threshold in thresholds.items()
            if threshold is not None
        }

    def fails(self, report: FitReport) -> bool:
        """Return whether the report's number is below its lower or above its upper threshold."""
        value = getattr(report, self.measure)
        limits = self.limits(report)
        too_low = "at least" in limits and not value >= limits["at least"]
        too_high = "at most" in limits and value > limits["at most"]
        return self.is_measured(report) and (too_low or too_high)

    def line(self, report: FitReport) -> str:
        """Return this check's line of the printed report: label, number and thresholds."""
        limits = [f"{side} {limit:.4g}" for side, limit in self.limits(report).items()]
        value = getattr(report, self.measure)
        return f"{self.label:<66} {value:10.4g}  {' and '.join(limits)}".rstrip()


def _no_better(detail: str) -> Callable[[FitReport], str]:
    """Return a `Check.message` function, of "the fit is no better than ignoring X" and `detail`."""
    return lambda report: f"the fit is no better than ignoring X, {detail}"


def _steep_fall(report: FitReport) -> float:
    """Return the upper threshold of `FitReport.loss_fall`, in nats per row.

    It is the gain of the fit over the baseline, or a margin for chance if that is larger.
    """
    gain = report.log_density - report.baseline_density
    chance = N_STANDARD_ERRORS * report.loss_slope_error
    return max(chance, NEGLIGIBLE_DENSITY, STRONG_EVIDENCE / report.n_rows, gain)


def _smallest_coverage(report: FitReport) -> float:
    """Return the lower threshold of the share of targets in their 90 % intervals."""
    error = (COVERAGE * (1.0 - COVERAGE) / report.n_rows) ** 0.5
    return min(MIN_COVERAGE, COVERAGE - N_STANDARD_ERRORS * error)


def _describes_counts(report: FitReport) -> bool:
    """Return whether the means of counts are described, so that their spread can be judged."""
    return report.log_density >= report.required_density


def _smallest_prior_sd(report: FitReport) -> float:
    """Return the lower threshold of a learned prior's standard deviation after training."""
    start = report.initial_prior_sd
    if report.kl < MIN_KL:
        return max(MIN_PRIOR_SD, start)
    if isfinite(start):
        return max(MIN_PRIOR_SD, MIN_PRIOR_SD_RATIO * start)
    return MIN_PRIOR_SD


def _is_no_better(report: FitReport) -> bool:
    """Return whether the log density of the fit is no better than the baseline's, without X."""
    return not isnan(report.linear_density)


PRIOR_COST = Check(
    measure="prior_cost",
    label="cost of a function as large as y under the prior, nats",
    at_most=lambda report: report.n_rows * MAX_GAIN,
    reason="2.3 nats a row: more than a fit gains at 10 times less noise",
    applies=lambda report: 0 < report.prior_function_sd < MIN_PRIOR_FUNCTION_SD,
    name="narrow prior",
    message=_no_better("and its prior does not let it be"),
    alternative=True,
)

CHECKS = (
    Check(
        measure="n_rows",
        label="rows to train on",
        at_least=2,
        reason="one row shows no spread and no dependence",
        name="one row",
        message=lambda report: (
            "there is one row to train on, which shows no spread and no dependence"
        ),
        alternative=True,
    ),
    Check(
        measure="log_density",
        label="log density of the training rows, nats per row",
        at_least=lambda report: report.required_density,
        reason="that of the baseline, minus a margin for chance",
        name="worse",
        message=lambda report: (
            "the fit is worse than ignoring X: the mean log density of its training rows is "
            f"{report.log_density:.4g} nats, that of {TARGETS[report.target_kind].baseline} "
            f"{report.baseline_density:.4g}"
        ),
        alternative=True,
    ),
    Check(
        measure="baseline_density",
        label="log density of the baseline, which ignores X, nats per row",
    ),
    Check(
        measure="linear_advantage",
        label="advantage of a straight line over the fit, nats per row",
        at_most=lambda report: max(
            2 * NEGLIGIBLE_DENSITY, STRONG_EVIDENCE / report.n_rows
        ),
        reason="twice the negligible difference, and 5 nats in all rows",
        name="line",
        message=lambda report: (
            "the fit is no better than ignoring X, where a straight line is: the mean log density "
            f"of the training rows is {report.log_density:.4g} nats, that of the line "
            f"{report.linear_density:.4g}"
        ),
        alternative=True,
    ),
    Check(
        measure="prior_function_sd",
        label="standard deviation of functions under the prior, in units of y's",
        at_least=MIN_PRIOR_FUNCTION_SD,
        reason="a narrower prior charges more than 5 nats for a function as large as y",
    ),
    PRIOR_COST,
    Check(
        measure="n_epochs",
        label="epochs",
        at_least=MIN_EPOCHS,
        reason="fewer show no slope",
        applies=_is_no_better,
        name="early",
        message=_no_better("after so few epochs"),
        alternative=True,
    ),
    *(
        Check(
            measure=f"bulk_sd_{name.lower()}",
            label=f"standard deviation of most rows of {name}, in units of that of all",
            at_least=MIN_BULK_SD,
            reason="smaller differences only large weights, or little noise, bring out",
            applies=_is_no_better,
            name="outliers",
            message=_no_better("and a few rows are far from all others"),
            alternative=True,
        )
        for name in ("X", "y")
    ),
    Check(
        measure="loss_fall",
        label="fall of the loss if training went on as long, nats per row",
        at_most=_steep_fall,
        reason="gain of the fit over the baseline; 0.05; 5 nats in all rows; chance",
        name="falling",
        message=lambda report: (
            "the loss was still falling steeply when training ended, by "
            f"{report.loss_fall:.3g} nats per row if it went on for as many epochs"
        ),
    ),
    Check(
        measure="interval_coverage",
        label="share of the training rows in their 90 % intervals",
        at_least=_smallest_coverage,
        reason="80 %, or 90 % less three standard errors for few rows",
        name="intervals",
        message=lambda report: (
            f"the {100 * COVERAGE:.0f} % intervals hold {100 * report.interval_coverage:.0f} % of "
            "the training rows"
        ),
    ),
    Check(
        measure="dispersion",
        label="squared errors of the counts, in variances that the model expects",
        at_most=lambda report: report.largest_dispersion,
        reason="that of counts drawn from the model, and three standard deviations",
        applies=_describes_counts,
        name="dispersion",
        message=lambda report: (
            "the counts vary more than the likelihood allows: their squared errors are "
            f"{report.dispersion:.3g} times those that it expects"
        ),
    ),
    Check(
        measure="zero_share",
        label="share of zeros among the counts",
        at_most=lambda report: report.largest_zero_share,
        reason="the same, of their zeros",
        applies=_describes_counts,
        name="zeros",
        message=lambda report: (
            f"{100 * report.zero_share:.0f} % of the counts are 0, more than the "
            f"{100 * report.largest_zero_share:.0f} % that the likelihood explains"
        ),
    ),
    Check(
        measure="dispersed_zero_share",
        label="share of zeros of negative binomial counts with these errors",
    ),
    Check(
        measure="initial_prior_sd",
        label="standard deviation of weights under the prior, before training",
    ),
    # A narrow prior is no failure by itself; but if the posterior also equals the prior (a KL term
    # below 1 nat), the predictions do not depend on the data
    Check(
        measure="final_prior_sd",
        label="standard deviation of weights under the prior, after training",
        at_least=_smallest_prior_sd,
        reason="a thousandth of its start; where the KL term is below 1 nat, its start",
        name="collapsed",
        message=lambda report: (
            "the learned prior has collapsed: the standard deviation of a weight under it fell "
            f"from {report.initial_prior_sd:.3g} to {report.final_prior_sd:.3g}, the KL term to "
            f"{report.kl:.2g} nats, so that predictions hardly depend on X"
        ),
    ),
    Check(measure="kl", label="KL term of the last epoch, nats"),
    *(
        Check(
            measure=f"largest_{name.lower()}",
            label=f"largest magnitude of {name}, in training's units",
            at_least=1 / UNIT_SIZE,
            at_most=UNIT_SIZE,
            reason="training starts with numbers of about 1; without standardize alone",
        )
        for name in ("X", "y")
    ),
    Check(
        measure="path_length",
        label="sum of the learning rates of all steps",
        at_least=MIN_PATH_LENGTH,
        reason="Adam moves no weight farther, half of what the prior is wide",
    ),
    Check(
        measure="path_slope",
        label="change of the loss if the path went on as long, nats per row",
    ),
    Check(
        measure="largest_loss_rise",
        label="largest rise of the loss during training, nats per row",
        at_most=MAX_LOSS_RISE,
        reason="steps that are too large raise it",
    ),
    Check(
        measure="rmse",
        label="root mean square error over rows and weights, in training's units",
    ),
    Check(
        measure="posterior_function_sd",
        label="standard deviation of functions at a row, in units of y's",
        at_most=MAX_FUNCTION_SD,
        reason="a posterior that leaves more open keeps to its prior",
    ),
    Check(
        measure="r_hat",
        label="R-hat of the predictions, the largest of 50 rows",
        at_most=MAX_R_HAT,
        reason="chains plainly differ above; no fault by itself",
    ),
    Check(
        measure="share_unmixed",
        label="share of these rows whose R-hat is above 1.1",
    ),
    Check(
        measure="density_r_hat",
        label="R-hat of the log density of halves of the chains",
        at_most=MAX_R_HAT,
        reason="chains are still on their way above",
    ),
)


def failed_checks(report: FitReport) -> dict[str, str]:
    """Return the messages of the checks that a report fails, by name of the check."""
    messages: dict[str, str] = {}
    has_alternative = False
    for check in CHECKS:
        if not check.name or (check.alternative and has_alternative):
            continue
        if check.fails(report):
            messages[check.name] = check.message(report)
            has_alternative |= check.alternative
    return messages
