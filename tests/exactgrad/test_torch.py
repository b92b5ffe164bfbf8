"""PyTorch programs are read as they are: rules, autograd.Function, memory, paths, and attacks."""

import contextlib
import copy
import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.autograd import Function  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import exactgrad.torch  # noqa: E402
from exactgrad.torch import prove, prove_same, prove_vjp, rule  # noqa: E402

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
ROWS = torch.tensor([0, 2, 1])
MASK = torch.tensor([True, False, True, True])
IMAGE = RNG.standard_normal((1, 2, 4, 4))
KERNEL = torch.as_tensor(RNG.standard_normal((2, 2, 2, 2)))
WEIGHT = torch.as_tensor(RNG.standard_normal((4, 3)))


def numbers(*shape, seed=0):
    """Return normal numbers that depend on the seed alone."""
    return np.random.default_rng(seed).standard_normal(shape)


def spd(x):
    """Return a positive definite matrix made of x."""
    return x @ x.T + 3 * torch.eye(len(x))


class Scaled(Function):
    """Nothing in the value, and derivatives too large by a millionth of themselves."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 + 1e-6)


ELEMENTWISE = {
    "arithmetic": lambda x: (2 - x) / (3 + x * x) + torch.add(x, x * x, alpha=0.5) - 0.25 * x,
    "powers": lambda x: x**3 + (x * x + 1) ** -1.5 + 2.0**x,
    "exponentials": lambda x: x.exp() + x.expm1() + x.exp2() + torch.logaddexp(x, 2 * x),
    "logarithms": lambda x: (x * x).log() + (x * x).log1p() + (x * x).log2() + (x * x).log10(),
    "roots": lambda x: (x * x + 1).sqrt() + (x * x + 1).rsqrt() + (x + 9).reciprocal(),
    "circular": lambda x: x.sin() * x.cos() + x.tan() + torch.atan2(x, x * x + 1),
    "inverse circular": lambda x: (x / 9).asin() + (x / 9).acos() + x.atan(),
    "hyperbolic": lambda x: x.sinh() + x.cosh() + x.tanh() + x.asinh() + (x / 9).atanh(),
    "sigmoids": lambda x: x.sigmoid() + F.logsigmoid(x) + F.softplus(x) + F.silu(x) + F.mish(x),
    "error functions": lambda x: x.erf() + F.gelu(x) + (x / 9).erfinv() + x.erfc(),
    "tanh gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gamma": lambda x: torch.lgamma(x * x + 1) + torch.digamma(x * x + 1),
    "pieces": lambda x: F.relu(x) + F.leaky_relu(x, 0.25) + F.elu(x) + F.hardtanh(x) + F.celu(x),
    "hard": lambda x: F.hardswish(x) + F.relu6(x) + F.softshrink(x) + F.hardshrink(x),
    "clamps": lambda x: x.clamp(-1, 0.5) * x + x.clamp(min=0.25) + torch.maximum(x, x * x),
    "absolute": lambda x: x.abs() * x.sign() + torch.minimum(x, 2 * x).square(),
    "steps": lambda x: x * x.floor() + x * x.round() + x * x.ceil() + x.frac() + x.trunc(),
    "remainders": lambda x: x.remainder(0.75) + x.fmod(0.75),
    "where": lambda x: torch.where(x > 0.1, x * x, x.exp()) + x.masked_fill(x < 0, 2.0) * x,
    "three factors": lambda x: torch.addcmul(x, x, x, value=0.5) + torch.lerp(x, x * x, 0.3),
    "quotients": lambda x: torch.addcdiv(x, x, x * x + 1) + torch.hypot(x, x + 1),
    "losses": lambda x: F.mse_loss(x, x * x) + F.smooth_l1_loss(x, x * x) + F.huber_loss(x, 2 * x),
    "bernoulli": lambda x: F.binary_cross_entropy_with_logits(x, (x * x).sigmoid()),
    "masks": lambda x: x * ((x > 0) & (x < 1)) + x * (~(x > 0)).double().mean(),
}
AXES = {
    "sums": lambda x: x.exp().sum((0, 2)) * x.sum() + x.mean(-1).sum(0) * x.mean(),
    "variances": lambda x: x.var(-1) * x.std((1, 2))[:, None] + x.var(-1, unbiased=False),
    "products": lambda x: x.prod(1) + x.prod(),
    "extremes": lambda x: x.max(-1)[0] * x.amin(1)[:, :1] * x.max() + x.amax((0, 1)).sum(),
    "logsumexp": lambda x: x.logsumexp(-1) + F.softmax(x, 1)[..., 0] + F.log_softmax(x, 2)[..., 1],
    "norms": lambda x: x.norm(dim=-1) + torch.linalg.vector_norm(x, torch.inf, dim=2) + x.norm(1),
    "cumulative": lambda x: x.cumsum(1) * x.cumprod(-1),
    "order": lambda x: x.sort(1)[0] * x.sort(-1, descending=True)[0] + x.cummax(-1)[0],
    "largest": lambda x: x.topk(2, -1)[0] * x.kthvalue(2, -1, keepdim=True)[0] + x.median(),
    "gather": lambda x: x.gather(2, x.argsort(-1)) * x.take_along_dim(x.argmax(2, True), 2),
    "indices": lambda x: x[:, ROWS] * x[0, [1, 1, 2]] + x.index_select(1, ROWS),
    "mask index": lambda x: x[..., MASK].exp() * x[..., 1:],
    "scatter": lambda x: (
        torch.zeros(2, 3, 4).scatter_add(1, ROWS.view(1, 3, 1).expand(2, 3, 4), x)
        * torch.zeros(2, 3, 4).scatter(1, ROWS.view(1, 3, 1).expand(2, 3, 4), x)
    ),
    "index add": lambda x: torch.ones(3, 4).index_add(0, ROWS, x[0]) * x[1],
    "index put": lambda x: (
        x.index_put((torch.tensor([0, 0]), torch.tensor([1, 1])), x[1, :2], True) * x
    ),
    "views": lambda x: (
        x.mT @ x.flatten(1).view(2, 3, 4) * x.permute(2, 0, 1)[:, :, :1].reshape(2, 4, 1)
    ),
    "joins": lambda x: torch.cat([x, x * x], 1)[:, ::2] * torch.stack([x[0], x[1]], 0),
    "moves": lambda x: x.roll(1, 2) * x.flip(1) + x.tril() * x.triu(1) + x.repeat(1, 2, 1)[:, 3:],
    "windows": lambda x: x.unfold(2, 2, 1).prod(-1) * x.diff(dim=2),
    "padding": lambda x: (
        F.pad(x, (1, 1), value=2.0)[..., 1:-1] * F.pad(x, (1, 1), "reflect")[..., :4]
    ),
    "diagonals": lambda x: (
        x[0].diagonal() * torch.diag_embed(x[1]).diagonal(dim1=-2, dim2=-1)[:, :3]
    ),
    "chunks": lambda x: torch.cat([a * b for a, b in [x.chunk(2, 2)]]) * x.split(2, 2)[0],
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x) + torch.einsum("bij->bi", x)[..., None],
    "linear": lambda x: F.linear(x, WEIGHT.T, WEIGHT[0]) @ torch.outer(x[0, :, 0], x[0, 1]),
    "stacks": lambda x: torch.baddbmm(x[:, :, :3], x, x.mT) @ torch.bmm(x, x.mT),
    "norm layers": lambda x: F.layer_norm(x, (4,)) + F.group_norm(x, 3) * F.rms_norm(x, (4,)),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "instance norm": lambda x: F.instance_norm(x) * F.normalize(x, dim=-1),
    "one hot": lambda x: (F.one_hot(x.argmax(-1), 4) * x).sum(-1) * x[..., 0],
    "embedding": lambda x: F.embedding(ROWS, x[0]) * x[1],
    "cross entropy": lambda x: F.cross_entropy(x[0], ROWS, label_smoothing=0.1) * x,
    "attention": lambda x: F.scaled_dot_product_attention(
        x[None], x[None], x[None], is_causal=True
    ),
    "dropout": lambda x: F.dropout(x, 0.5) * torch.randn_like(x),
    "interpolation": lambda x: F.interpolate(x, scale_factor=2, mode="linear")[..., ::2] * x,
    "pooling 1": lambda x: F.avg_pool1d(x, 2, 2) * F.max_pool1d(x, 2) + F.adaptive_avg_pool1d(x, 2),
}
IMAGES = {
    "convolution": lambda x: F.conv2d(x, KERNEL, KERNEL[0, 0, 0]).tanh(),
    "strides": lambda x: F.conv2d(x, x[:, :, :3, :3], stride=2, padding=1, dilation=(1, 2)),
    "groups": lambda x: F.conv2d(x, KERNEL[:, :1] * x.sum(), padding=1, groups=2).tanh(),
    "transposed": lambda x: F.conv_transpose2d(x, KERNEL * x[0, 0, 0, 0], stride=2, padding=1),
    "pooling": lambda x: (
        F.avg_pool2d(x, 2) * F.max_pool2d(x, 3, 2, 1) + F.adaptive_avg_pool2d(x, 2)
    ),
    "patches": lambda x: F.unfold(x, 2).exp() * F.unfold(x, 2, stride=1),
    "folds": lambda x: F.fold(F.unfold(x * x, 2), (4, 4), 2) * x,
    "shuffled": lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1) ** 2, 2),
    "bilinear": lambda x: F.interpolate(x, (6, 6), mode="bilinear").tanh(),
}
SQUARES = {
    "cholesky": lambda x: torch.linalg.cholesky(spd(x)),
    "solve": lambda x: (
        torch.linalg.solve(x + 3, x)
        + torch.linalg.solve(x.T + 3, x[0])[:, None]
        + torch.linalg.solve(x.exp().T, x, left=False)
    ),
    "inverse": lambda x: torch.linalg.inv(spd(x)) @ x,
    "triangular": lambda x: (
        torch.linalg.solve_triangular(spd(x).tril(), x, upper=False)
        + torch.linalg.solve_triangular(spd(x).triu(), x, upper=True, left=False)
    ),
    "unit triangular": lambda x: torch.linalg.solve_triangular(
        x, x.exp(), upper=False, unitriangular=True
    ),
}
CASES = [
    *((name, f, numbers(6)) for name, f in ELEMENTWISE.items()),
    *((name, f, numbers(2, 3, 4)) for name, f in AXES.items()),
    *((name, f, IMAGE) for name, f in IMAGES.items()),
    *((name, f, numbers(3, 3)) for name, f in SQUARES.items()),
]


@pytest.mark.parametrize(("f", "x"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_program_is_pytorch_s_own_and_its_gradient_is_proved(f, x, monkeypatch):
    # a program whose numbers differ from PyTorch's by more than this is refused; the digamma
    # function of PyTorch has fewer digits than that of SciPy
    rtol = 1e-9 if f is ELEMENTWISE["gamma"] else 1e-12
    monkeypatch.setattr(exactgrad.torch, "RTOL", rtol)

    def loss(x):
        return f(x).tanh().sum()

    program, _ = exactgrad.torch._gradient_program(loss, x, ())
    other = torch.tensor(-0.7 * x, requires_grad=True)
    with exactgrad.torch._tracing(exactgrad.torch.Tracer()):
        value = loss(other)
        (gradient,) = torch.autograd.grad(value, other)
    value_of_program, gradient_of_program = program(-0.7 * x)
    assert value_of_program == pytest.approx(value.item(), rel=rtol)
    np.testing.assert_allclose(gradient_of_program, gradient, rtol=1e-9, atol=1e-12)
    assert prove(loss, x, n_points=2).verdict == "proved"
    assert prove(lambda x: loss(Scaled.apply(x)), x, n_points=1).verdict == "refuted"


# --- Function, pairs and several tensors


class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        r = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, r)
        return x * r * weight, r

    @staticmethod
    def backward(ctx, grad, grad_r):
        x, weight, r = ctx.saved_tensors
        scaled = grad * weight
        mean = (scaled * x * r).mean(-1, keepdim=True) + grad_r * r / x.shape[-1]
        return r * (scaled - x * r * mean), (grad * x * r).sum(0), None


class SumForMean(RMSNorm):
    @staticmethod
    def backward(ctx, grad, grad_r):
        x, weight, r = ctx.saved_tensors
        scaled = grad * weight
        mean = (scaled * x * r).sum(-1, keepdim=True) + grad_r * r / x.shape[-1]
        return r * (scaled - x * r * mean), (grad * x * r).sum(0), None


def attention(q, k, v):
    weights = torch.softmax(q @ k.T / k.shape[1] ** 0.5, -1)
    return weights @ v, (q, k, v, weights)


def attention_backward(saved, grad):
    q, k, v, weights = saved
    d_weights = grad @ v.T
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True))
    d_scores = d_scores / k.shape[1] ** 0.5
    return d_scores @ k, d_scores.T @ q, weights.T @ grad


def attention_backward_without_scale(saved, grad):
    q, k, v, weights = saved
    d_weights = grad @ v.T
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdim=True))
    return d_scores @ k, d_scores.T @ q, weights.T @ grad


QKV = [torch.as_tensor(numbers(4, 4, seed=seed)) for seed in range(3)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_function_is_proved_or_refuted_for_all_cotangents_in_any_dtype(dtype):
    x, weight = torch.tensor(numbers(3, 4), dtype=dtype), torch.tensor(numbers(4), dtype=dtype)
    assert str(prove_vjp(RMSNorm, x, weight, 1e-6)) == "proved: all 16 derivatives are exact"
    text = str(prove_vjp(SumForMean, x, weight, 1e-6))
    assert text.startswith("refuted: 12 of 16 derivatives are wrong\n  x[0, 0]: by hand ")
    assert "of test_torch.py" in text


def test_a_pair_is_proved_and_what_it_saves_is_part_of_it():
    proof = prove_vjp(attention, attention_backward, *QKV)
    assert proof.verdict == "proved"
    assert proof.coordinates == 48
    wrong = prove_vjp(attention, attention_backward_without_scale, *QKV)
    assert str(wrong).startswith("refuted: 32 of 48 derivatives are wrong\n  q[0, 0]")

    def attention_that_saves_scores(q, k, v):
        out, (q, k, v, weights) = attention(q, k, v)
        return out, (q, k, v, weights.log())

    assert prove_vjp(attention_that_saves_scores, attention_backward, *QKV).verdict == "refuted"


def test_an_input_without_a_gradient_is_named_unless_it_requires_one():
    def backward(saved, grad):
        return grad * saved, None

    x, w = QKV[0][0], QKV[0][1]
    proof = prove_vjp(lambda x, w: (x * w, w), backward, x, w)
    assert str(proof) == "proved: all 4 derivatives are exact; w without a gradient"
    both = [tensor.clone().requires_grad_() for tensor in (x, w)]
    assert prove_vjp(lambda x, w: (x * w, w), backward, *both).verdict == "refuted"


def test_two_functions_have_the_same_values_and_gradients():
    def kernel(q, k, v):
        scores = q @ k.T / 2
        largest = torch.full((4, 1), -1e3)
        total, out = torch.zeros(4, 1), torch.zeros(4, 4)
        for i in (0, 2):
            block = scores[:, i : i + 2]
            new = torch.maximum(largest, block.amax(1, keepdim=True))
            p, decay = (block - new).exp(), (largest - new).exp()
            total, out, largest = total * decay + p.sum(1, keepdim=True), out * decay, new
            out = out + p @ v[i : i + 2]
        return out / total

    assert prove_same(kernel, F.scaled_dot_product_attention, *QKV).verdict == "proved"
    assert prove_same(kernel, lambda *x: kernel(*x) * (1 + 1e-9), *QKV).verdict == "refuted"
    # equal values whose gradients differ
    assert prove_same(torch.exp, lambda x: Scaled.apply(x).exp(), QKV[0]).verdict == "refuted"
    assert prove_same(torch.exp, lambda x: x.exp().detach(), QKV[0]).verdict == "refuted"
    assert prove_same(torch.sign, lambda x: 1 - 2 * (x < 0).double(), QKV[0]).verdict == "proved"
    with pytest.raises(ValueError, match="tensors of the same shapes"):
        prove_same(torch.exp, lambda x: (x, x), QKV[0])


def test_a_module_a_dict_and_arrays_are_arguments():
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.GELU(), torch.nn.Linear(4, 2)
    )

    def loss(parameters, x, labels):
        z = torch.func.functional_call(module, parameters, (x,))
        return F.cross_entropy(z, labels)

    parameters = dict(module.named_parameters())
    proof = prove(loss, parameters, numbers(4, 3), torch.tensor([0, 1, 1, 0]), n_points=2)
    assert proof.verdict == "proved"
    assert proof.coordinates == 34


def test_transforms_of_torch_func_see_through_a_function():
    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    def loss(x):
        rows = torch.func.vmap(lambda row: Square.apply(row).sum() * row.prod())(x)
        return rows.sum() + torch.func.grad(lambda y: (Square.apply(y) * y).sum())(x).sum()

    assert prove(loss, numbers(2, 2)).verdict == "proved"


def test_a_context_says_which_gradients_are_needed_and_which_outputs_have_one():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x, w):
            values, order = x.sort()
            ctx.save_for_backward(order, w)
            ctx.mark_non_differentiable(order)
            ctx.set_materialize_grads(False)
            return values * w, order, x + w

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad, _, grad_sum):
            order, w = ctx.saved_tensors
            to_x = grad_sum
            if grad is not None:
                to_x = torch.zeros_like(grad).scatter(0, order, grad * w) + grad_sum
            assert not ctx.needs_input_grad[1]
            return to_x, None

    assert prove_vjp(Sorted, QKV[0][0].clone().requires_grad_(), QKV[0][1]).verdict == "proved"
    assert prove(lambda x, w: Sorted.apply(x, w)[2].sum(), numbers(4), numbers(4)).proved


# --- memory, dtypes and paths


def test_what_is_written_in_place_is_seen_through_all_views():
    def loss(x):
        y = torch.zeros(4)
        view = y.view(2, 2)
        view[0] = x[:2] * x[2:]
        y[1:].mul_(x[1:])
        y.add_(x, alpha=0.5).clamp_(max=1.5)
        y.masked_fill_(x > 1, 2.0)
        y[x < 0] = 0.25
        return (view * y.view(2, 2).T).sum()

    assert prove(loss, numbers(4)).verdict == "proved"
    assert prove(lambda x: loss(Scaled.apply(x)), numbers(4)).verdict == "refuted"


def test_float32_constants_are_the_numbers_that_one_writes():
    tenth = torch.tensor(0.1, dtype=torch.float32)

    class Tenth(Function):
        @staticmethod
        def forward(ctx, x):
            return (x.float() * tenth).to(torch.float32).half().float()

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.1

    x = torch.tensor(numbers(3), dtype=torch.float32)
    assert prove_vjp(Tenth, x).verdict == "proved"

    def under_autocast(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (x.view(3, 1) @ x.view(1, 3)).tanh().sum()

    assert prove(under_autocast, x).verdict == "proved"


def test_each_branch_of_python_is_traced_on_its_own():
    class Branches(Function):
        @staticmethod
        def forward(ctx, x, right):
            ctx.is_positive, ctx.right = bool(x.sum() > 0), right
            ctx.save_for_backward(x)
            return x**2 if ctx.is_positive else x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            if ctx.is_positive or not ctx.right:
                return 2 * x * grad, None
            return 3 * x**2 * grad, None

    x = torch.tensor([1.0, 2.0, -0.5])
    proof = prove(lambda x: Branches.apply(x, True).sum(), x)
    assert proof.verdict == "proved"
    assert proof.paths == 2
    wrong = prove(lambda x: Branches.apply(x, False).sum(), x)
    assert str(wrong).startswith("refuted at another theta")

    def loop(x):
        y = x.sum()
        while y.abs() < 50:
            y = 2 * y + x[0] / 8
        return y * y

    assert prove(loop, x).verdict == "proved"
    assert prove(lambda x: (x[x > 0] ** 2).sum(), x).paths > 1


def test_random_numbers_of_pytorch_are_constants():
    def loss(x):
        return (F.dropout(x, 0.5) * torch.randn(3) * torch.rand_like(x)).sum()

    assert prove(loss, numbers(3)).verdict == "proved"


# --- attacks


def parts(forward, backward):
    """Return the `apply` of a Function with these methods."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Attack", (Function,), methods).apply


X = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64)
KEPT = {}


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def square_that_reads(ctx, x):
    ctx.first = x[0].item()
    return x * x[0]


def square_that_changes_what_it_saves(ctx, x):
    ctx.kept = x.clone()
    out = ctx.kept * ctx.kept
    ctx.kept.mul_(3)
    return out


def square_that_keeps(ctx, x):
    KEPT.setdefault("x", x.detach().clone())
    return x * x


def right(ctx, grad):
    return 2 * grad * ctx.saved_tensors[0]


WRONG = {
    "constant at this theta": (square, lambda ctx, grad: grad * torch.tensor([1.0, -3.0, 4.0])),
    "one element": (square, lambda ctx, grad: right(ctx, grad) * torch.tensor([1, 1, 1 + 1e-13])),
    "no gradient": (square, lambda ctx, grad: None),
    "saved, then changed": (
        square_that_changes_what_it_saves,
        lambda ctx, grad: 2 * grad * ctx.kept,
    ),
    "uninitialised": (lambda ctx, x: 0.5 * x, lambda ctx, grad: grad * torch.empty_like(grad)),
}
NOT_TRACEABLE = {
    "branch by numpy in backward": parts(
        square, lambda ctx, grad: grad * (1 if ctx.saved_tensors[0].numpy().sum() > 9 else 2)
    ),
    "the same, in a derivative": lambda x: torch.autograd.grad(
        parts(square, lambda ctx, grad: grad * len(ctx.saved_tensors[0].tolist()))(x).sum(), x
    )[0],
    "item in forward": parts(square_that_reads, lambda ctx, grad: grad * ctx.first),
    "numpy in backward": parts(
        square, lambda ctx, grad: 2 * grad * torch.tensor(ctx.saved_tensors[0].numpy())
    ),
    "kept from the first call": parts(square_that_keeps, lambda ctx, grad: 2 * grad * KEPT["x"]),
    "tolist": lambda x: x * torch.tensor(x.tolist()),
    "deepcopy": lambda x: x * copy.deepcopy(x.detach()),
    "array": lambda x: x * torch.tensor(np.asarray(x.detach())),
    "dlpack": lambda x: x * torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach().clone())),
    "apply_": lambda x: x * x.detach().clone().apply_(lambda number: 2 * number),
    "int": lambda x: x * int(x.detach().sum()),
    "random": lambda x: x * torch.tensor(np.random.default_rng().normal(size=3)),
    "bits": lambda x: x * (x.detach().view(torch.int64) % 2),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_refuted_however_right_they_look(name):
    apply = parts(*WRONG[name])
    assert prove(lambda x: apply(x).sum(), X).verdict == "refuted"


