"""Backward passes of public PyTorch code: the right ones are proved, the wrong ones refuted."""

import pytest

torch = pytest.importorskip("torch")

from gallery import torch_programs  # noqa: E402
from gallery.frameworks import mutated_builders, proof_of  # noqa: E402
from gallery.programs import source_of  # noqa: E402
from gallery.torch_programs import TORCH  # noqa: E402

from exactgrad import torch as prover  # noqa: E402

pytestmark = pytest.mark.slow

TOLERANCE = 1e-9  # relative to the largest derivative; the smallest mistake is 4e-13
INVISIBLE = {"bias_gelu"}  # a constant rounded to ten digits
MUTANTS_PER_PASS = 4


class ForwardAlone:
    """Stands for `torch.autograd.Function`: autograd differentiates what `forward` computes."""

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    @classmethod
    def apply(cls, *arguments):
        return cls.forward(cls(), *arguments)


def derivatives(loss, theta, *data):
    """Return the derivatives of the loss by all numbers of theta, one after the other."""
    theta = tuple(tensor.clone().requires_grad_() for tensor in theta)
    value = loss(theta, *data)
    if not value.requires_grad:  # it goes through an argsort, a rounding or a comparison
        return torch.cat([torch.zeros(tensor.numel()).double() for tensor in theta])
    slopes = torch.autograd.grad(value, theta, allow_unused=True)
    return torch.cat([
        (torch.zeros_like(tensor) if slope is None else slope).ravel()
        for tensor, slope in zip(theta, slopes, strict=True)
    ])  # fmt: skip


def passes():
    return pytest.mark.parametrize("backward_pass", TORCH, ids=lambda item: item.build.__name__)


@passes()
def test_the_right_pass_is_what_autograd_computes_and_the_wrong_one_is_not(
    backward_pass, monkeypatch
):
    right, wrong = (derivatives(*backward_pass.make(wrong)) for wrong in (False, True))
    monkeypatch.setattr(torch_programs, "Function", ForwardAlone)
    truth = derivatives(*backward_pass.make())
    truth_of_wrong = derivatives(*backward_pass.make(wrong=True))  # a mistake may be in the value
    size = truth.abs().max() + 1e-300
    assert (right - truth).abs().max() <= TOLERANCE * size
    is_seen = (wrong - truth_of_wrong).abs().max() > TOLERANCE * size
    assert is_seen == (backward_pass.build.__name__ not in INVISIBLE)


@passes()
def test_a_right_pass_is_proved_and_a_wrong_one_refuted_with_its_reason(backward_pass):
    assert proof_of(backward_pass, prover).verdict == "proved"
    proof = proof_of(backward_pass, prover, wrong=True)
    assert proof.verdict == "refuted"
    assert backward_pass.reason in str(proof)


def single(value):
    """Return a tensor of floats, or each of a tuple, in single precision."""
    if isinstance(value, tuple):
        return tuple(map(single, value))
    return value.float() if value.is_floating_point() else value


@passes()
def test_a_pass_of_single_precision_gets_the_same_verdicts(backward_pass):
    for wrong, verdict in [(False, "proved"), (True, "refuted")]:
        loss, *inputs = backward_pass.make(wrong)
        assert prover.prove(loss, *map(single, inputs)).verdict == verdict


@passes()
def test_no_random_change_of_a_backward_pass_that_changes_numbers_is_proved(backward_pass):
    assert source_of(backward_pass.build).count("def backward(") == 1
    truth = derivatives(*backward_pass.make())
    n_proofs = 0
    for build in mutated_builders(backward_pass, ["backward"]):
        try:
            program = build()
            changed = derivatives(*program)
        except Exception:
            continue  # a change that PyTorch itself refuses, such as one of a shape
        if not changed.isfinite().all():
            continue
        n_proofs += 1
        error = (changed - truth).abs().max() / (truth.abs().max() + 1e-300)
        proof = prover.prove(*program)
        if error > 1e-8:  # a change to single precision rounds by 2e-9
            assert proof.verdict == "refuted"
        elif proof.theta is None:
            assert proof.verdict == "proved"
        if n_proofs == MUTANTS_PER_PASS:
            break


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="a bug of PyTorch 2.13")
def test_local_response_normalisation_is_that_of_pytorch_and_repaired_that_of_its_definition():
    item = next(item for item in TORCH if item.build.__name__ == "cross_map_lrn")
    constants = {"alpha": 0.5, "beta": 0.75, "k": 1}
    loss, (x,), weights = item.make(wrong=True)
    images = x[None, :, :, None].clone().requires_grad_()
    value = torch.nn.CrossMapLRN2d(3, **constants)(images)[0, :, :, 0]
    torch.testing.assert_close(value, loss.apply(x))
    (slope,) = torch.autograd.grad((value * weights).sum(), images)
    torch.testing.assert_close(slope.ravel(), derivatives(loss, (x,), weights))
    repaired, *_ = item.make()
    defined = torch.nn.functional.local_response_norm(images, 3, **constants)[0, :, :, 0]
    torch.testing.assert_close(defined, repaired.apply(x))


def test_cosine_similarity_has_the_slope_of_pytorch_and_repaired_that_of_its_value():
    item = next(item for item in TORCH if item.build.__name__ == "cosine_similarity")
    loss, (x,), weights, y = item.make(wrong=True)
    vectors = x.clone().requires_grad_()
    value = torch.nn.functional.cosine_similarity(vectors, y, eps=0.5)
    torch.testing.assert_close(value, loss.apply(x, y))
    (slope,) = torch.autograd.grad((value * weights).sum(), vectors)
    torch.testing.assert_close(slope.ravel(), derivatives(loss, (x,), weights, y))


def test_there_are_enough_passes():
    assert len(TORCH) >= 50
    assert sum(item.verdict == "proved" for item in TORCH) >= 30
