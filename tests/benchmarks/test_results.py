"""The benchmark compares like with like, and its tables say what was measured.

No test here looks at a clock: how long a step takes is for `make bench` to say.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.numeric.buffers import Buffers
from benchmarks import cases, estimators, floor, memory, ours, results, round_robin, step_time
from benchmarks.cases import ESTIMATORS, PLAIN, Case
from benchmarks.problems import KL_WEIGHT, OPTIMIZER, PROBLEMS, Problem

SMALL = Problem((3, 6, 5, 2), rows=7, samples=4)
ONE_SAMPLE = replace(SMALL, samples=1)
PACE = round_robin.Pace(rounds=2, seconds=1e-4, pause=0.0)


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
    return [problem.estimator.draw(rng, problem.samples) for _ in range(steps)]


def assert_same_steps(problem, peer, advance):
    noises = draws(problem)
    before, theta = our_steps(problem, noises)
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


@pytest.mark.parametrize("problem", [SMALL, ONE_SAMPLE], ids=["S=4", "S=1"])
@pytest.mark.parametrize("form", ["layers", "flat"])
@pytest.mark.parametrize("adam", ["loop", "foreach", "fused"])
def test_pytorch_takes_the_same_step_as_ours(problem, form, adam):
    pytest.importorskip("torch")
    from benchmarks import peer_torch

    peer = peer_torch.Peer(problem, form, adam, np.float64)

    def advance(noise):
        return float(peer.advance(peer.noise(noise)).detach()), peer.gradient()

    assert_same_steps(problem, peer, advance)


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
    step = ours.step(SMALL, theta)
    rng = np.random.default_rng(2)
    noises = []
    for _ in range(3):
        step()
        noises.append(SMALL.estimator.draw(rng, SMALL.samples))
    np.testing.assert_array_equal(theta, our_steps(SMALL, noises)[1])


@pytest.mark.parametrize("problem", [SMALL, PROBLEMS[0], PROBLEMS[2]], ids=lambda p: p.name)
def test_the_floor_has_every_matrix_product_of_a_step(problem):
    plan = floor.products(problem)
    flops = sum(2 * out[0].size * a.shape[-1] for a, _, out in plan)
    pairs = list(zip(problem.sizes[:-1], problem.sizes[1:], strict=True))
    forward = sum(2 * problem.rows * d_in * d_out for d_in, d_out in pairs)
    first = 2 * problem.rows * pairs[0][0] * pairs[0][1]
    assert flops == 3 * forward - first  # nobody needs the gradient for x
    for a, b, out in plan:
        assert out.shape[0] == problem.samples
        expected = np.matmul(a, b)
        tight = np.multiply(a, b) if a.shape[-1] == 1 else expected
        assert out.shape == expected.shape
        np.testing.assert_array_equal(tight, expected)


def test_the_table_has_a_row_per_network_and_a_verdict_per_bar(capsys, monkeypatch, tmp_path):
    problems = tuple(replace(p, sizes=SMALL.sizes) for p in PROBLEMS)
    monkeypatch.setattr(step_time, "PROBLEMS", problems)
    path = tmp_path / "new" / "out.json"
    arguments = ["--quick", "--rounds", "2", "--seconds", "1e-4", "--only", "ours,floor"]
    assert step_time.main([*arguments, "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    head, rows = lines[0].split("  "), lines[2:6]
    assert [cell.strip() for cell in head if cell][:4] == ["network", "rows", "S", "ours us"]
    assert all(row.startswith(SMALL.name) for row in rows)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["about"]["numpy"] == np.__version__
    assert document["about"]["dtype"] == "float32"
    for result, problem in zip(document["results"], problems, strict=True):
        assert set(result["ratios"]) == {"ours/floor", "ours/tight"}
        ratio = result["ratios"]["ours/floor"]["median"]
        assert result["met"] == {"ours/floor": ratio <= dict(problem.bars)["ours/floor"]}
        times = result["microseconds"]["ours"]
        assert 0 < times["q1"] <= times["median"] <= times["q3"]


def test_ratios_are_taken_round_by_round():
    # A machine that slows down threefold half-way leaves the ratio of every round alone.
    times = {"ours": np.array([2.0, 2.0, 6.0]), "floor": np.array([1.0, 1.0, 3.0])}
    problem = replace(SMALL, bars=(("ours/floor", 2.0), ("JAX/ours", 1.0)))
    result = results.Result(problem, times, {}, {})
    assert result.ratios() == {"ours/floor": round_robin.Spread(2.0, 2.0, 2.0)}
    assert result.met() == {"ours/floor": True}


@pytest.mark.parametrize(
    ("name", "ratio", "bar", "verdict"),
    [
        ("ours/floor", 1.4, 1.4, True),
        ("ours/floor", 1.5, 1.4, False),
        ("PyTorch/ours", 2.5, 2.5, True),
        ("JAX/ours", 1.3, 1.4, False),
    ],
)
def test_a_bar_is_an_upper_bound_for_ours_and_a_lower_one_for_peers(name, ratio, bar, verdict):
    assert results.meets(name, ratio, bar) is verdict


def test_every_contestant_runs_once_in_every_round():
    counts = {"a": 0, "b": 0}

    def step(name):
        def one_step():
            counts[name] += 1

        return one_step

    times = round_robin.race({name: step(name) for name in counts}, PACE)
    assert {name: len(values) for name, values in times.items()} == {"a": 2, "b": 2}
    assert min(counts.values()) >= 1 + 2 * (3 + 3)  # first call, then both halves of each turn


def test_a_partial_run_never_replaces_the_committed_results():
    peers = dict.fromkeys(step_time.PEERS)
    full = step_time.parse([])
    assert step_time.complete(full, peers)
    assert not step_time.complete(step_time.parse(["--quick"]), peers)
    assert not step_time.complete(step_time.parse(["--only", "ours"]), peers)
    assert not step_time.complete(full, {})


def test_peak_memory_grows_no_faster_than_samples_times_weights_and_activations():
    peaks = [memory.peak(problem) for problem in memory.GROWTH]
    # w, eps, d_w and the prior's score are the four arrays (S, P); activation, its slope and
    # delta are fewer arrays (S, B, width); what does not grow with S (softplus, gradient,
    # Adam) is about eleven arrays (P,).
    for peak in peaks:
        own = 11 * 4 * peak.problem.weights
        assert peak.bytes <= 4.05 * peak.unit + own + 20_000
    table = memory.table(peaks)
    assert len(table) == 1 + len(memory.GROWTH)
    assert table[1][-1] == f"{peaks[0].copies:.2f}"


# Every estimator

KINDS = [
    (kind, samples)
    for kind in ESTIMATORS
    for samples in ((4,) if kind in cases.SAMPLES else (1, 4))
]


def small_case(kind, samples=4, sizes=SMALL.sizes):
    return Case(sizes, SMALL.rows, samples, (), kind)


def both_steps(case):
    """Value and gradient of one step, ours and PyTorch's, for the same noise, in float64."""
    from benchmarks import peer_torch_estimators as torch

    theta, x, y = case.start(np.float64)
    noise = case.estimator.draw(np.random.default_rng(5), case.samples, rows=case.rows)
    value, grad, _ = case.estimator.value_and_grad(theta, noise.copy(), x, y, KL_WEIGHT)
    peer = torch.PEERS.get(case.kind, torch.Sampled)(case, np.float64)
    peer_value = float(peer.advance(peer.noise(noise)).detach())
    return float(value), grad, peer_value, peer.gradient()


