"""Algebra for the proofs in derivations/: equal lines, Gaussian moments, the code's last line.

Expressions are written out, entry by entry, with explicit small sizes. Two lines are equal when
their difference has the normal form 0: a polynomial by expansion, a quotient by the expansion of
its numerator, in which e^rho is one more unknown. Nothing here evaluates numbers but `number`.
"""

from itertools import pairwise

import numpy as np
import sympy
from sympy import Dummy, Matrix, Rational, Symbol, exp, log

from exactgrad import prove_same

HALF = Rational(1, 2)
LOG_2PI = log(2 * sympy.pi)


def reals(names):
    """Return real symbols, as `sympy.symbols`: "a:3" is a0, a1, a2."""
    return sympy.symbols(names, real=True)


def positives(names):
    """Return positive symbols."""
    return sympy.symbols(names, positive=True)


def matrix(name, rows, columns):
    """Return a matrix of real symbols, its entries written out."""
    return Matrix(rows, columns, lambda i, j: Symbol(f"{name}_{i}{j}", real=True))


def softplus(rho):
    """Return the softplus as the source prints it (K3)."""
    return log(1 + exp(rho))


def sigmoid(rho):
    """Return the right-hand side of K24 as the source prints it."""
    return 1 / (1 + exp(-rho))


def vanishes(expression):
    """Return whether the normal form of `expression` is 0."""
    expression, letters = in_sigmoids(sympy.sympify(expression))
    expression = sympy.expand(expression)
    if expression == 0:
        return True
    inverted = {x: log(1 - v) - log(v) for x, v in letters.items()}
    if letters and sympy.expand(expression.subs(inverted)) == 0:
        return True
    if expression.has(exp):
        letters = (x for x in expression.free_symbols if x.is_real)
        expression = expression.subs({exp(x): Dummy(positive=True) for x in letters})
    numerator, _ = sympy.fraction(sympy.together(expression))
    return sympy.expand(numerator) == 0


def unsigned(exponent):
    return -exponent if exponent.could_extract_minus_sign() else exponent


def in_sigmoids(expression):
    """Write 1 / (1 + e^x) as one letter v, in which 1 / (1 + e^-x) is 1 - v and e^x is (1 - v)/v.

    Then sums of products of sigmoids are polynomials. Returns the letters by x.
    """
    letters = {}
    substitutions = {}
    exponents = {unsigned(power.exp) for power in expression.atoms(exp)}
    for x in expression.free_symbols & exponents:
        if expression.has(1 + exp(x)) or expression.has(1 + exp(-x)):
            v = letters[x] = Dummy(positive=True)
            substitutions |= {1 + exp(x): 1 / v, exp(x): (1 - v) / v}
            substitutions |= {1 + exp(-x): 1 / (1 - v), exp(-x): v / (1 - v)}
            substitutions |= {log(1 + exp(x)): -log(v), log(1 + exp(-x)): -log(1 - v)}
    return expression.xreplace(substitutions), letters


def entries(line):
    """Return the entries of a matrix or a list, or the one number itself."""
    return list(line) if isinstance(line, Matrix | list | tuple) else [line]


def equal(*lines):
    """Assert that each line of a derivation equals the one before, entry by entry."""
    for line, next_line in pairwise(lines):
        for entry, next_entry in zip(entries(line), entries(next_line), strict=True):
            assert vanishes(entry - next_entry), f"{entry}\nis not\n{next_entry}"


def proved_equal(lhs, rhs):
    """Assert that two expressions are the same for all numbers, in exact arithmetic (D44).

    For what is no quotient of polynomials, where simplifying takes long.
    """
    letters = symbols_of([lhs, rhs])
    first, second = (sympy.lambdify(letters, side, ["scipy", "numpy"]) for side in (lhs, rhs))
    proof = prove_same(first, second, *assign(0, letters).values())
    assert proof, proof


def off_by(printed, right, amount):
    """Assert that a printed form misses the right one by `amount`, which is not 0.

    Of a matrix at least one entry is wrong.
    """
    equal(printed, [r + a for r, a in zip(entries(right), entries(amount), strict=True)])
    values = {symbol: 0.3 + 0.37 * k for k, symbol in enumerate(symbols_of(amount))}
    assert np.abs(number(amount, values)).max() > 1e-6, "the printed form is right"


def symbols_of(line):
    """Return the symbols of all entries, in the order of their names."""
    return sorted(set().union(*(sympy.sympify(e).free_symbols for e in entries(line))), key=str)


def expectation(expression, *noise):
    """Return E of a polynomial in independent standard normal `noise`: E[e^2k] = (2k - 1)!!."""
    total = 0
    for powers, coefficient in sympy.Poly(sympy.expand(expression), *noise).terms():
        moments = [0 if k % 2 else sympy.factorial2(k - 1) for k in powers]
        total += coefficient * sympy.prod(moments)
    return total


def number(line, values):
    """Evaluate the entries of a line at the floats `values`, a vector of float64."""
    return np.array(
        [sympy.lambdify(list(values), entry, "math")(*values.values()) for entry in entries(line)],
        np.float64,
    )


def ships(computed, line, values, rtol=1e-12):
    """Assert that the shipped code found the numbers of the last line, to 1e-12."""
    expected = number(line, values)
    computed = np.asarray(computed, np.float64).ravel()
    largest = np.abs(expected).max()  # sums of numbers of this size may cancel
    np.testing.assert_allclose(computed, expected, rtol=rtol, atol=0.1 * rtol * largest)


def assign(seed, *groups):
    """Return floats for symbols, by a fixed seed: standard normal, positive ones in (0.4, 1.6)."""
    rng = np.random.default_rng(seed)
    values = {}
    for symbol in (entry for group in groups for entry in entries(group)):
        values[symbol] = (
            float(rng.uniform(0.4, 1.6)) if symbol.is_positive else float(rng.standard_normal())
        )
    return values


def floats(values, group, shape=None):
    """Return the values of a group of symbols as an array."""
    array = np.array([values[symbol] for symbol in entries(group)])
    return array if shape is None else array.reshape(shape)


def gaussian(x, mean, deviation):
    """Return the density of N(mean, deviation^2) at x."""
    return exp(-((x - mean) ** 2) / (2 * deviation**2)) / (deviation * sympy.sqrt(2 * sympy.pi))


def log_gaussian(x, mean, deviation):
    """Return the log density of N(mean, deviation^2) at x, constants kept (K8)."""
    return -log(deviation) - HALF * LOG_2PI - (x - mean) ** 2 / (2 * deviation**2)
