"""Backward passes of public PyTorch code: the right ones are proved, the wrong ones refuted."""

import pytest

torch = pytest.importorskip("torch")

from gallery import torch_programs  # noqa: E402
from gallery.torch_programs import TORCH  # noqa: E402

pytestmark = pytest.mark.slow

TOLERANCE = 1e-9  # relative to the largest derivative; the smallest mistake is 4e-13
INVISIBLE = {"bias and GELU by tanh"}  # a constant rounded to ten digits


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


@pytest.mark.parametrize("backward_pass", TORCH, ids=lambda item: item.build.__name__)
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
    assert is_seen == (backward_pass.title not in INVISIBLE)


def test_there_are_enough_passes():
    assert len(TORCH) >= 50
    assert sum(item.verdict == "proved" for item in TORCH) >= 30
