"""The certificates of the study, on made-up images: it goes on, and certifies by the right rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tables import check_picture

from bbb_studies.data.mnist import MNIST
from bbb_studies.ours import certificate as study

TINY = study.Settings(
    hidden=10, half=600, test=200, batch=30, prior_epochs=20, epochs=4, draws=3, taught=0.01
)


def made_up(seed=0):
    """Ten patterns of 784 pixels, each image one of them in noise."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((10, 784)) < 0.2

    def part(rows):
        labels = rng.integers(0, 10, rows).astype(np.uint8)
        ink = 150.0 * patterns[labels] + rng.normal(0, 60, (rows, 784))
        return np.clip(ink, 0, 255).astype(np.uint8), labels

    return MNIST(*part(1200), *part(200))


FOUND = made_up()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("certificate")
    text = study.reproduce(out, settings=TINY, found=FOUND, progress=False)
    return out, text


@pytest.mark.equation("D57", "D58")
def test_a_prior_of_other_images_certifies_and_one_around_zero_does_not(finished):
    out, text = finished
    rows = json.loads((out / "certificate.json").read_text(encoding="utf-8"))["rows"]
    bounds = {name: row["certificate"]["bound"] for name, row in rows.items()}
    assert list(bounds) == list(study.NAMES)
    vacuous, _, taught, trained = bounds.values()
    assert vacuous > 0.99
    assert taught < 0.5
    assert trained < 0.5
    kls = [row["certificate"]["kl"] for row in rows.values()]
    assert kls[2] == pytest.approx(0.0, abs=1e-2)  # theta is float32
    assert kls[0] > kls[3] > 0.0
    for row in rows.values():
        assert row["certificate"]["risk"] < row["certificate"]["bound"]
    check_picture(out / "certificate.png", 390, 5)
    assert "nan" not in text
    assert max(map(len, text.splitlines())) <= 135


def test_what_is_trained_is_not_trained_again_and_other_settings_are_refused(
    finished, tmp_path, monkeypatch
):
    out, text = finished

    def never(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(study, "trained", never)
    assert study.reproduce(out, settings=TINY, found=FOUND, progress=False) == text
    with pytest.raises(ValueError, match="is of other settings"):
        study.reproduce(out, settings=replace(TINY, draws=2), found=FOUND, progress=False)


def test_the_parts_are_disjoint_and_the_second_half_alone_certifies():
    first, second, test = study.prepare(FOUND, TINY)
    assert np.allclose(first.x, FOUND.train_images[:600] / 126)
    assert np.array_equal(second.y.argmax(1), FOUND.train_labels[600:1200])
    assert len(test.x) == 200
