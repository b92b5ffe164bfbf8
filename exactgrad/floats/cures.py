"""Recognise classic formulas that lose digits, and name the formula that keeps them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..sources import syntax_tree

__all__ = ["cure_of", "returned_part", "statements_at"]

MODULES = {"np", "numpy", "math", "scipy", "special", "jnp", "torch"}
TRANSPARENT = {"copy", "array", "asarray", "reshape", "ravel", "float", "squeeze"}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
BINARY_FUNCTIONS = {
    "power": "**",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
}
COMMUTATIVE = {"+", "*"}
MAX_ASSIGNMENTS = 12  # assignments that are followed backwards from a line
# Formulas that lose digits, and what to write instead; X, Y, A, B and C stand for any expression.
# A row stands before those whose formula is a part of its own
CURES = {
    # exponentials and logarithms
    "log(1 / (1 + exp(-X)))": "-np.logaddexp(0, -X)",
    "log(1 - 1 / (1 + exp(-X)))": "-np.logaddexp(0, X)",
    "log(1 - expit(X))": "-np.logaddexp(0, X)",
    "log(expit(X))": "-np.logaddexp(0, -X)",
    "log(exp(X) / sum(exp(X)))": "z - np.log(np.exp(z).sum()) with z = X - np.max(X)",
    "log(softmax(X))": "z - np.log(np.exp(z).sum()) with z = X - np.max(X)",
    "log(sum(exp(X)))": "m + np.log(np.exp(X - m).sum()) with m = np.max(X)",
    "log(mean(exp(X)))": "m + np.log(np.exp(X - m).mean()) with m = np.max(X)",
    "exp(X) / sum(exp(X))": "e / e.sum() with e = np.exp(X - np.max(X))",
    "log(1 + exp(X))": "np.logaddexp(0, X)",
    "log1p(exp(X))": "np.logaddexp(0, X)",
    "log(exp(X) + exp(Y))": "np.logaddexp(X, Y)",
    "log(1 + X) - log(1 - X)": "2 * np.arctanh(X)",
    "log(X + 1) - log(X)": "np.log1p(1 / X)",
    "log(X + sqrt(X ** 2 + 1))": "np.arcsinh(X)",
    "log((1 + X) / (1 - X))": "2 * np.arctanh(X)",
    "log(1 - X)": "np.log1p(-X)",
    "log(1 + X)": "np.log1p(X)",
    "log(X) - log(Y)": "np.log(X / Y), or np.log1p((X - Y) / Y) where these are near",
    "(exp(X) - exp(-X)) / (exp(X) + exp(-X))": "np.tanh(X)",
    "(exp(X) - exp(-X)) / 2": "np.sinh(X)",
    "exp(X) - exp(-X)": "2 * np.sinh(X)",
    "exp(X) + exp(-X) - 2": "4 * np.sinh(X / 2) ** 2",
    "exp(X) - 2 + exp(-X)": "4 * np.sinh(X / 2) ** 2",
    "(exp(X) - 1) / X": "np.expm1(X) / X, and 1 at 0",
    "exp(X) - 1": "np.expm1(X)",
    "1 - exp(X)": "-np.expm1(X)",
    "exp(X) - exp(Y)": "np.exp(Y) * np.expm1(X - Y)",
    "1 - exp(X) / (1 + exp(X))": "1 / (1 + np.exp(X))",
    "1 - 1 / (1 + exp(-X))": "1 / (1 + np.exp(X))",
    "1 - 1 / (1 + exp(X))": "1 / (1 + np.exp(-X))",
    "1 - expit(X)": "expit(-X)",
    "exp(X) / (1 + exp(X))": "np.where(X > 0, 1, e) / (1 + e) with e = np.exp(-np.abs(X))",
    "1 - erf(X)": "erfc(X)",
    "1 + erf(X)": "erfc(-X)",
    "1 - tanh(X) ** 2": "1 / np.cosh(X) ** 2",
    "1 - tanh(X)": "2 / (1 + np.exp(2 * X))",
    "1 + tanh(X)": "2 / (1 + np.exp(-2 * X))",
    # squares and roots
    "mean(X ** 2) - mean(X) ** 2": "np.mean((X - np.mean(X)) ** 2)",
    "sum(X ** 2) - sum(X) ** 2 / Y": "np.sum((X - np.mean(X)) ** 2)",
    "(-B + sqrt(B ** 2 - 4 * A * C)) / (2 * A)": "q / A where B < 0, C / q elsewhere, with "
    "q = -(B + np.copysign(np.sqrt(B ** 2 - 4 * A * C), B)) / 2",
    "(-B - sqrt(B ** 2 - 4 * A * C)) / (2 * A)": "q / A where B > 0, C / q elsewhere, with "
    "q = -(B + np.copysign(np.sqrt(B ** 2 - 4 * A * C), B)) / 2",
    "X / sqrt(sum(X ** 2))": "z / np.sqrt((z**2).sum()) with z = X / np.abs(X).max(), and 0 at 0",
    "X / sqrt(X ** 2 + Y ** 2)": "X / np.hypot(X, Y), and 0 at 0",
    "sqrt(X ** 2 + Y ** 2)": "np.hypot(X, Y)",
    "sqrt(X ** 2 + 1) - 1": "X**2 / (np.hypot(X, 1) + 1)",
    "sqrt(X ** 2 + 1) - X": "1 / (np.hypot(X, 1) + X) where X > 0",
    "sqrt(X ** 2 + 1)": "np.hypot(X, 1)",
    "sqrt(1 + X) - 1": "X / (np.sqrt(1 + X) + 1)",
    "sqrt(1 + X) - sqrt(1 - X)": "2 * X / (np.sqrt(1 + X) + np.sqrt(1 - X))",
    "sqrt(X + A) - sqrt(X)": "A / (np.sqrt(X + A) + np.sqrt(X))",
    "sqrt(X) - sqrt(Y)": "(X - Y) / (np.sqrt(X) + np.sqrt(Y)), with the difference by hand",
    "1 / sqrt(X) - 1 / sqrt(X + A)": "A / (np.sqrt(X * (X + A)) * (np.sqrt(X) + "
    "np.sqrt(X + A)))",
    "cbrt(X + 1) - cbrt(X)": "1 / (np.cbrt(X + 1)**2 + np.cbrt(X + 1) * np.cbrt(X) + "
    "np.cbrt(X)**2)",
    "sqrt(sum(X ** 2))": "s * np.sqrt(((X / s)**2).sum()) with s = np.abs(X).max(), and 0 at 0",
    "X ** 2 - Y ** 2": "(X - Y) * (X + Y)",
    "X ** 2 - 1": "(X - 1) * (X + 1)",
    "1 - X ** 2": "(1 - X) * (1 + X)",
    # angles
    "(1 - cos(X)) / X ** 2": "(np.sin(X / 2) / X) ** 2 * 2, and 1/2 at 0",
    "(1 - cos(X)) / sin(X)": "np.tan(X / 2)",
    "1 - cos(X)": "2 * np.sin(X / 2) ** 2",
    "cos(X) - 1": "-2 * np.sin(X / 2) ** 2",
    "sin(X + A) - sin(X)": "2 * np.cos(X + A / 2) * np.sin(A / 2)",
    "cos(X + A) - cos(X)": "-2 * np.sin(X + A / 2) * np.sin(A / 2)",
    "tan(X + A) - tan(X)": "np.sin(A) / (np.cos(X) * np.cos(X + A))",
    "arctan(X + 1) - arctan(X)": "np.arctan2(1, 1 + X * (X + 1))",
    "1 / X - 1 / tan(X)": "X / 3 + X**3 / 45 near 0",
    "sin(X) - X": "-(X**3) / 6 + X**5 / 120 near 0",
    "X - sin(X)": "X**3 / 6 - X**5 / 120 near 0",
    # fractions
    "1 / (X + 1) - 1 / X": "-1 / (X * (X + 1))",
    "1 / (X + 1) - 2 / X + 1 / (X - 1)": "2 / (X * (X**2 - 1))",
    "1 / X - 1 / Y": "(Y - X) / (X * Y)",
}


@dataclass(frozen=True)
class Term:
    """An expression: an operator or function of other terms, or a name or number without any."""

    head: str
    parts: tuple[Term, ...] = ()
    text: str = field(default="", compare=False)  # as the user wrote it

    def subterms(self) -> Iterator[Term]:
        """Yield the term and all terms in it."""
        yield self
        for part in self.parts:
            yield from part.subterms()


def to_term(node: Any, assigned: dict[str, Any], depth: int = 0) -> Term:
    """Return an expression as a `Term`, with the values of local variables in their place.

    Indices and functions that return the same numbers in another shape are left out.

    Parameters
    ----------
    node : ast.expr
        The expression.
    assigned : dict
        Expressions by the names of the variables that have these values.
    depth : int
        Number of variables that have been replaced already.
    """

    def convert(inner: Any) -> Term:
        return to_term(inner, assigned, depth)

    text = ast.unparse(node)
    head, operands = _head_and_operands(node)
    base = getattr(node, "value", None)
    if isinstance(base, ast.Name) and base.id in assigned:
        return convert(base)  # an entry of a local variable
    if head in TRANSPARENT and operands:
        return convert(operands[0])
    if isinstance(node, ast.Name) and node.id in assigned and depth < MAX_ASSIGNMENTS:
        earlier = {key: assigned[key] for key in assigned if key != node.id}
        return to_term(assigned[node.id], earlier, depth + 1)
    parts = tuple(map(convert, operands))
    if head == "square" or (head == "*" and parts[0] == parts[1]):
        return Term("**", (parts[0], Term("2.0")), text)
    return Term(head, parts, text)


def _head_and_operands(node: Any) -> tuple[str, list[Any]]:
    """Return the operator, function, name or number of an expression, and its operands."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)], [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return "neg", [node.operand]
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name):
        return "copy", [node.value]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return str(float(node.value)), []
    if not isinstance(node, ast.Call):
        return ast.unparse(node), []
    function = node.func
    operands = node.args
    name = getattr(function, "attr", getattr(function, "id", ""))
    owner = ast.unparse(function).rpartition(".")[0]
    is_of_module = re.fullmatch(r"[\w.]+", owner) and owner.split(".")[0] in MODULES
    if owner and not is_of_module:
        operands = [getattr(function, "value", function)]
    if name in ("sum", "mean", "max"):
        operands = operands[:1]
    return BINARY_FUNCTIONS.get(name, name), operands


