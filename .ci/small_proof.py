"""Prove a backward pass of JAX or PyTorch and refute a wrong one: python small_proof.py torch."""

import sys
from importlib import import_module


def forward(x, w):
    """Return x w and what the backward pass needs."""
    return x * w, (x, w)


def backward(saved, grad_out):
    """Return the gradients by x and w."""
    x, w = saved
    return grad_out * w, grad_out * x


def backward_with_a_mistake(saved, grad_out):
    """Return the gradient by w with w where x belongs."""
    _, w = saved
    return grad_out * w, grad_out * w


if __name__ == "__main__":
    framework = sys.argv[1]
    module, name = {"jax": ("jax.numpy", "array"), "torch": ("torch", "tensor")}[framework]
    array = getattr(import_module(module), name)
    prove_vjp = import_module(f"exactgrad.{framework}").prove_vjp
    inputs = array([0.5, -1.5]), array([2.0, 0.25])
    for function, verdict in ((backward, "proved"), (backward_with_a_mistake, "refuted")):
        proof = prove_vjp(forward, function, *inputs)
        print(proof)
        assert proof.verdict == verdict