@pytest.mark.parametrize(("kind", "samples"), KINDS)
def test_pytorch_computes_the_same_loss_for_every_estimator(kind, samples):
    pytest.importorskip("torch")
    value, grad, peer_value, peer_grad = both_steps(small_case(kind, samples))
    assert peer_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(peer_grad, grad, rtol=1e-11, atol=1e-13 * np.abs(grad).max())


def test_pytorchs_mirrored_noise_and_signs_are_what_they_are_called():
    torch = pytest.importorskip("torch")
    from benchmarks import peer_torch_estimators as peers

    for eps in peers.Antithetic(small_case("antithetic")).draw():
        assert torch.equal(eps[:2], -eps[2:])
    _, signs = peers.Flipped(small_case("Flipout")).draw()
    assert all(torch.equal(sign.abs(), torch.ones_like(sign)) for sign in signs)


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_floor_of_every_estimator_has_its_products(kind, samples):
    case = small_case(kind, samples)
    plan = cases.products(case)
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


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_timed_step_of_every_estimator_stays_in_float32(kind, monkeypatch):
    case = small_case(kind)
    seen, update = [], type(OPTIMIZER).update

    def watched(self, theta, grad, state, factor):
        seen.append((theta.dtype, grad.dtype))
        update(self, theta, grad, state, factor)

    monkeypatch.setattr(type(OPTIMIZER), "update", watched)
    theta = case.start().theta
    before = theta.copy()
    ours.step(case, theta)()
    assert seen == [(np.float32, np.float32)]
    assert (theta != before).any()


def test_the_table_of_estimators_says_what_was_measured(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(estimators, "PROBLEMS", (replace(SMALL, samples=10),))
    monkeypatch.setattr(estimators, "peer", lambda: None)
    monkeypatch.setattr(cases, "FASTER_THAN_PLAIN", ("local reparameterisation", SMALL.sizes))
    path = tmp_path / "out.json"
    arguments = ["--quick", "--rounds", "2", "--seconds", "1e-4", "--json", str(path)]
    assert estimators.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    results_of = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert len(lines) == 2 + len(results_of)
    for result in results_of:
        plain = result["estimator"] == PLAIN
        assert set(result["ratios"]) == {"ours/floor"} | (set() if plain else {"ours/plain"})
        if result["bars"]:
            assert result["met"] == {"ours/plain": result["ratios"]["ours/plain"]["median"] <= 1.0}
    assert [result["estimator"] for result in results_of if result["bars"]] == [
        "local reparameterisation"
    ]
