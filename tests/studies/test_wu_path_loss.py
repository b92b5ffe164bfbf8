"""Wu's radio field: exact geometry, the laws of the model, and what the experiments claim."""

from dataclasses import replace
from math import log10, sqrt

import numpy as np
import pytest

from bbb_studies.comparing import Fitted
from bbb_studies.data import path_loss as data
from bbb_studies.data.path_loss import Building, Scene, field, receivers, walls
from bbb_studies.wu import path_loss
from bbb_studies.wu.path_loss import HOW_VARIANTS, NOISE_LIMIT_DB, WHY_VARIANTS, measure

ONE = (Building(2.0, -1.0, 4.0, 1.0, 5.0),)


def one_building(transmitter):
    return Scene(transmitters=(transmitter,), buildings=ONE)


@pytest.fixture(autouse=True)
def few_held_out_receivers(monkeypatch):
    """No test looks at how they are predicted; maps are means of 30 functions."""
    monkeypatch.setattr(path_loss, "N_FRESH_RECEIVERS", 100)
    monkeypatch.setattr(Fitted.predict, "__defaults__", (30,))


@pytest.mark.equation("W6")
@pytest.mark.parametrize(
    ("transmitter", "place", "count", "why"),
    [
        ((0, 0), (5, 0), 2, "behind"),
        ((0, 0), (3, 0), 1, "in the building"),
        ((0, 0), (1, 0), 0, "before it"),
        ((0, 0), (-5, 0), 0, "the other way: a segment, not a line"),
        ((0, 0), (4, 0), 1, "on the far wall, not past it"),
        ((0, 0), (2, 0), 0, "on the near wall"),
        ((0, 0), (4, 2), 0, "the line touches the corner (2, 1)"),
        ((0, 0), (4, 1.99), 2, "just inside of that corner"),
        ((0, 1), (5, 1), 0, "along a wall"),
        ((3, -5), (3, 5), 2, "straight up"),
        ((4, -5), (4, 5), 0, "straight up along a wall"),
        ((3, 0), (3.5, 0.5), 0, "both inside"),
        ((3, 0), (5, 3), 1, "from inside out"),
        ((3, 0), (3, 0), 0, "at the transmitter, inside"),
        ((1, -2), (5, 2), 2, "across the diagonal of two corners"),
        ((1, 0), (3, 2), 0, "across the corner (2, 1) from side to side"),
    ],
)
def test_walls_are_counted_exactly(transmitter, place, count, why):
    found = walls(one_building(transmitter), np.array([place], float))
    assert found.tolist() == [[count]], why


@pytest.mark.equation("W6")
def test_the_field_is_the_sum_of_the_four_terms():
    scene = Scene(
        transmitters=((0.0, 0.0),),
        buildings=ONE,
        power=17.0,
        reference_loss=31.0,
        exponent=2.2,
        reference_distance=0.5,
    )
    found = field(scene, np.array([[5.0, 0.0], [3.0, 0.0], [0.0, 10.0], [0.1, 0.0]]))[:, 0]
    plain = [17.0 - 31.0 - 22.0 * log10(d / 0.5) for d in (5.0, 3.0, 10.0)]
    np.testing.assert_allclose(found[:3], [plain[0] - 10.0, plain[1] - 5.0, plain[2]], rtol=1e-14)
    assert found[3] == 17.0 - 31.0  # closer than d_0


@pytest.mark.equation("W6")
def test_the_field_is_linear_in_its_features():
    scene = Scene()
    places = data.grid(scene, 30)
    design = np.hstack([data.features(scene, places), np.ones((len(places), 1))])
    weights, *_ = np.linalg.lstsq(design, field(scene, places)[:, 0])
    losses = [building.wall_loss for building in scene.buildings]
    np.testing.assert_allclose(
        weights, [-10 * scene.exponent, *(-loss for loss in losses), 20.0 - 40.0], atol=1e-9
    )


def test_near_an_edge_means_that_the_field_jumps_within_the_radius():
    scene = one_building((0.0, 0.0))
    places = np.array([[3.0, 3.0], [1.0, 0.0], [2.5, 0.0], [8.0, 4.2], [8.0, 6.0], [-3.0, 0.0]])
    wanted = [False, False, True, True, False, False]
    assert data.near_edge(scene, places, 0.6).tolist() == wanted
    assert not data.near_edge(replace(scene, buildings=()), places, 50.0).any()


@pytest.mark.equation("W6")
def test_shadowing_has_its_deviation():
    drawn = receivers(Scene(shadowing=3.0), np.random.default_rng(7), 4000)
    eta = drawn.y - drawn.truth
    assert eta.std() == pytest.approx(3.0, abs=4 * 3.0 / sqrt(2 * 4000))
    assert abs(eta.mean()) < 4 * 3.0 / sqrt(4000)
    np.testing.assert_array_equal(drawn.truth, field(Scene(), drawn.places))


def test_correlated_shadowing_is_white_after_its_own_covariance():
    scene = Scene(shadowing=2.0, correlation=15.0)
    drawn = receivers(scene, np.random.default_rng(8), 500)
    apart = np.linalg.norm(drawn.places[:, None] - drawn.places, axis=-1)
    factor = np.linalg.cholesky(4.0 * np.exp(-apart / 15.0) + 1e-9 * np.eye(500))
    white = np.linalg.solve(factor, drawn.y - drawn.truth)[:, 0]
    assert abs(np.mean(white**2) - 1.0) < 4 * sqrt(2 / 500)


def test_receivers_stay_where_they_may_be():
    scene, rng = Scene(), np.random.default_rng(9)
    right = receivers(scene, rng, 300, lambda places: places[:, 0] > 80.0)
    assert len(right.places) == 300
    assert (right.places[:, 0] > 80.0).all()
    with pytest.raises(ValueError, match="almost no position"):
        receivers(scene, rng, 3, lambda p: np.zeros(len(p), bool))


def test_the_errors_are_at_the_jumps_and_the_deviation_is_not():
    (vi,) = (variant for variant in WHY_VARIANTS if variant.name == "VI")
    runs = [measure(vi.vary("VI", epochs=125), seed).numbers for seed in range(1)]
    found = {key: np.mean([run[key] for run in runs]) for key in runs[0]}
    assert found["near"] > 1.3 * found["far"]
    assert found["worst near"] > 1.7 * found["edge share"]
    assert found["epistemic near"] < 1.15 * found["epistemic far"]
    assert abs(found["rank epistemic"]) < 0.3


@pytest.mark.equation("W1")
def test_least_squares_in_the_right_inputs_reaches_the_limit_of_the_noise():
    """sigma sqrt(P / N) is the root of the expected squared error over the design itself."""
    variant = next(v for v in HOW_VARIANTS if v.name == "log10 d, walls of each; linear")
    squares = []
    for seed in range(6):
        known = receivers(variant.scene, np.random.default_rng(seed), variant.count)
        design = data.features(variant.scene, known.places)
        full = np.hstack([design, np.ones((len(design), 1))])
        exact = full @ np.linalg.lstsq(full, known.y)[0]
        squares.append(np.mean((exact - known.truth) ** 2))
        if seed < 2:  # 150 epochs are too few for a building that few receivers are behind
            run = measure(variant.vary("shorter", epochs=300), seed)
            np.testing.assert_array_equal(run.receivers.y, known.y)
            np.testing.assert_allclose(run.fitted.predict(design).mean, exact, atol=0.02)  # dB
    limit = NOISE_LIMIT_DB**2
    assert np.mean(squares) == pytest.approx(limit, abs=4 * limit * sqrt(2 / 7 / 6))
