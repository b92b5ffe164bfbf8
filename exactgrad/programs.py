"""Programs that a framework has traced, as Python functions with the lines of the user's files.

A reader of a framework, such as `exactgrad.jax`, translates the operations that it finds in a
trace to `Step` objects, each of which applies a function of NumPy arrays. `to_function` writes a
Python function that runs the steps. Its statements have the line numbers, and its code the file
names, of the user's program, so that proofs name these lines without knowing of frameworks. What
a user's function has computed is computed by a function of its own, which is called at the line
from which the user's function was called. If that line assigns to a variable, its last array has
the name of the variable.

>>> import numpy as np
>>> x, y = Variable("x"), Variable()
>>> program = Program((x,), [Step(np.exp, (x,), (y,))], (y, 7))
>>> to_function(program)(0.0)
(np.float64(1.0), 7)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sources import parse, syntax_tree

__all__ = [
    "NO_LINE",
    "Line",
    "Program",
    "Step",
    "Variable",
    "as_written",
    "to_function",
]

Array = NDArray[Any]

Line = tuple[str, int]  # the path of a file and the number of a line in it
# The line of the outermost function, and of steps without lines: it is not the user's
NO_LINE: Line = (__file__, 1)


class Variable:
    """A value that a program takes or computes.

    Parameters
    ----------
    name : str, optional
        The name of an input of the program, an identifier.
    """

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name


class Step(NamedTuple):
    """One operation of a program."""

    # function of the inputs; returns one array, or a sequence unless there is one output
    rule: Callable[..., Any]
    inputs: tuple[Any, ...]  # each a Variable, or a constant of any other type
    outputs: tuple[Variable, ...]
    # the user's line, followed by the lines that called its function
    lines: tuple[Line, ...] = ()
    # where the expression in the user's line begins and ends; (0, 0) if that is not known
    columns: tuple[int, int] = (0, 0)


class Program(NamedTuple):
    """The operations of a function, in the order in which they run."""

    inputs: tuple[Variable, ...]
    steps: Sequence[Step]
    outputs: tuple[Any, ...]  # each a Variable, or a constant of any other type


class Statement(NamedTuple):
    """A line of a function that is written: one step, or the call of a function for several."""

    line: int
    steps: list[Step]
    is_call: bool  # whether the steps have lines of a function that this line calls
    outputs: tuple[Variable, ...]
    needed: dict[Variable, None]  # the variables that are used after this statement

    @property
    def columns(self) -> tuple[int, int]:
        """Where the expression of a step begins and ends in the line; (0, 0) of a call."""
        return (0, 0) if self.is_call else self.steps[0].columns

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The inputs of the step, or the variables that the called function takes."""
        if not self.is_call:
            return self.steps[0].inputs
        computed = {variable for step in self.steps for variable in step.outputs}
        used = _variables(value for step in self.steps for value in step.inputs)
        return tuple(variable for variable in used if variable not in computed)


