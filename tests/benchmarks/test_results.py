"""The benchmark compares like with like, and its tables say what was measured.

No test here looks at a clock: how long a step takes is for `make bench` to say.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.numeric.buffers import Buffers
from benchmarks import estimators, floor, problems, racing, step_time
from benchmarks.problems import ESTIMATORS, KL_WEIGHT, OPTIMIZER, PLAIN, PROBLEMS, Problem, ours
from benchmarks.racing import Result

SMALL = Problem((3, 6, 5, 2), rows=7, samples=4)
ONE_SAMPLE = replace(SMALL, samples=1)


def our_steps(problem, noises):
    """Value and gradient of every step, and theta after the last, in float64."""
    theta, x, y = problem.start(np.float64)
    state, buffers, before = OPTIMIZER.init(theta), Buffers(), []
    for noise in noises:
        value, grad, _ = problem.estimator.value_and_grad(
            theta, noise, x, y, KL_WEIGHT, buffers.rewind()
        )
        before.append((float(value), grad.copy()))
        OPTIMIZER.update(theta, grad, state, 1.0)
    return before, theta


def draws(problem, steps=3):
    rng = np.random.default_rng(5)
    return [problem.estimator.draw(rng, problem.samples, rows=problem.rows) for _ in range(steps)]


def assert_same_steps(problem, peer, advance):
    noises = draws(problem)
    before, theta = our_steps(problem, [noise.copy() for noise in noises])
    for noise, (value, grad) in zip(noises, before, strict=True):
        peer_value, peer_grad = advance(noise)
        assert peer_value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(peer_grad, grad, rtol=1e-11, atol=1e-13 * np.abs(grad).max())
    moved = theta - problem.start(np.float64).theta
    assert np.abs(moved).max() > 0
    # Two roundings of theta at size 5 bound the error of the difference.
    np.testing.assert_allclose(
        peer.theta() - problem.start(np.float64).theta, moved, rtol=1e-8, atol=4e-15
    )


KINDS = [(kind, s) for kind in ESTIMATORS for s in ((4,) if kind in problems.SAMPLES else (1, 4))]
FORMS = [(PLAIN, s, form, adam) for s in (1, 4) for form in ("layers", "flat")
         for adam in ("loop", "foreach", "fused")]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "samples", "form", "adam"), [*((*one, "layers", "loop") for one in KINDS), *FORMS]
)
def test_pytorch_takes_the_same_step_as_ours(kind, samples, form, adam):
    pytest.importorskip("torch")
    from benchmarks import peer_torch

    case = replace(SMALL, samples=samples, estimator_name=kind)
    peer = peer_torch.PEER_CLASSES.get(kind, peer_torch.Peer)(case, np.float64, form, adam)

    def advance(noise):
        return float(peer.advance(peer.noise(noise)).detach()), peer.gradient()

    assert_same_steps(case, peer, advance)


def test_pytorchs_mirrored_noise_and_signs_are_what_they_are_called():
    torch = pytest.importorskip("torch")
    from benchmarks import peer_torch

    for eps in peer_torch.Antithetic(replace(SMALL, estimator_name="antithetic")).draw():
        assert torch.equal(eps[:2], -eps[2:])
    _, signs = peer_torch.Flipped(replace(SMALL, estimator_name="Flipout")).draw()
    assert all(torch.equal(sign.abs(), torch.ones_like(sign)) for sign in signs)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [SMALL, ONE_SAMPLE], ids=["S=4", "S=1"])
@pytest.mark.parametrize("form", ["layers", "flat"])
def test_jax_takes_the_same_step_as_ours(problem, form):
    jax = pytest.importorskip("jax")
    from benchmarks import peer_jax

    with jax.enable_x64(True):
        peer = peer_jax.Peer(problem, form, dtype=np.float64)
        assert_same_steps(problem, peer, peer.advance)


def test_the_timed_step_of_ours_is_the_checked_one():
    theta = SMALL.start(np.float64).theta
    step = ours(SMALL, theta)
    rng = np.random.default_rng(2)
    noises = []
    for _ in range(3):
        step()
        noises.append(SMALL.estimator.draw(rng, SMALL.samples))
    np.testing.assert_array_equal(theta, our_steps(SMALL, noises)[1])


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_timed_step_of_every_estimator_stays_in_float32(kind, monkeypatch):
    case = replace(SMALL, estimator_name=kind)
    seen, update = [], type(OPTIMIZER).update

    def watched(self, theta, grad, state, factor):
        seen.append((theta.dtype, grad.dtype))
        update(self, theta, grad, state, factor)

    monkeypatch.setattr(type(OPTIMIZER), "update", watched)
    theta = case.start().theta
    before = theta.copy()
    ours(case, theta)()
    assert seen == [(np.float32, np.float32)]
    assert (theta != before).any()


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_floor_of_every_estimator_has_its_products(kind, samples):
    case = replace(SMALL, samples=samples, estimator_name=kind)
    plan = floor.products(case)
    for a, b, out in plan:
        assert np.matmul(a, b).shape == out.shape
        assert a.dtype == b.dtype == out.dtype == np.float32
    flops = sum(2 * out.size * a.shape[-1] for a, _, out in plan)
    pairs = list(zip(case.sizes[:-1], case.sizes[1:], strict=True))
    every = [2 * case.rows * d_in * d_out for d_in, d_out in pairs]
    own = samples * (3 * sum(every) - every[0])  # nobody needs the gradient for x
    shared = 2 * every[0] + 3 * samples * sum(every[1:])  # one first layer for all samples
    weights = case.weights
    expected = {
        "local reparameterisation": 2 * shared,
        "Flipout": shared + own,
        "self-normalised": samples * sum(every) + 4 * samples * weights,
        "full rank": own + 4 * samples * weights**2,
    }
    assert flops == expected.get(kind, own)


def test_the_table_has_a_row_per_network_and_a_verdict_per_bar(capsys, monkeypatch, tmp_path):
    small = tuple(replace(p, sizes=SMALL.sizes) for p in PROBLEMS)
    monkeypatch.setattr(step_time, "PROBLEMS", small)
    monkeypatch.setattr(racing, "PAUSE", 0.0)
    path = tmp_path / "new" / "out.json"
    arguments = ["--quick", "--rounds", "2", "--seconds", "1e-4", "--only", "ours,floor"]
    assert step_time.main([*arguments, "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:5] == ["network", "rows", "samples", "ours", "us"]
    assert all(row.split()[0] == SMALL.name for row in lines[1:5])
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["about"]["numpy"] == np.__version__
    assert document["about"]["dtype"] == "float32"
    for result, problem in zip(document["results"], small, strict=True):
        assert set(result["ratios"]) == {"ours/floor", "ours/tight"}
        ratio = result["ratios"]["ours/floor"]["median"]
        assert result["met"] == {"ours/floor": ratio <= dict(problem.bars)["ours/floor"]}
        times = result["microseconds"]["ours"]
        assert 0 < times["q1"] <= times["median"] <= times["q3"]


def test_the_table_of_estimators_says_what_was_measured(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(estimators, "PROBLEMS", (replace(SMALL, samples=10),))
    monkeypatch.setattr(racing, "peer", lambda *_: None)
    monkeypatch.setattr(racing, "PAUSE", 0.0)
    monkeypatch.setattr(problems, "FASTER_THAN_PLAIN", ("local reparameterisation", SMALL.sizes))
    path = tmp_path / "out.json"
    arguments = ["--quick", "--rounds", "2", "--seconds", "1e-4", "--json", str(path)]
    assert estimators.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert len(lines) == 1 + len(results)
    for result in results:
        plain = result["estimator"] == PLAIN
        assert set(result["ratios"]) == {"ours/floor"} | (set() if plain else {"ours/plain"})
        if result["bars"]:
            assert result["met"] == {"ours/plain": result["ratios"]["ours/plain"]["median"] <= 1.0}
    assert [r["estimator"] for r in results if r["bars"]] == ["local reparameterisation"]


def test_ratios_are_taken_round_by_round_and_judged_by_their_bars():
    # A machine that slows down threefold half-way leaves the ratio of every round alone.
    times = {"ours": np.array([2.0, 2.0, 6.0]), "floor": np.array([1.0, 1.0, 3.0])}
    result = Result({}, times | {"JAX usual": 1.5 * times["ours"]}, step_time.STEP_RATIOS)
    assert result.ratios()["ours/floor"] == racing.Spread(2.0, 2.0, 2.0)
    for bars in ({"ours/floor": 2.0, "JAX/ours": 1.5}, {"ours/floor": 1.9, "JAX/ours": 1.6}):
        met = bars["ours/floor"] == 2.0
        assert replace(result, bars=bars).met() == {"ours/floor": met, "JAX/ours": met}
    assert replace(result, bars={"PyTorch/ours": 1.0}).met() == {}


def test_every_contestant_runs_once_in_every_round(monkeypatch):
    monkeypatch.setattr(racing, "PAUSE", 0.0)
    calls = []
    turns = {name: lambda name=name: calls.append(name) or len(calls) for name in "ab"}
    found = racing.in_turn(turns, 3)
    assert {name: len(values) for name, values in found.items()} == {"a": 3, "b": 3}
    for turn in range(4):  # one to warm up
        assert sorted(calls[2 * turn : 2 * turn + 2]) == ["a", "b"]


def test_a_partial_run_never_replaces_the_committed_results():
    peers = dict.fromkeys(step_time.PEER_TITLES)
    full = step_time.parse([])
    assert step_time.complete(full, peers)
    assert not step_time.complete(step_time.parse(["--quick"]), peers)
    assert not step_time.complete(step_time.parse(["--only", "ours"]), peers)
    assert not step_time.complete(full, {})


def test_peak_memory_grows_no_faster_than_samples_times_weights_and_activations():
    for problem in step_time.GROWTH:
        peak = step_time.peak(problem)
        # w, eps, d_w and the prior's score are the four arrays (S, P); activation, its slope and
        # delta are fewer arrays (S, B, width); what does not grow with S (softplus, gradient,
        # Adam) is about eleven arrays (P,).
        assert peak.bytes <= 4.05 * peak.unit + 11 * 4 * problem.weights + 20_000
        assert peak.row()["peak / that"] == f"{peak.bytes / peak.unit:.2f}"