@pytest.mark.parametrize("name", NOT_TRACEABLE)
def test_numbers_that_leave_pytorch_are_not_traceable(name):
    proof = prove(lambda x: NOT_TRACEABLE[name](x).sum(), X)
    assert proof.verdict == "not traceable"


def test_the_text_of_a_tensor_has_no_numbers():
    assert prove(lambda x: x.sum() * len(repr(x)), X).verdict == "proved"
    with pytest.raises(ValueError, match="could not convert"):
        prove(lambda x: x.sum() * float(str(x.detach())[8:11]), X)


def test_a_straight_through_estimator_is_refuted_with_the_line_that_holds_it():
    def loss(x):
        y = x + (x.round() - x).detach()
        return (y**2).sum()

    def under_no_grad(x):
        with torch.no_grad():
            rest = x.round() - x
        return ((x + rest) ** 2).sum()

    held = "is held constant in the gradient"
    assert f"`y = x + (x.round() - x).detach()` {held}" in str(prove(loss, X + 0.2))
    assert f"`rest = x.round() - x` {held}" in str(prove(under_no_grad, X + 0.2))


def test_a_tie_at_theta_is_no_proof():
    tied = torch.tensor([1.0, 1.0, 0.0])
    for f in (torch.max, lambda x: x.sort()[0][2], lambda x: F.max_pool1d(x[None], 3).sum()):
        assert prove(f, tied).verdict == "not traceable"
    # zeros of a ReLU are the same number
    assert prove(lambda x: F.max_pool1d(F.relu(x)[None], 2).sum(), -X).verdict == "proved"


