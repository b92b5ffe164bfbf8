"""The report of a fit: what was measured, the checks that it has to pass, and the verdict.

Everything that is judged is measured on the training rows: a fit may pass and still be poor, but
one that fails has not even described the rows that it was trained on. A new check is one entry of
`CHECKS`; its threshold has a reason, which stands with it. `diagnosis` finds the likely causes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan

from ..numeric.deprecation import accept_old_attributes
from ..numeric.old_names import OLD_NAMES
from .fit_measures import COVERAGE, MAX_R_HAT, MIN_EPOCHS, TARGETS

__all__ = ["CHECKS", "Check", "FitReport", "failed_checks"]

# nats of evidence in all rows: odds of 150 to 1 (Kass and Raftery 1995)
STRONG_EVIDENCE = 5.0
# nats per row: what a standard deviation that is a quarter off costs
NEGLIGIBLE_DENSITY = 0.05
N_STANDARD_ERRORS = 3.0  # by which a slope or a share has to differ from chance
# A function r times as large as those under the prior costs about r^2 / 2 nats
MIN_PRIOR_FUNCTION_SD = (2 * STRONG_EVIDENCE) ** -0.5
# nats per row from log 0.1, where the noise starts, to log 1, that of what ignores X
MAX_GAIN = 2.3
MIN_BULK_SD = 0.1  # smaller differences only large weights, or little noise, bring out
MIN_COVERAGE = 0.8  # of intervals that should hold 90 %
UNIT_SIZE = 10.0  # training starts with numbers between 1 / UNIT_SIZE and it
MIN_PRIOR_SD = 1e-6  # so narrow a prior turns the network off
MIN_PRIOR_SD_RATIO = 1e-3  # of its start: the same
MIN_KL = 1.0  # nats: below, the data have told the weights next to nothing
MAX_LOSS_RISE = 1.0  # nats per row, by which steps that are too large raise the loss
# Adam moves no weight farther than this path, half of what the prior is wide
MIN_PATH_LENGTH = 0.25
MAX_FUNCTION_SD = (
    0.3  # of functions of a posterior on its own rows, in units of `TARGETS`
)

NO_CAUSE = (
    "No cause is seen in units, outliers, noise, prior and training; see whether "
    "inference='map', which has no uncertainty of weights, and 'hmc', which has all, fail too"
)


@dataclass(frozen=True)
class FitReport:
    """What `fit` measured of itself, on at most a thousand of its training rows.

    Densities are means per row, in nats, for y in its own units. All else is in training's units,
    which with ``standardize=True`` are standard deviations from the mean. What was not measured, or
    cannot be told, is nan. ``print(report)`` shows every number with its threshold; see
    docs/fit-report.md.

    Parameters
    ----------
    n_rows : int
        Number of rows to train on.
    log_density : float
        Mean of log P(y|x, D), of the fit; -inf where it overflows.
    baseline_density : float
        The same of what ignores X: N(mean(y), var(y)), base rates, or a Poisson of the mean rate.
    required_density : float
        What `log_density` has to reach: that of the baseline, less what chance can explain.
    linear_density : float
        That of a least-squares line, less what it costs (BIC); nan where the fit beats the
        baseline.
    loss_slope, loss_slope_error : float
        Change of the negative log likelihood of a row in as many epochs again, if it went on as in
        the last quarter, and its standard error; nats.
    kl : float
        KL term of the last epoch, nats.
    initial_prior_sd, final_prior_sd : float
        Standard deviation of a weight under a prior that is learned, before and after training.
    largest_x, largest_y : float
        Largest magnitude that the network was given, and that it was to find.
    bulk_sd_x, bulk_sd_y : float
        Smallest standard deviation of the bulk of a column, in units of the column's.
    prior_function_sd : float
        Standard deviation over rows of functions under the prior, their median. In units of what
        describes y: its standard deviation, for classes a logit of 3, for counts a log rate of 1.
    r_hat : float
        Of chains: the largest R-hat of E[y|x] on 50 rows; nan without ArviZ.
    share_unmixed : float
        Share of these rows where it is above 1.1; most tables have some, so that it is no fault.
    interval_coverage : float
        Share of targets in their 90 % intervals, where the noise is fixed.
    path_length : float
        Sum of the learning rates of all steps.
    path_slope, path_slope_error : float
        Change of a row's negative log likelihood along as much path again, and its standard error.
    largest_loss_rise : float
        Of a row's negative log likelihood above its lowest value before; nats.
    rmse : float
        Root mean square of y - E[y|x, w], over rows and weights.
    posterior_function_sd : float
        Standard deviation of f(x) over weights, in units as `prior_function_sd`.
    density_r_hat : float
        R-hat of halves of chains, by their log density.
    unmeasured : str
        Why chains have no `r_hat`, and what to install.
    findings : tuple of str
        What is wrong; empty for a fit that passes.
    causes : tuple of str
        Likely ones, each with its remedy.
    n_epochs : float
        Number of epochs of the call; nan after sampling, and in a file of an earlier version.
    target_kind : {'real', 'class', 'count', ''}
        Of y; empty in a file of an earlier version.
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

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def message(self) -> str:
        """Findings, causes and remedies on one line; empty if the fit passed."""
        if self.passed:
            return ""
        likely = NO_CAUSE
        if self.causes:
            likely = f"Likely cause: {'; or '.join(self.causes)}"
        return f"{'; '.join(self.findings)}. {likely}"

    @property
    def linear_advantage(self) -> float:
        """Log density of a straight line minus that of the fit, in nats per row."""
        return self.linear_density - self.log_density

    @property
    def loss_fall(self) -> float:
        """Fall of the loss per row that as many further epochs would bring, in nats."""
        return -self.loss_slope

    @property
    def prior_cost(self) -> float:
        """What a function as large as y costs under the prior, in nats of all rows."""
        square = self.prior_function_sd**2
        return inf if square == 0.0 else 0.5 / square

    @property
    def out_of_reach(self) -> bool:
        """Whether a function as large as y costs more under the prior than the data can repay.

        Each row repays at most `MAX_GAIN` nats, which 10 times less noise brings.
        """
        narrow = 0 < self.prior_function_sd < MIN_PRIOR_FUNCTION_SD
        return narrow and self.prior_cost > self.n_rows * MAX_GAIN

    def __str__(self) -> str:
        """Return a table of what was measured, with the thresholds, and the verdict."""
        lines = [f"{'':<66} {'measured':>10}  threshold"]
        lines += [check.line(self) for check in CHECKS if check.is_measured(self)]
        if self.unmeasured:
            lines.append(f"R-hat of the predictions: not measured: {self.unmeasured}")
        return "\n".join([*lines, self.message or "nothing is wrong on these rows"])