def matches(
    pattern: Term, term: Term, bound: dict[str, Term]
) -> dict[str, Term] | None:
    """Return what the capital letters of a pattern stand for in a term; None if it differs.

    Parameters
    ----------
    pattern, term : Term
        The terms that are compared.
    bound : dict
        What letters stand for already.
    """
    if len(pattern.head) == 1 and pattern.head.isupper():
        if bound.get(pattern.head, term) != term:
            return None
        return {**bound, pattern.head: term}
    if pattern.head != term.head or len(pattern.parts) != len(term.parts):
        return None
    orders = [term.parts]
    if pattern.head in COMMUTATIVE:
        orders.append(term.parts[::-1])
    for parts in orders:
        letters: dict[str, Term] | None = bound
        for inner, part in zip(pattern.parts, parts, strict=True):
            if letters is not None:
                letters = matches(inner, part, letters)
        if letters is not None:
            return letters
    return None


@cache
def _patterns() -> list[tuple[Term, str]]:
    """Return the formulas of `CURES` as terms, with their cures."""
    return [
        (to_term(ast.parse(formula, mode="eval").body, {}), cure)
        for formula, cure in CURES.items()
    ]


def cure_of(file: str, line: int, position: int) -> str:
    """Return what to write instead of a formula in a line; "" if it holds no formula of `CURES`.

    Parameters
    ----------
    file : str
        The path of the source file.
    line : int
        The number of the line.
    position : int
        Position of the result in a tuple that the line returns; -1 for other lines.
    """
    function, statements = statements_at(file, line)
    assigned = {
        target.id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno <= line
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    nodes = [
        returned_part(statement, position) or statement for statement in statements
    ]
    terms = [
        term
        for node in nodes
        for expression in ast.walk(node)
        if isinstance(expression, ast.expr)
        for term in to_term(expression, assigned).subterms()
    ]
    for pattern, cure in _patterns():
        for term in terms:
            bound = matches(pattern, term, {})
            if bound is None or any(map(_is_shifted, bound.values())):
                continue
            return _substitute(cure, bound)
    return ""


def statements_at(file: str, line: int) -> tuple[ast.AST, list[Any]]:
    """Return the function of a line, or the file's module, and the statements in this line.

    Outside of functions they are the bodies of lambdas, if there are any.

    Parameters
    ----------
    file : str
        The path of the source file.
    line : int
        The number of the line.
    """
    tree = syntax_tree(file)
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    statements: list[Any] = [node for node in nodes if not hasattr(node, "body")]
    lambdas = [
        node.body
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Lambda)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if lambdas and not functions:
        return tree, lambdas
    return [tree, *functions][-1], statements


def returned_part(statement: ast.AST, position: int) -> ast.expr | None:
    """Return the expression at a position of the tuple that a statement returns, or None."""
    if position < 0 or not isinstance(statement, ast.Return):
        return None
    if not isinstance(statement.value, ast.Tuple):
        return None
    return statement.value.elts[position]


def _is_shifted(term: Term) -> bool:
    """Return whether a term has a maximum in it, which its formula has taken off already."""
    return any(inner.head in ("max", "amax") for inner in term.subterms())


def _substitute(cure: str, bound: dict[str, Term]) -> str:
    """Return a cure with the user's expressions in place of its capital letters."""

    def expression(letter: re.Match[str]) -> str:
        text = bound[letter[0]].text
        if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^][]*\])?", text):
            return text
        return f"({text})"

    text = re.sub(r"\b[A-Z]\b", expression, cure)
    return re.sub(r"(\w)\(\(([^()]*)\)\)", r"\1(\2)", text)