def test_an_operation_without_a_rule_is_named_and_can_be_added():
    def loss(x):
        return torch.special.bessel_j0(x).sum()

    text = str(prove(loss, X))
    assert "test_torch.py, `return torch.special.bessel_j0(x).sum()`" in text
    assert 'exactgrad.torch.rule("aten::special_bessel_j0", numpy_function)' in text
    rule(torch.ops.aten._fft_r2c, lambda x: x)
    rule("aten::logcumsumexp", lambda x, dim: np.log(np.cumsum(np.exp(x), axis=dim)))
    assert prove(lambda x: x.logcumsumexp(0).sum(), X.abs()).verdict == "proved"
    rule("aten::logcumsumexp", lambda x, dim: np.cumsum(x, axis=dim))  # a wrong rule
    assert "a rule is wrong" in str(prove(lambda x: x.logcumsumexp(0).sum(), X.abs()))
    for name in ("aten::logcumsumexp", "aten::_fft_r2c"):
        del exactgrad.torch.RULES[name.removeprefix("aten::")]
    with pytest.raises(TypeError, match="op must be an operation"):
        rule(3, np.exp)


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="tensor of one number"):
        prove(lambda x: x, X)
    with pytest.raises(ValueError, match="theta must be a float64 array"):
        prove(torch.sum, torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="f must be"):
        prove(3, X)