accept_old_attributes(FitReport, OLD_NAMES.fields["FitReport"])

Threshold = float | Callable[[FitReport], float]


def _always(report: FitReport) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Check:
    """A number of the report, what it has to be, and what is wrong if it is not.

    Parameters
    ----------
    measure : str
        Field or property of `FitReport`. What is nan was not measured and passes.
    label : str
        What it is, as the report prints it, with its unit.
    at_least, at_most : float or callable, optional
        The threshold, or a function of the report that returns it.
    reason : str
        Why the threshold is what it is.
    applies : callable
        Whether the report is to be judged by it.
    name : str
        Of what is wrong, to which likely causes refer. Empty: the number alone is no fault, but
        may tell the cause of one.
    message : callable, optional
        What the report says is wrong.
    alternative : bool
        Only the first of these that fails is reported: the others would say the same again.
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
        """Whether the report holds the number."""
        return not isnan(getattr(report, self.measure))

    def limits(self, report: FitReport) -> dict[str, float]:
        """Return the thresholds by the words 'at least' and 'at most'; empty if none applies."""
        if not self.applies(report):
            return {}
        thresholds = {"at least": self.at_least, "at most": self.at_most}
        return {
            side: threshold(report) if callable(threshold) else threshold
            for side, threshold in thresholds.items()
            if threshold is not None
        }

    def fails(self, report: FitReport) -> bool:
        """Whether the number is on the wrong side of a threshold."""
        value = getattr(report, self.measure)
        limits = self.limits(report)
        too_low = "at least" in limits and not value >= limits["at least"]
        too_high = "at most" in limits and value > limits["at most"]
        return self.is_measured(report) and (too_low or too_high)

    def line(self, report: FitReport) -> str:
        """Return a line of the printed report: label, number and thresholds."""
        limits = [f"{side} {limit:.4g}" for side, limit in self.limits(report).items()]
        value = getattr(report, self.measure)
        return f"{self.label:<66} {value:10.4g}  {' and '.join(limits)}".rstrip()


def _no_better(detail: str) -> Callable[[FitReport], str]:
    return lambda report: f"the fit is no better than ignoring X, {detail}"


def _steep_fall(report: FitReport) -> float:
    """Return the pace by which the fit has left the baseline behind, if it is not chance."""
    gain = report.log_density - report.baseline_density
    chance = N_STANDARD_ERRORS * report.loss_slope_error
    return max(chance, NEGLIGIBLE_DENSITY, STRONG_EVIDENCE / report.n_rows, gain)


def _smallest_coverage(report: FitReport) -> float:
    error = (COVERAGE * (1.0 - COVERAGE) / report.n_rows) ** 0.5
    return min(MIN_COVERAGE, COVERAGE - N_STANDARD_ERRORS * error)


def _smallest_prior_sd(report: FitReport) -> float:
    """Return the standard deviation of weights below which a learned prior has collapsed."""
    start = report.initial_prior_sd
    if report.kl < MIN_KL:
        return max(MIN_PRIOR_SD, start)
    if isfinite(start):
        return max(MIN_PRIOR_SD, MIN_PRIOR_SD_RATIO * start)
    return MIN_PRIOR_SD


def _is_no_better(report: FitReport) -> bool:
    return not isnan(report.linear_density)


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
        reason="that of the baseline, less what chance explains",
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
        reason="twice what is negligible, and 5 nats in all rows",
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
    Check(
        measure="prior_cost",
        label="cost of a function as large as y under the prior, nats",
        at_most=lambda report: report.n_rows * MAX_GAIN,
        reason="2.3 nats a row: more than a fit gains at 10 times less noise",
        applies=lambda report: 0 < report.prior_function_sd < MIN_PRIOR_FUNCTION_SD,
        name="narrow prior",
        message=_no_better("and its prior does not let it be"),
        alternative=True,
    ),
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
        label="fall of the loss in as many epochs again, nats per row",
        at_most=_steep_fall,
        reason="what the fit has gained over the baseline; 0.05; 5 nats in all rows; chance",
        name="falling",
        message=lambda report: (
            "the loss was still falling steeply when training ended, by "
            f"{report.loss_fall:.3g} nats per row in as many epochs again"
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
        measure="initial_prior_sd",
        label="standard deviation of weights under the prior, before training",
    ),
    # Narrow alone is no fault; but where the posterior is the prior, the data rule nothing
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
        label="change of the loss along as long a path again, nats per row",
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
    """Return the messages of all checks that a report fails, by their names."""
    messages: dict[str, str] = {}
    has_alternative = False
    for check in CHECKS:
        if not check.name or (check.alternative and has_alternative):
            continue
        if check.fails(report):
            messages[check.name] = check.message(report)
            has_alternative |= check.alternative
    return messages
