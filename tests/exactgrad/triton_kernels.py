"""Kernels of Triton, interpreted, are proved and refuted: TRITON_INTERPRET=1 python this file."""

import torch
import triton
import triton.language as tl

from exactgrad.torch import prove_same, prove_vjp


@triton.jit
def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Write the softmax of each row of x to y."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + columns, e / tl.sum(e, 0), mask=columns < n)


@triton.jit
def softmax_backward(y_ptr, g_ptr, d_ptr, n, FORGET: tl.constexpr, BLOCK: tl.constexpr):
    """Write the cotangent of x to d; with FORGET the factor y in the inner product is missing."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * n + columns, mask=columns < n, other=0.0)
    g = tl.load(g_ptr + row * n + columns, mask=columns < n, other=0.0)
    inner = tl.sum(g * y, 0)
    if FORGET:
        inner = tl.sum(g, 0)
    tl.store(d_ptr + row * n + columns, y * (g - inner), mask=columns < n)


@triton.jit
def add_atomically(x_ptr, total_ptr, n: tl.constexpr):
    """Add x to a total."""
    tl.atomic_add(total_ptr + tl.zeros((n,), tl.int32), tl.load(x_ptr + tl.arange(0, n)))


def forward(x):
    """Return the softmax of the rows of x, twice: as the output and as what is saved."""
    y = torch.empty_like(x)
    softmax[(len(x),)](x, y, x.shape[1], BLOCK=8)
    return y, y


def backward(y, g, forget=False):
    """Return the cotangent of x."""
    d = torch.empty_like(y)
    softmax_backward[(len(y),)](y, g.contiguous(), d, y.shape[1], FORGET=forget, BLOCK=8)
    return d


class Softmax(torch.autograd.Function):
    """The softmax of rows by the two kernels."""

    @staticmethod
    def forward(ctx, x):
        """Return the softmax of the rows of x."""
        y, _ = forward(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        """Return the cotangent of x."""
        return backward(*ctx.saved_tensors, g)


def total(x):
    """Return the sum of x, and nothing saved."""
    out = torch.zeros(1)
    add_atomically[(1,)](x, out, n=x.numel())
    return out, None


if __name__ == "__main__":
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    for verdict, proof in (
        ("proved", prove_vjp(forward, backward, x)),
        ("refuted", prove_vjp(forward, lambda y, g: backward(y, g, forget=True), x)),
        ("proved", prove_vjp(Softmax, x)),
        ("proved", prove_same(Softmax.apply, lambda x: torch.softmax(x, -1), x)),
        ("refuted", prove_same(Softmax.apply, lambda x: torch.softmax(x, 0), x)),
        ("not traceable", prove_vjp(total, lambda _, g: g.expand(4), x[0, :4].clone())),
    ):
        print(str(proof).splitlines()[0])
        assert proof.verdict == verdict
