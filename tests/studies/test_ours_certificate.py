"""The certificates of the study, on made-up images: it goes on, and certifies by the right rows."""

from dataclasses import replace

import numpy as np
import pytest
from shortened import CERTIFICATE, DIGITS

from bbb_studies.ours import certificate as study


@pytest.fixture(scope="module")
def finished(short):
    return short("certificate")


@pytest.mark.equation("D57", "D58")
def test_a_prior_of_other_images_certifies_and_one_around_zero_does_not(finished):
    rows = finished.numbers["rows"]
    bounds = {name: row["certificate"]["bound"] for name, row in rows.items()}
    assert list(bounds) == list(study.POSTERIOR_NAMES)
    vacuous, _, taught, trained = bounds.values()
    assert vacuous > 0.99
    assert taught < 0.5
    assert trained < 0.5
    kls = [row["certificate"]["kl"] for row in rows.values()]
    assert kls[2] == pytest.approx(0.0, abs=1e-2)  # theta is float32
    assert kls[0] > kls[3] > 0.0
    for row in rows.values():
        assert row["certificate"]["risk"] < row["certificate"]["bound"]


def test_what_is_trained_is_not_trained_again_and_other_settings_are_refused(finished, monkeypatch):
    monkeypatch.setattr(study, "train_theta", lambda *_: pytest.fail("trained again"))
    given = {"digits": DIGITS, "progress": False}
    assert study.reproduce(finished.out, settings=CERTIFICATE, **given) == finished.text
    with pytest.raises(ValueError, match="was written with other settings"):
        study.reproduce(finished.out, settings=replace(CERTIFICATE, draws=2), **given)


def test_the_parts_are_disjoint_and_the_second_half_alone_certifies():
    first, second, test = study.prepare(DIGITS, CERTIFICATE)
    assert np.allclose(first.x, DIGITS.train_images[:600] / 126)
    assert np.array_equal(second.y.argmax(1), DIGITS.train_labels[600:1200])
    assert len(test.x) == 200
