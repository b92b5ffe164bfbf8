"""What gallery and hunt share: a program with its data, and the same with a line changed."""

import inspect
import linecache
import textwrap
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Program:
    """A function from theta and data to a value and a gradient.

    `change` are pairs of old and new text of its source: in the gallery an error that is planted,
    in the hunt what repairs a gradient that is wrong.
    """

    title: str
    source: str
    function: object
    arguments: tuple
    change: tuple = ()
    verdict: str = "proved"
    kind: str = ""
    note: str = ""

    @property
    def changed(self):
        return changed(self.function, *self.change)


def source_of(function):
    """Return the source of a function, without its decorators."""
    source = textwrap.dedent(inspect.getsource(function))
    return source[source.index("\ndef ") + 1 :] if source.startswith("@") else source


def changed(function, *pairs):
    """Return the function with parts of its source replaced, each of which stands there once."""
    source = source_of(function)
    for old, new in pairs:
        if source.count(old) != 1:
            raise ValueError(f"{old!r} stands {source.count(old)} times in {function.__name__}")
        source = source.replace(old, new)
    name = f"<{function.__name__}, changed>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names = dict(function.__globals__)
    exec(compile(source, name, "exec"), names)
    return names[function.__name__]


def normal(*shape, seed=0):
    """Return normal numbers that depend on shape and seed alone."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def cut(theta, *shapes):
    """Return the parts of theta as arrays of these shapes."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(s) for part, s in zip(np.split(theta, ends), shapes, strict=False)]


def flat(*parts):
    """Return the parts of a gradient one after the other."""
    return np.concatenate([np.ravel(part) for part in parts])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softmax(z, axis=-1):
    e = np.exp(z - np.max(z, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
