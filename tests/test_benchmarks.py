"""The benchmark compares like with like, and its tables say what was measured.

No test here looks at a clock: how long a step takes is for `make bench` to say.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks/ is not installed

from bbb_numpy.workspace import Workspace
from benchmarks import floor, memory, ours, results, round_robin, step_time
from benchmarks.problems import KL_WEIGHT, OPTIMIZER, PROBLEMS, Problem

SMALL = Problem((3, 6, 5, 2), rows=7, samples=4)
ONE_SAMPLE = replace(SMALL, samples=1)
PACE = round_robin.Pace(rounds=2, seconds=1e-4, pause=0.0)


def our_steps(problem, noises):
    """Value and gradient of every step, and theta after the last, in float64."""
    theta, x, y = problem.start(np.float64)
    state, work, before = OPTIMIZER.init(theta), Workspace(), []
    for noise in noises:
        value, grad = problem.estimator.value_and_grad(theta, noise, x, y, KL_WEIGHT, work)
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


def test_a_peer_with_another_kl_weight_is_noticed(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks import peer_torch

    monkeypatch.setattr(peer_torch, "KL_WEIGHT", KL_WEIGHT * (1 + 1e-6))
    peer = peer_torch.Peer(SMALL, dtype=np.float64)

    def advance(noise):
        return float(peer.advance(peer.noise(noise)).detach()), peer.gradient()

    with pytest.raises(AssertionError):
        assert_same_steps(SMALL, peer, advance)


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


def test_a_missing_peer_is_said_aloud_and_skipped(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "benchmarks.peer_jax", None)
    assert step_time.load(["ours", "jax"]) == {}
    assert "SKIPPED JAX" in capsys.readouterr().out


def test_a_partial_run_never_replaces_the_committed_results():
    peers = dict.fromkeys(step_time.PEERS)
    full = step_time.parse([])
    assert step_time.complete(full, peers)
    assert not step_time.complete(step_time.parse(["--quick"]), peers)
    assert not step_time.complete(step_time.parse(["--only", "ours"]), peers)
    assert not step_time.complete(full, {})


@pytest.mark.parametrize("arguments", [["--only", "tensorflow"], ["--rounds", "0"]])
def test_unknown_contestants_and_empty_runs_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        step_time.parse(arguments)
    message = capsys.readouterr().err
    assert "choose from ours,floor,torch,jax,sklearn" in message or "must be positive" in message


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
