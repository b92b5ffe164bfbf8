"""What the galleries of JAX and PyTorch share: a hand-written backward pass, right and wrong."""

import ast
import random
from dataclasses import dataclass

from gallery.programs import changed, source_of

from benchmarks.mutants import mutants


@dataclass(frozen=True)
class BackwardPass:
    """A backward pass of public code, written anew from its formulas, and the same with a mistake.

    Attributes
    ----------
    title : str
        What it is the backward pass of.
    source : str
        Where the formulas were found, ``owner/repository: path``, and the commit or the issue.
    formula : str
        The value, in one line of mathematics.
    build : callable
        Function without arguments that returns a tuple: a function, or a pair of a forward and a
        backward function for `prove_vjp`, and the inputs, theta first. Its source is what is shown
        and changed.
    change : tuple of two str
        Text that stands once in the source of `build`, and what replaces it, both on one line. It
        plants a mistake in a backward pass that is right, and repairs one that is wrong.
    mistake : str
        The mistake in words.
    verdict : str
        The verdict on the unchanged pass: "proved" or "proved for these data", or "refuted" if it
        is not the gradient in the public code, because it is not meant to be (straight-through) or
        by a bug.
    reason : str
        Text that the printed refutation contains, such as ``right but for the sign``.
    """

    title: str
    source: str
    formula: str
    build: object
    change: tuple
    mistake: str
    verdict: str = "proved"
    reason: str = ""

    def make(self, wrong=False):
        """Return the function (or pair) and the inputs; of the wrong pass if `wrong`."""
        if wrong == (self.verdict == "refuted"):
            return self.build()
        return changed(self.build, self.change)()

    @property
    def wrong_line(self):
        """The line of the wrong pass that is changed, as a verdict prints it."""
        old, new = self.change
        source = source_of(self.build)
        row = source[: source.index(old)].count("\n")
        if self.verdict != "refuted":
            source = source.replace(old, new)
        return source.splitlines()[row].strip()


def passes(collection):
    """Return a decorator that adds the builder below it to `collection` as a `BackwardPass`."""

    def described(title, source, formula, change, mistake, **more):
        def add(build):
            collection.append(BackwardPass(title, source, formula, build, change, mistake, **more))
            return build

        return add

    return described


def proof_of(backward_pass, prover, wrong=False):
    """Return the proof of a pass by `prover`, the module `exactgrad.jax` or `exactgrad.torch`."""
    program, *inputs = backward_pass.make(wrong)
    if isinstance(program, tuple):
        return prover.prove_vjp(*program, *inputs)
    return prover.prove(program, *inputs)


def mutated_builders(backward_pass, rule_names):
    """Yield builders of the right pass, each with one random change in a function so named."""
    source = source_of(backward_pass.build)
    if backward_pass.verdict == "refuted":
        source = source.replace(*backward_pass.change)
    tree = ast.parse(source)
    rules = [node for node in ast.walk(tree) if getattr(node, "name", "") in rule_names]
    lines = {line for rule in rules for line in range(rule.body[0].lineno, rule.end_lineno + 1)}
    numbers = [number for number, mutant in enumerate(mutants(tree)) if mutant.line in lines]
    random.Random(0).shuffle(numbers)
    for number in numbers:
        tree = ast.parse(source)
        list(mutants(tree))[number].apply()
        namespace = dict(backward_pass.build.__globals__)
        exec(compile(ast.unparse(tree), "<mutated>", "exec"), namespace)
        yield namespace[backward_pass.build.__name__]
