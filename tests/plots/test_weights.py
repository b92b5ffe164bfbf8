"""Pictures of weights show their posterior densities and ratios."""

import io

import numpy as np
import pytest

from bbb_numpy.parts.network import MLP
from bbb_numpy.plots.weights import (
    densities_of_draws,
    densities_of_mean_field,
    ratios,
    weight_densities,
)

LAYOUT = MLP((2, 5, 1)).layout
RNG = np.random.default_rng(0)
MEAN, DEVIATION = RNG.normal(0, 1, LAYOUT.size), RNG.uniform(0.3, 1, LAYOUT.size)
DRAWS = MEAN + DEVIATION * RNG.standard_normal((3000, LAYOUT.size))
AT = np.linspace(-8, 8, 1601)


def test_densities_integrate_to_one_and_have_the_moments_given():
    for found, allowed in (
        (densities_of_mean_field(MEAN, DEVIATION, AT), 1e-6),
        (densities_of_draws(DRAWS, AT), 0.08),  # a kernel widens; 3000 draws scatter
    ):
        step = AT[1] - AT[0]
        assert found.sum(axis=1) * step == pytest.approx(np.ones(LAYOUT.size), abs=1e-3)
        mean = found @ AT * step
        assert mean == pytest.approx(MEAN, abs=allowed)
        second = found @ AT**2 * step
        assert np.sqrt(second - mean**2) == pytest.approx(DEVIATION, rel=max(allowed, 1e-6))


@pytest.mark.parametrize("sampled", [True, False])
def test_one_panel_for_each_block_with_every_weight_and_the_prior(sampled):
    given = {"draws": DRAWS} if sampled else {"mean": MEAN, "deviation": DEVIATION}
    figure = weight_densities(LAYOUT, **given, prior=1.0)
    assert [ax.get_title().split()[0] for ax in figure.axes] == list(LAYOUT.slices)
    assert [len(ax.lines) for ax in figure.axes] == [10 + 2, 5 + 2, 5 + 2, 1 + 2]
    for ax in figure.axes:
        assert ax.get_xlabel()
        assert ax.get_ylabel()
    figure.savefig(io.BytesIO(), dpi=50)


def test_the_share_marked_lies_below_the_line():
    ratio = np.exp(RNG.normal(0, 1, 500))
    ax = ratios(ratio, share=0.75)
    (line,) = [line for line in ax.lines if line.get_label() == "75% below"]
    cut = 10 ** (line.get_xdata()[0] / 10)
    assert np.mean(ratio < cut) == pytest.approx(0.75)
    assert "dB" in ax.get_xlabel()
    ax.figure.savefig(io.BytesIO(), dpi=50)


def test_however_far_out_a_density_is_0():
    found = densities_of_mean_field([0.0], [1e-200], np.array([-1e200, 0.0, 1.0]))
    assert found[0, [0, 2]].tolist() == [0.0, 0.0]
    assert found[0, 1] == pytest.approx(1e200 / np.sqrt(2 * np.pi))
    with pytest.raises(ValueError, match=r"draws must be finite and within 1e\+150"):
        densities_of_draws(np.full((3, 1), 1e200), np.zeros(1))


def test_a_single_number_per_weight_is_refused():
    with pytest.raises(ValueError, match="either draws, or mean and deviation"):
        weight_densities(LAYOUT)
    with pytest.raises(ValueError, match="either draws, or mean and deviation"):
        weight_densities(LAYOUT, mean=MEAN)
    with pytest.raises(ValueError, match="draws must hold the 21 weights of the layout"):
        weight_densities(LAYOUT, np.ones((5, 3)))
    with pytest.raises(ValueError, match="no positive number"):
        ratios(np.zeros(4))
