"""PyTorch programs are read as they are: rules, autograd.Function, memory, paths, and attacks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.autograd import Function  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import exactgrad.torch  # noqa: E402
from exactgrad.torch import prove  # noqa: E402

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
    "hard": lambda x: F.hardswish(x) + F.hardsigmoid(x) + F.softshrink(x) + F.hardshrink(x),
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
}
CASES = [
    *((name, f, numbers(6)) for name, f in ELEMENTWISE.items()),
    *((name, f, numbers(2, 3, 4)) for name, f in AXES.items()),
    *((name, f, IMAGE) for name, f in IMAGES.items()),
    *((name, f, numbers(3, 3)) for name, f in SQUARES.items()),
]


@pytest.mark.parametrize(("f", "x"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_program_is_pytorch_s_own_and_its_gradient_is_proved(f, x, monkeypatch):
    # a program whose numbers differ from PyTorch's by more than this is refused
    monkeypatch.setattr(exactgrad.torch, "RTOL", 1e-12)

    def loss(x):
        return f(x).tanh().sum()

    assert prove(loss, x, n_points=2).verdict == "proved"
    assert prove(lambda x: loss(Scaled.apply(x)), x, n_points=1).verdict == "refuted"