def as_written(floats: Array, n_bits: int) -> Array:
    """Return floats of fewer digits in float64, as the numbers that one would write for them.

    A float stands for a short decimal that is rounded to it. Floats of half as many binary digits
    as they may have, such as 2**-20, stand for themselves.

    Parameters
    ----------
    floats : ndarray of float16 or float32
        The floats.
    n_bits : int
        The number of binary digits of their dtype in the user's program: 8 for bfloat16, which
        float32 contains.
    """
    exact = floats.astype(float)
    decimals = floats.astype("U32").astype(float)
    fractions, exponents = np.frexp(exact)
    fractions = np.asarray(fractions)
    formats = ("%.3g", "%.2g", "%.1g") if n_bits <= 8 else ()
    for format_string in formats:
        short = np.char.mod(format_string, exact).astype(float)
        with np.errstate(invalid="ignore"):
            is_rounded_to = np.abs(short - exact) < np.ldexp(0.5, exponents - n_bits)
        decimals = np.where(is_rounded_to, short, decimals)
    fractions[~np.isfinite(exact)] = 0.0
    is_short = np.ldexp(fractions, n_bits // 2) % 1 == 0
    return np.where(is_short, exact, decimals)


def to_function(program: Program) -> Callable[..., tuple[Any, ...]]:
    """Return a Python function of the inputs of a program that returns a tuple of its outputs.

    A step without lines gets those of the step before it. A step whose outputs are not used is left
    out.
    """
    writer = Writer()
    steps = list[Step]()
    lines: tuple[Line, ...] = ()
    for step in program.steps:
        lines = step.lines or lines
        first_lines = writer.first_lines(lines)
        columns = step.columns if first_lines == step.lines else (0, 0)
        steps.append(step._replace(lines=(*first_lines, NO_LINE), columns=columns))
    needed = _variables(program.outputs)
    used_steps = list[Step]()
    for step in reversed(steps):
        if not needed.keys().isdisjoint(step.outputs):
            needed |= _variables(step.inputs)
            used_steps.insert(0, step)
    names = {x: x.name or f"_input_{i}" for i, x in enumerate(program.inputs)}
    name = writer.define(used_steps, names, program.outputs, 1)
    function: Callable[..., tuple[Any, ...]] = writer.namespace[name]
    return function


def _variables(values: Iterable[Any]) -> dict[Variable, None]:
    """Return the variables among `values` in their order, as the keys of a dict."""
    return {value: None for value in values if type(value) is Variable}


def _assignments(file: str) -> dict[int, tuple[int, str]]:
    """Return the first line and the variable of the assignment at each line of a file.

    Only assignments to a single name count.
    """
    assignments = {}
    for node in ast.walk(syntax_tree(file)):
        if isinstance(node, ast.Assign):
            target: ast.expr = node.targets[0]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            target = node.target
        else:
            continue
        if isinstance(target, ast.Name):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                assignments[line] = node.lineno, target.id
    return assignments


class Writer:
    """Writes Python functions that run steps, all in one namespace.

    Attributes
    ----------
    namespace : dict
        The global variables of the functions: rules, constants and the functions themselves.
    """

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": "program"}
        self._names: dict[int, str] = {}  # maps the id of a global value to its name
        self._assignments: dict[str, dict[int, tuple[int, str]]] = {}  # by file
        self._n_names = 0

    def _new_name(self) -> str:
        """Return a new name for a local variable, which no other function uses either."""
        self._n_names += 1
        return f"_step_{self._n_names}"

    def first_lines(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """Return `lines` with those inside of an assignment replaced by its first line."""
        for file, _ in lines:
            if file not in self._assignments:
                self._assignments[file] = _assignments(file)
        return tuple(
            (file, self._assignments[file].get(line, (line, ""))[0])
            for file, line in lines
        )

    def _text(self, value: Any, names: dict[Variable, str]) -> str:
        """Return the name of a variable or, added to the namespace, of a constant or a rule."""
        if type(value) is Variable:
            return names[value]
        if id(value) not in self._names:
            self._names[id(value)] = f"_constant_{len(self._names)}"
            self.namespace[self._names[id(value)]] = value
        return self._names[id(value)]

    def _statements(
        self, steps: list[Step], outputs: Iterable[Any], depth: int
    ) -> list[Statement]:
        """Return the statements of the function that `define` adds for the same arguments."""

        def position(step: Step) -> tuple[int, str]:
            called = step.lines[-depth - 1][0] if len(step.lines) > depth else ""
            return step.lines[-depth][1], called

        groups = [(*key, [*group]) for key, group in groupby(steps, position)]
        statements = list[Statement]()
        needed = _variables(outputs)
        for line, called, group in reversed(groups):
            for part in [group] if called else [[step] for step in reversed(group)]:
                results = [x for step in part for x in step.outputs]
                if called:
                    results = [x for x in results if x in needed]
                statement = Statement(line, part, bool(called), (*results,), needed)
                needed = {**needed, **_variables(statement.inputs)}
                statements.insert(0, statement)
        return statements

    def define(
        self,
        steps: list[Step],
        names: dict[Variable, str],
        outputs: Iterable[Any],
        depth: int,
    ) -> str:
        """Add a function that runs `steps` to the namespace, and return its name.

        Parameters
        ----------
        steps : list of Step
            Steps that follow each other and have the same lines but for the first `-depth`.
        names : dict
            The name of each parameter, by the variable that it holds.
        outputs : iterable
            What the function returns, as a tuple.
        depth : int
            Number of functions that are running, this one included.
        """
        file, first_line = steps[0].lines[-depth] if steps else NO_LINE
        parameters = ", ".join(names.values())
        names = names.copy()
        positions = [(first_line, 0, 0)]
        code = list[str]()
        statements = self._statements(steps, outputs, depth)
        for i, statement in enumerate(statements):
            targets = [self._new_name() for _ in statement.outputs]
            function = self._text(statement.steps[0].rule, names)
            if statement.is_call:
                inputs = {x: names[x] for x in statement.inputs}
                function = self.define(
                    statement.steps, inputs, statement.outputs, depth + 1
                )
            call = ", ".join(self._text(x, names) for x in statement.inputs)
            is_last = (
                i + 1 == len(statements) or statements[i + 1].line != statement.line
            )
            _, name = self._assignments.get(file, {}).get(statement.line, (0, ""))
            if name and is_last and len(targets) == 1:
                # the user assigns to this variable again, but its earlier value is still needed
                for variable in [x for x in statement.needed if names.get(x) == name]:
                    names[variable] = self._new_name()
                    code.append(f"{names[variable]} = {name}")
                targets = [name]
            names.update(zip(statement.outputs, targets, strict=True))
            is_array = not statement.is_call and len(targets) == 1
            code.append(
                f"{', '.join(targets)}{',' * (not is_array)} = {function}({call})"
            )
            unused = {names.pop(x) for x in [*names] if x not in statement.needed}
            unused -= set(names.values())
            if unused:
                code.append(f"del {', '.join(sorted(unused))}")
            n_new = len(code) + 1 - len(positions)
            positions += [(statement.line, *statement.columns)] * n_new
        returned = "".join(f"{self._text(x, names)}, " for x in outputs)
        code.append(f"return ({returned})")
        name = f"_function_{len(self.namespace)}"
        self._compile(
            name, f"def {name}({parameters}):", code, [*positions, positions[-1]], file
        )
        return name

    def _compile(
        self,
        name: str,
        header: str,
        code: list[str],
        positions: list[tuple[int, int, int]],
        file: str,
    ) -> None:
        """Add a function to the namespace.

        Parameters
        ----------
        name : str
            Its name.
        header : str
            Its first line of text.
        code : list of str
            Its statements.
        positions : list of tuple of int
            The line that the header and each statement gets, and the columns where it begins and
            ends.
        file : str
            The file that the function is said to stand in.
        """
        tree = parse("\n ".join([header, *code]))
        for node in ast.walk(tree.body[0]):
            if isinstance(node, ast.stmt | ast.expr | ast.arg):
                line, start, stop = positions[node.lineno - 1]
                node.lineno = node.end_lineno = line
                node.col_offset = start
                node.end_col_offset = stop
        module = compile(tree, file, "exec")
        code_objects = [x for x in module.co_consts if type(x) is CodeType]
        # a name in brackets, as that of a lambda, is one that does not stand in the file
        code_object = code_objects[0].replace(co_name="<steps>")
        self.namespace[name] = FunctionType(code_object, self.namespace, name)
