"""The picture of signal-to-noise ratios."""

import io

import numpy as np
import pytest

from bbb_numpy.plots.weights import ratios

RNG = np.random.default_rng(0)


def test_the_share_marked_lies_below_the_line():
    ratio = np.exp(RNG.normal(0, 1, 500))
    ax = ratios(ratio, share=0.75)
    (line,) = [line for line in ax.lines if line.get_label() == "75% below"]
    cut = 10 ** (line.get_xdata()[0] / 10)
    assert np.mean(ratio < cut) == pytest.approx(0.75)
    assert "dB" in ax.get_xlabel()
    ax.figure.savefig(io.BytesIO(), dpi=50)