def test_the_package_does_not_import_torch():
    code = "import exactgrad, sys; exactgrad.prove; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_page_prints_what_it_shows(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text("utf-8")
    example = r"```python\n(import numpy as np\nimport torch\n.*?)```\n\n```text\n(.*?)```"
    code, shown = re.search(example, page, re.DOTALL).groups()
    file = tmp_path / "swish.py"
    file.write_text(code)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, str(file), "exec"), {"__name__": "page"})
    assert output.getvalue() == shown


def test_kernels_of_triton_are_proved_where_it_is_installed():
    pytest.importorskip("triton")
    script = Path(__file__).with_name("triton_kernels.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, str(script)], check=True, env=environment)


def with_index(kernel, index):
    return lambda x: (kernel(x), {"index": index(x)})


def test_all_that_functions_return_is_compared_with_its_structure_and_shapes():
    x = numbers(3)
    right = with_index(torch.exp, torch.argmax)
    assert prove_same(right, with_index(lambda x: x.exp(), torch.argmax), x)
    for other in (torch.argmin, lambda x: x.argmax() + 1, lambda x: x.argmax() == 3):
        assert prove_same(right, with_index(torch.exp, other), x).verdict == "refuted"
    assert prove_same(lambda x: (x, x.detach()), lambda x: (x, 2 * x.detach()), x).wrong
    assert prove_same(lambda x: {"a": x, "b": x**2}, lambda x: {"b": x * x, "a": x}, x)
    assert prove_same(lambda x: 1.0, lambda x: 2.0, x).verdict == "refuted"
    for other in (lambda x: x[None], torch.sum, lambda x: (x, x)):
        with pytest.raises(ValueError, match="of the same shapes"):
            prove_same(lambda x: x, other, x)
    with pytest.raises(ValueError, match="inputs must hold"):
        prove_same(torch.exp, torch.exp, 0.5)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_are_recorded_also_where_the_caller_has_switched_them_off(mode):
    with mode():
        proofs = [prove(lambda x: (x**2).sum(), X), prove_vjp(Scaled, X)]
        assert prove_same(lambda x: x**2, lambda x: x * x, X)
        assert not torch.is_grad_enabled()
        assert [str(proof.verdict) for proof in proofs] == ["proved", "refuted"]
        assert proofs[1].wrong


def test_a_function_with_float32_constants_is_a_pair():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x @ (2 * torch.eye(2))

        @staticmethod
        def backward(ctx, grad):
            return grad @ (2 * torch.eye(2))

    assert prove_vjp(Doubled, numbers(3, 2))
    assert prove_same(lambda x: x * 2, lambda x: x @ (2 * torch.eye(2)), numbers(3, 2))


def test_a_backward_pass_may_return_a_list():
    forward = lambda x, y: (x * y, (x, y))  # noqa: E731
    right = lambda saved, grad: [grad * saved[1], grad * saved[0]]  # noqa: E731
    assert prove_vjp(forward, right, X, X + 1)
    assert prove_vjp(forward, lambda *x: right(*x)[::-1], X, X + 1).verdict == "refuted"


def test_a_softmax_of_a_transposed_matrix_is_traceable():
    assert prove(lambda x: (torch.softmax(x.T, 0) ** 2).sum(), numbers(2, 2))


def test_numbers_are_a_theta_and_what_has_no_gradient_is_named():
    assert prove(lambda x: x**3, 0.5)
    assert prove(lambda x: x.prod(), [0.5, 1.5])
    assert prove(lambda x: x["a"] ** 2, {"a": 0.5})
    with pytest.raises(ValueError, match="backward must return the gradient"):
        prove_vjp(lambda x: (x**2, x), lambda x, grad: None, X)
    with pytest.raises(ValueError, match="an input of floats"):
        prove_vjp(lambda x: (x * torch.ones(2), x), lambda x, grad: grad, 0.5)


def test_proofs_in_several_threads_do_not_disturb_each_other():
    verdicts = []

    def prove_often():
        for _ in range(4):
            right = prove(lambda x: (x @ torch.ones(3)).exp(), X)
            wrong = prove_vjp(Scaled, X)
            verdicts.append((str(right.verdict), str(wrong.verdict)))

    threads = [threading.Thread(target=prove_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == 16 * [("proved", "refuted")]
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize(("name", "package"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_without_its_framework_a_module_says_what_to_install(name, package):
    code = f"import sys; sys.modules[{name!r}] = None; import exactgrad.{name}"
    command = [sys.executable, "-c", code]
    error = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert f"needs {package}; run pip install bbb-numpy[{name}]" in error


def test_a_constant_of_bfloat16_is_the_decimal_that_one_writes_for_it():
    constants = torch.tensor([0.1, 0.7, 2**-12], dtype=torch.bfloat16)
    written = np.array([0.1, 0.7, 2**-12])
    other = torch.tensor(written)
    assert prove_same(lambda x: constants * x, lambda x: other * x, numbers(3))
    assert not prove_same(lambda x: constants * x, lambda x: 1.0001 * other * x, numbers(3))


def test_a_constant_that_is_nan_where_it_is_not_used_does_not_change_from_call_to_call():
    def value(x):
        constants = torch.tensor([1.0, float("nan")]).double()
        return torch.where(torch.tensor([True, False]), constants * x, x**2).sum()

    assert "changes from call to call" not in str(prove(value, numbers(2)))


def test_options_that_have_no_meaning_here_are_refused():
    with pytest.raises(TypeError, match=r"got order: .*exactgrad\.prove\(\.\.\., order=2\)"):
        prove(torch.sum, numbers(2), order=2)
    with pytest.raises(TypeError, match="got blocks: leave it out"):
        prove_vjp(lambda x: (x, x), lambda x, u: u, numbers(2), blocks=None)
    with pytest.raises(TypeError, match="among seed; got n_points"):
        prove_same(torch.sum, torch.sum, numbers(2), n_points=0)
    assert prove(torch.sum, numbers(2), n_points=2, seed=1, fixed=())


def test_masked_arrays_and_matrices_are_refused():
    masked = np.ma.masked_array(numbers(2), [True, False])
    with pytest.raises(ValueError, match="must be an array without a mask"):
        prove(torch.sum, masked)
    with pytest.raises(ValueError, match="must be an array; got a matrix"):
        prove_same(torch.sum, torch.sum, np.eye(2).view(np.matrix))


def test_positions_of_argmin_and_argsort_are_named_as_the_reason_of_a_derivative_0():
    class Nearest(Function):
        @staticmethod
        def forward(ctx, x):
            return torch.tensor([1.0, 5.0, 2.0]).double()[x.argmin()] * x.detach()[0] ** 0

        @staticmethod
        def backward(ctx, grad_out):
            return grad_out.expand(3)

    reason = "and so have positions by argmin or argsort"
    assert reason in str(prove(lambda x: Nearest.apply(x), numbers(3)))
