"""What parts refuse when they are made, by the name of the argument, with what was given."""

import re

import numpy as np
import pytest
from problems import log_density

from bbb_numpy import (
    MLP,
    FullRank,
    GaussianLikelihood,
    GaussianPrior,
    HeteroscedasticLikelihood,
    LaplacePrior,
    LayerwiseGaussianPrior,
    MeanField,
    Model,
    PointMass,
    Reparameterised,
    ScaleMixturePrior,
    StudentTLikelihood,
    StudentTPrior,
)
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal, check_hyperpriors
from bbb_numpy.registry import CHECKED_LIKELIHOODS

SIZES = (2, 3, 1)


def layerwise(*scales):
    return Model(MLP(SIZES), LayerwiseGaussianPrior(scales))


# each refused number stands at the end of its message
NUMBERS = [
    *((make, value, f"scale of the {what} must be positive and finite")
      for make, what in ((GaussianPrior, "prior"), (LaplacePrior, "prior"),
                         (StudentTPrior, "prior"), (GaussianLikelihood, "noise"),
                         (StudentTLikelihood, "noise"), (HalfCauchy, "hyperprior"),
                         (HalfNormal, "hyperprior"))
      for value in (0.0, -1.0, np.inf, np.nan, 1e-200, 1e200)),
    *((lambda df, make=make: make(1.0, df), value, "df, the degrees of freedom, must be >= 0.001")
      for make in (StudentTPrior, StudentTLikelihood)
      for value in (0.0, -1.0, np.nan, np.inf, 1e-4, 1e9)),
    *((HeteroscedasticLikelihood, value, "floor must be positive and finite")
      for value in (0.0, -1e-9, np.inf, np.nan)),
    *((lambda value, make=make, name=name: make(**{name: value}), value, f"{name} must be")
      for make in (MeanField, FullRank)
      for name, value in (("mu_scale", -0.1), ("mu_scale", np.inf), ("rho_halfwidth", -1.0),
                          ("rho_offset", np.nan), ("rho_offset", 1.1e150))),
    (PointMass, -0.1, "mu_scale must be"),
    (lambda unit: FullRank(unit=unit), 0.0, "unit must be"),
    (lambda limit: FullRank(limit_gib=limit), 0.0, "limit_gib must be"),
    (lambda width: LogNormal(width=width), 0.0, "width of the hyperprior must be positive"),
    (LogNormal, -1.0, "median of the hyperprior must be positive"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "value", "message"), NUMBERS)
def test_an_impossible_number_is_refused_by_name_with_its_value(make, value, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        make(value)
    assert str(caught.value).endswith(f"got {value}")


REFUSED = [
    (lambda: ScaleMixturePrior(0.0, 1.0, 0.1), "pi must be > 0 and < 1; got 0"),
    (lambda: ScaleMixturePrior(1.0, 1.0, 0.1), "pi must be a number >= 0 and < 1; got 1.0"),
    (lambda: ScaleMixturePrior(0.2, np.inf, 0.1), "sigma1 of the prior must be positive"),
    (lambda: ScaleMixturePrior(0.2, 1.0, 0.0), "sigma2 of the prior must be positive"),
    (lambda: ScaleMixturePrior(0.2, 0.1, 1.0), "sigma1 must be larger than sigma2; got 0.1 and 1"),
    (lambda: ScaleMixturePrior(0.2, 1.0, 1.0), "sigma1 must be larger than sigma2"),
    (lambda: ScaleMixturePrior(0.2, 1.0, 2e-6, learn=True), "must start above 2e-06; got 2e-06"),
    (lambda: layerwise(1.0), r"scales must have shape \(2\); got \(1,\)"),
    (lambda: layerwise(1.0, 0.5, 0.5), r"scales must have shape \(2\); got \(3,\)"),
    (lambda: LayerwiseGaussianPrior(()), "scales must hold 1 or more numbers"),
    (lambda: LayerwiseGaussianPrior(0.5), r"scales must have shape \(any\); got \(\)"),
    (lambda: LayerwiseGaussianPrior("1.0, 0.1"), "scales must be an array of real numbers"),
    (lambda: layerwise(1.0, np.nan), "scales holds nan"),
    (lambda: layerwise("1.0", 0.1), "scales must be an array of real numbers"),
    *((lambda value=value: layerwise(1.0, value), "between 1e-150 and 1e.150; got") for value in (
        1e-151, 1e151)),
    *((lambda width=width: LayerwiseGaussianPrior(sizes=(2, width, 1)), f"sizes .* got {width}")
      for width in (0, 2.5)),
    *((lambda make=make: make(learn="no"), "learn must be True or False; got 'no'") for make in (
        LayerwiseGaussianPrior, GaussianPrior, StudentTPrior, ScaleMixturePrior,
        GaussianLikelihood, StudentTLikelihood)),
    (lambda: Model(MLP((2, 4, 1)), layerwise(1.0, 1.0).prior),
     r"for a network of sizes \(2, 3, 1\); got a network of sizes \(2, 4, 1\)"),
    (lambda: LayerwiseGaussianPrior().log_density({}, np.zeros((1, 13)), Buffers()),
     "make a Model of both"),
    (lambda: HeteroscedasticLikelihood().targets(3), "two network outputs .* got 3 outputs"),
    (lambda: MeanField().pack(np.zeros(3), np.ones(2)), "vectors of one length"),
    (lambda: MeanField().pack(np.zeros(2), np.array([1.0, 0.0])), "must be positive; got 0"),
    (lambda: FullRank().pack(np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]])), "symmetric matrix"),
    (lambda: FullRank().pack(np.zeros(2), np.eye(3)), "symmetric matrix"),
    (lambda: Reparameterised(Model(MLP((784, 400, 10))), FullRank()),
     "318,010 weights .* 50,565,339,055 numbers.*GiB. Use MeanField, a smaller network"),
    (lambda: FullRank(limit_gib=96 * 16**2 / 2**30).check_size(17), "GiB"),
    *((lambda sizes=sizes: MLP(sizes), "sizes must be at least two whole numbers")
      for sizes in ((3,), (), (2, 0, 1), (2, -1))),
    (lambda: MLP((1, 1), "swish"), "'relu', 'tanh'.*'gelu-tanh'.*got 'swish'"),
    (lambda: MLP((10**6, 1000)), "at most 1000000000 weights; got 1000001000 of"),
    (lambda: check_hyperpriors(3), "hyperpriors must be a mapping .*; got 3"),
    (lambda: check_hyperpriors({"log_noise": HalfNormal}), r"hyperpriors\['log_noise'\] must be"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_makes_no_part_is_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_what_is_just_possible_is_accepted():
    FullRank(limit_gib=96 * 16**2 / 2**30).check_size(16)
    assert MLP((10**6 - 1, 1000)).layout.size == 10**9
    assert np.isfinite(ScaleMixturePrior(0.2, 1.0, 2.1e-6, learn=True).init(np.float64)).all()
    assert np.isfinite(log_density(ScaleMixturePrior(0.2, 1.0, 1e-6), np.ones((1, 1)))).all()


@pytest.mark.parametrize("name", CHECKED_LIKELIHOODS)
def test_targets_of_another_shape_are_refused(name):
    likelihood = CHECKED_LIKELIHOODS[name]
    params = {block: np.zeros(shape) for block, shape in likelihood.blocks(3)}
    with pytest.raises(ValueError, match=r"y must have shape .* = \(4, 3\); got \(4, 2\)"):
        likelihood.log_density(params, np.zeros((2, 4, likelihood.heads(3))), np.zeros((4, 2)))
