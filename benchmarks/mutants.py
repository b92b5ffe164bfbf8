"""Change one thing in a syntax tree: the mutants that `mutation` runs.

Operators, comparisons, constants, signs, conditions, the order of arguments, keywords, axes,
transposes, statements that change an array or call a procedure, and second results. Text is left
alone: docstrings, annotations, messages of errors, f-strings, ``__all__``, decorators, progress
bars; and what says no more than where results go (``out=``) or that lengths agree (``strict=``).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "keyed", "mutants"]


@dataclass(frozen=True)
class Mutant:
    """One change: `holder` gets `new` at `location`, a field or a field and an index."""

    line: int
    function: str
    change: str
    holder: ast.AST
    location: tuple[str, int | None]
    new: ast.AST

    def apply(self) -> None:
        """Change the tree."""
        field, index = self.location
        if index is None:
            setattr(self.holder, field, self.new)
        else:
            getattr(self.holder, field)[index] = self.new


ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
COMMUTATIVE = ("np.add", "np.multiply", "np.maximum", "np.minimum", "np.result_type", "np.allclose",
               "max", "min", "inner",
               "field.add", "field.mul", "self.add", "self.mul", "m", "self._product", "multiply",
               "np.broadcast", "np.broadcast_arrays", "np.broadcast_shapes")  # fmt: skip
SKIPPED_FIELDS = ("annotation", "returns", "decorator_list", "type_params")
IGNORED_KEYWORDS = ("out", "strict")
SKIPPED_FUNCTIONS = ("__repr__", "__str__")


def like(node: Any, **fields: Any) -> Any:
    """Copy a node, with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def constants(value: object) -> Iterator[object]:
    """Yield what may stand in place of a constant."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        if value in (0, 1):
            yield int(value == 0)
        else:
            yield value + 1 if value < 1e15 else value * 2  # to which 1 may be nothing


def changed_expressions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of an expression."""
    match node:
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            yield like(node, op=ARITHMETIC[type(op)]())
        case ast.Compare(ops=[op]):
            for replacement in COMPARISONS[type(op)]:
                yield like(node, ops=[replacement()])
        case ast.Constant(value=value):
            for new in constants(value):
                yield like(node, value=new)
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield operand
        case ast.BoolOp(op=op):
            yield like(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            yield like(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Attribute(attr="T", value=value):
            yield value
        case ast.Call(func=ast.Attribute(attr="swapaxes" | "transpose", value=value), args=args):
            yield args[0] if isinstance(value, ast.Name) and value.id == "np" else value
        case ast.Call(func=function, args=[first, second, *rest]):
            starred = any(isinstance(argument, ast.Starred) for argument in (first, second))
            if not starred and ast.unparse(function) not in COMMUTATIVE:
                yield like(node, args=[second, first, *rest])
    if isinstance(node, ast.Call):
        for index, keyword in enumerate(node.keywords):
            if keyword.arg in IGNORED_KEYWORDS:
                continue  # an out= used by nothing else is a whole statement
            remaining = node.keywords[:index] + node.keywords[index + 1 :]
            yield like(node, keywords=remaining)
            if keyword.arg == "axis":
                is_first = ast.unparse(keyword.value) == "0"
                replacement = like(keyword, value=ast.Constant(-1 if is_first else 0))
                yield like(node, keywords=[*remaining, replacement])


def changed_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a statement."""
    match node:
        case ast.AugAssign(op=op):
            if type(op) in ARITHMETIC:
                yield like(node, op=ARITHMETIC[type(op)]())
            yield ast.Pass()
        case ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()
        case ast.Return(value=ast.Tuple(elts=[first, _, *rest]) as pair):
            nothing = like(pair, elts=[first, ast.Constant(None), *rest])
            yield like(node, value=nothing)
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            yield like(node, test=ast.UnaryOp(ast.Not(), test))


def is_text(node: ast.AST) -> bool:
    """Return whether a node is for readers or type checkers only: no result depends on it."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name):
            return name in SKIPPED_FUNCTIONS
        case ast.keyword(arg=name):
            return name == "strict"
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="bar")))):
            return True
        case ast.Call(func=ast.Name(id="tqdm")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
    return False


def mutants(node: ast.AST, function: str = "") -> Iterator[Mutant]:
    """Yield all mutants of a syntax tree, in the order of its text."""
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or is_text(child):
                continue
            location = field, index if isinstance(value, list) else None
            statement = isinstance(child, ast.stmt)
            for new in changed_statements(child) if statement else changed_expressions(child):
                line: int = child.lineno  # type: ignore[attr-defined]
                yield Mutant(line, function, describe_change(child, new), node, location, new)
            inner = function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".strip(".")
            yield from mutants(child, inner)


def describe_change(old: ast.AST, new: ast.AST) -> str:
    """Describe what changes, each side on one line."""
    if isinstance(old, (ast.If, ast.While)):
        old, new = old.test, new.test  # type: ignore[attr-defined]
    old_text = ast.unparse(old)
    if isinstance(new, ast.Pass):
        return f"removed `{old_text}`"
    return f"`{old_text}` -> `{ast.unparse(new)}`"


def keyed(tree: ast.Module) -> dict[str, Mutant]:
    """Give each mutant a name that outlives a change of line numbers."""
    by_key: dict[str, Mutant] = {}
    for mutant in mutants(tree):
        name = f"{mutant.function or 'module'}: {mutant.change}"
        occurrence = 1
        while (key := name if occurrence == 1 else f"{name} ({occurrence})") in by_key:
            occurrence += 1
        by_key[key] = mutant
    return by_key
