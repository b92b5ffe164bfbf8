"""Which line of a gradient that is refuted to look at first (D44).

The function runs once more under `sys.settrace`, which shows what each line writes, and then so
that single results move: theta stands still, and a random direction d_j is added to a result z_j
when its line has run. What a later result z_k does is noted as m_jk = <d_k, (dz_k/dz_j) d_j>, and
what the value does. A result that moves derivatives but not the value belongs to the backward pass.

There g is the cotangent of z if <d, g> = <dV/dz, d>. And if g is the cotangent of a, what is made
of it by the transposed Jacobian of a forward pair b, a is what b gets by way of a: for directions
of equal sizes are the same, and both m are. So parts of sums are known too. What is such a
cotangent, or a sum of them, and of what its name says if there is such a variable (dz, z_grad, ...)
is *cleared*, as are slopes da/dz of the forward pass. One result is looked for by which all wrong
derivatives go, and no other, past all results that are cleared. A line that has written what is
right elsewhere is right; then it is the line that has called it.
"""

from __future__ import annotations

import linecache
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..fields.finite import Field, Prime
from ..structures import copy_leaves
from ..trace.arrays import Exact
from ..trace.copies import Copies, GlobalNames, in_own_context
from ..trace.makers import ACTIVE_FIELD
from ..verdict.errors import WrongDerivative
from ..verdict.runs import ProofProblem, run
from .words import in_words

__all__ = ["explanation"]

Array = NDArray[Any]
Place = tuple[str, int]  # a file and a line
SMALL = 256  # numbers of theta, of which words and a line are looked for
MOST = 600  # results that are looked at
DEPTH, ENTRIES = 3, 1000  # of containers in containers, and in each
SEEDS = 8  # that are tried: of each root half of them lack it
SPECIAL = str(
    Path(np.__path__[0]).with_name("scipy") / "special"
)  # called by ours, too
OTHERS = (np.__path__[0], SPECIAL, str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"),
          "<frozen", "<__")  # fmt: skip
GENERATED = (
    "<string>"  # methods of dataclasses, or all that one wrote and ran as a text
)
# GlobalNames of the cotangent of z: dz, d_z, grad_z, dL_dz, z_grad, ...
COTANGENT = re.compile(
    r"(?:d|g|grad|delta|adj|ct|d[A-Z]_?d)_?(\w+)$|(\w+?)_?(?:grad|bar|adj|ct|delta)$"
)

SLOPE = re.compile(r"slope|deriv|prime|grad|d_")


class Result(NamedTuple):
    """An array that a line has written, or entries of it."""

    places: tuple[Place, ...]  # the line, and those that have called it
    event: int  # so many lines have run before
    way: tuple[Any, ...]  # to the array, from the local variables
    a: Array  # the numbers (n,)
    fresh: Array  # which entries they are
    start: Array | None  # where they are in theta, of which they are a view
    brought: bool = False  # whether other lines have written them, in other places

    @property
    def name(self) -> str:
        """The name of the array."""
        return str(self.way[-1])

    def of(self, names: set[str]) -> str:
        """Return the name of that whose cotangent it is, by its own name; "" if there is none."""
        found = COTANGENT.match(self.name)
        wanted = (found[1] or found[2]) if found else ""
        return wanted if wanted in names else ""


def _entries(value: Any) -> dict[Any, Any]:
    """Return what a value of another kind holds, by names or numbers."""
    if isinstance(value, type | ModuleType) or callable(value):
        return {}
    if isinstance(value, list | tuple):
        return dict(
            zip(getattr(value, "_fields", range(len(value))), value, strict=True)
        )
    held: Any = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return held if len(held) <= ENTRIES else {}


def _inside(
    values: Any, way: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Exact]]:
    """Yield the exact arrays in values by name, each with the way to it."""
    for key, one in list(values.items()):
        if type(one) is Exact:
            yield (*way, key), one
        elif len(way) < DEPTH:
            yield from _inside(_entries(one), (*way, key))


class Watch:
    """Looks whenever a line of a function of the user's, or of those that it calls, has run."""

    def __init__(
        self, field: Field, look: Callable[[FrameType, int, dict[str, Any]], None]
    ) -> None:
        self.field, self.look = field, look
        self.first, self.end = True, ("", 0)  # the line at which it returns
        self.text = False  # whether the function is one of a text
        self.before = sys.gettrace()

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow a function, unless it is NumPy's, Python's or ours, or not of this call."""
        if ACTIVE_FIELD.get() is not self.field:  # an interrupt has left it
            sys.settrace(self.before)
            return None
        file = frame.f_code.co_filename
        self.text = file == GENERATED if self.first else self.text
        if (
            type(frame.f_globals) is not GlobalNames
        ):  # no copy: what listens to the garbage collector
            return None
        if file.startswith(OTHERS) or (file == GENERATED and not self.text):
            return None
        line, first, self.first = frame.f_lineno, self.first, False
        self.look(frame, 0, frame.f_locals)  # what the caller's line has made

        def traced(frame: FrameType, event: str, returned: Any) -> Any:
            nonlocal line
            if event in ("line", "return"):
                more = {"return": returned} if event == "return" else {}
                self.look(frame, line, {**frame.f_locals, **more})
                self.end = (frame.f_code.co_filename, line) if first else self.end
                line = frame.f_lineno
            return traced

        return traced


def _places(frame: FrameType | None, line: int) -> tuple[Place, ...]:
    """Return a line of a function, if it is not 0, and those that have called it."""
    found = list[Place]()
    while frame is not None and not frame.f_code.co_filename.startswith(OTHERS):
        found.append((frame.f_code.co_filename, frame.f_lineno if found else line))
        frame = frame.f_back
    return tuple(found[not line and len(found) > 1 :])


class BatchedPrime(Prime):
    """The integers modulo a prime, with derivatives along C directions at once."""

    n_channels = 64

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return the same random numbers in all lanes."""
        return np.repeat(super().draw(shape), self.n_channels, axis=-1)

    def variable(self, v: Array) -> Array:
        """Return random numbers, and note where they are: theta is drawn last."""
        found = super().variable(v)
        self.places = {
            number: j for j, number in enumerate(found[..., 0].ravel().tolist())
        }
        return found

    def from_integers(self, m: Any) -> Array:
        """Return whole numbers."""
        return np.repeat(super().from_integers(m), self.n_channels, axis=-1)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return products of matrices."""
        return self.sum(self.mul(a[..., None, :], b[..., None, :, :, :]), -3)


class Search:
    """The results of a function at random numbers, and which of them move what."""

    def __init__(
        self, problem: ProofProblem, theta: Array, wrong: Array, seed: int
    ) -> None:
        self.problem, self.theta, self.wrong, self.seed = problem, theta, wrong, seed
        self.field = BatchedPrime(seed)
        self.results: list[Result] = []
        self.numbers, self.names = (
            set[tuple[int, int]](),
            set[str](),
        )  # that have been seen
        self.seen: dict[int, list[tuple[str, Array, Array]]] = {}  # by their sizes
        self.directions: dict[int, Array] = {}

    def direction(self, size: int) -> Array:
        """Return a random direction (n,) for results of so many numbers; 1 for a single one."""
        if size not in self.directions:
            d = self.field.random_function("direction", np.arange(size)[:, None])
            self.directions[size] = d[:, 0] if size > 1 else np.ones(1, np.int64)
        return self.directions[size]

    # --- the results

    def sound(self) -> bool:
        """Note all results; return whether the field knows why the other derivatives are right."""
        along = np.repeat(
            self.direction(self.theta.size)[:, None], BatchedPrime.n_channels, axis=1
        )
        along[:, 0] *= ~self.wrong
        known: dict[FrameType, dict[Any, Any]] = {}
        event = -1

        def look(frame: FrameType, line: int, values: dict[str, Any]) -> None:
            nonlocal event
            event += 1
            before = known.setdefault(frame, {})
            for way, x in _inside(values):
                if x.field is not self.field:  # kept since another run
                    continue
                a, b, every = (
                    x.primal[..., 0],
                    x.tangent[..., 1],
                    np.ones(x.shape, bool),
                )
                memory, old = before.get(way, (None, a))
                here = x.residues.__array_interface__["data"][0], x.shape
                fresh = old != a if memory == here else every
                if not fresh.any():
                    continue
                before[way] = here, a.copy()
                for part in (fresh, every)[: 2 - bool(fresh.all())]:
                    at = [
                        self.field.places.get(number, -1) for number in a[part].tolist()
                    ]
                    start = None if min(at) < 0 else np.array(at)
                    one = Result(_places(frame, line), event, way, a[part], part, start)
                    new, brought = self._is_new(one, b[part])
                    if new:
                        self.results.append(
                            one._replace(brought=brought or part is not fresh)
                        )

        watch = Watch(self.field, look)
        found = run(self.problem, self.theta, self.field, along, watch.called)
        self.end, self.events = watch.end, event
        return not found.excess()[0].any()

    def _is_new(self, one: Result, b: Array) -> tuple[bool, bool]:
        """Return whether there is a new array, and whether it has numbers of earlier ones alone.

        It is none if there was one of the same numbers, but for zeros or a telling name.
        """
        a, of = one.a, one.of(self.names)
        both = [*zip(a.tolist(), b.tolist(), strict=True)]
        same_size, there = self.seen.setdefault(len(a), []), a != 0
        again = [
            name
            for name, c, d in same_size
            if np.array_equal(a, c) and np.array_equal(b, d)
        ]
        masked = (
            any((a[there] == c[there]).all() for _, c, _ in same_size)
            and not there.all()
        )
        brought = (
            self.numbers.issuperset(x for x in both if x[0])
            and not again
            and not masked
        )
        same_size.append((of, a, b))
        self.numbers.update(both)
        self.names.add(one.name)
        return bool(of) and of not in again if again else bool(there.any()), brought

    # --- what moves with them

    def moved(
        self,
        lanes: list[tuple[int, Array]],
        see: Callable[[int, int, Array], None] | None = None,
        cut: frozenset[int] = frozenset(),
    ) -> tuple[Array, Array]:
        """Return what moves with each of some results, while those of `cut` stand still.

        The slope of the value (n,), and whether derivatives do (n, D). `see` gets the number of
        each result, of the first lane, and slopes.
        """
        starts = range(0, max(len(lanes), 1), BatchedPrime.n_channels)
        parts = [
            self._moved(lanes[at : at + BatchedPrime.n_channels], at, see, cut)
            for at in starts
        ]
        value, grad = (np.concatenate(each) for each in zip(*parts, strict=True))
        return value, grad

    def _moved(
        self, lanes: list[tuple[int, Array]], at: int, see: Any, cut: frozenset[int]
    ) -> Any:
        field, event = BatchedPrime(self.seed), -1
        still = np.zeros((self.theta.size, BatchedPrime.n_channels), np.int64)
        for lane, (k, v) in enumerate(lanes):
            if self.results[k].start is not None:
                still[self.results[k].start, lane] = v
        of_event: dict[int, list[tuple[int, Result]]] = {}
        for k, one in enumerate(self.results):
            of_event.setdefault(one.event, []).append((k, one))

        def look(frame: FrameType, line: int, values: dict[str, Any]) -> None:
            nonlocal event
            event += 1
            for k, one in of_event.get(event, ()):
                x: Any = values[one.way[0]]
                for key in one.way[1:]:
                    x = _entries(x)[key]
                b = x.tangent[one.fresh]
                for lane, (j, v) in enumerate(lanes):
                    if j == k and one.start is None:
                        b[:, lane] = field.add(b[:, lane], v)
                x.tangent[one.fresh] = 0 if k in cut else b
                if see:
                    see(k, at, b[:, : len(lanes)])

        found = run(self.problem, self.theta, field, still, Watch(field, look).called)
        if event != self.events:
            raise ValueError("two runs of the same function are different")
        return found.value.tangent[0, : len(lanes)], found.grad.tangent.T[
            : len(lanes)
        ] != 0

    def measure(self) -> None:
        """Move each result along its direction, and note what all others do."""
        field, n, slopes = self.field, len(self.results), list[tuple[int, int, bytes]]()
        sizes = [len(one.a) for one in self.results]
        along = [self.direction(size) for size in sizes]
        over = {size: field.inv(self.direction(size)[:, None]) for size in {*sizes}}
        self.m = np.zeros((n + 1, n + 1), np.int64)  # the last is 1, and the value

        def see(k: int, at: int, b: Array) -> None:
            self.m[at : at + b.shape[1], k] = field.sum(
                field.mul(b, along[k][:, None]), 0
            )
            for lane in range(min(b.shape[1], k - at)):
                if sizes[at + lane] == sizes[k] > 1 and b[:, lane].any():
                    slope = field.mul(b[:, lane : lane + 1], over[sizes[k]])
                    slopes.append((at + lane, k, slope.tobytes()))

        value, self.grad = self.moved([*enumerate(along)], see)
        self.m[:n, n] = value
        self.m[n, :n] = [
            field.sum(field.mul(one.a, d), 0)
            for one, d in zip(self.results, along, strict=True)
        ]
        self.forward = [k for k in range(n) if value[k]]
        self.slopes = {slope for j, k, slope in slopes if value[j] and value[k]}
        self.backward = [
            k for k in range(n)
            if not value[k] and self.results[k].start is None and self.grad[k].any()
        ]  # fmt: skip

    def cotangents(self, known: set[bytes]) -> set[int]:
        """Return the results of the backward pass that are cotangents, or parts of them."""
        results, field, m, n = self.results, self.field, self.m, len(self.results)
        new = [k for k in self.backward if results[k].a.tobytes() not in known]
        names = {results[k].name for k in self.forward}
        sizes = [*(len(one.a) for one in results), 1]
        # forward pairs b, a by sizes and m; what moves the value by way of a number has size 0
        pairs: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for b in self.forward:
            for a in (*(a for a in self.forward if a > b and m[b, a]), n):
                pairs.setdefault((sizes[b], sizes[a], int(m[b, a])), []).append((b, a))
                if sizes[a] == 1:
                    by_way = (
                        m[b, n:] if a == n else field.mul(m[b, a : a + 1], m[a, n:])
                    )
                    pairs.setdefault((sizes[b], 0, int(by_way[0])), []).append((b, n))
        of = {n: {n}}  # results, and whose cotangents they are

        def fits(j: int, k: int) -> set[int]:
            found = pairs.get((sizes[k], sizes[j] if j < n else 0, int(m[j, k])), [])
            told = results[k].of(names)
            return {b for b, a in found if a in of[j] and told in ("", results[b].name)}

        own: dict[tuple[int, int], Array] = {}  # what scales with what

        def see(k: int, at: int, b: Array) -> None:
            own.update(
                {(j, k): b[:, lane] for lane, j in enumerate(new[at : at + b.shape[1]])}
            )

        self.moved([(k, results[k].a) for k in new], see)
        for k in new:
            its, last, made = (
                set(self.forward),
                list[int](),
                np.zeros_like(results[k].a),
            )
            for j in [j for j in reversed(of) if j < n and m[j, k]]:
                if its & fits(j, k) and not m[j, last].any():
                    its, made = its & fits(j, k), field.add(made, own[j, k])
                    last.append(j)
            its = its if last and (made == results[k].a).all() else set()
            if its | fits(n, k):
                of[k] = its | fits(n, k)
        return {*of} - {n}

    # --- where it goes wrong

    def line(self) -> str:
        """Say at which line to look, or nothing."""
        self.measure()
        results, wrong, grad = self.results, self.wrong, self.grad
        known = {results[k].a.tobytes() for k in self.forward} | {
            np.ones(1, np.int64).tobytes()
        }
        slopes = self.slopes | known
        cleared = frozenset(
            k for k in self.backward if results[k].a.tobytes() in slopes
        )
        cleared |= self.cotangents(known)
        left = [k for k in self.backward if k not in cleared and not results[k].brought]
        left = [k for k in left if (grad[k] & wrong).any()]
        lanes = [(k, self.direction(len(results[k].a))) for k in left]
        beside = self.moved(lanes, cut=cleared)[1] & wrong
        right = {
            results[k].places[0]
            for k in self.backward
            if k in cleared or not (grad[k] & wrong).any()
        }
        places: dict[Any, list[int]] = {}
        for k, goes in zip(left, beside, strict=False):
            if goes.any():
                others = (at for at in results[k].places if at not in right)
                places.setdefault(next(others, results[k].places[0]), []).append(k)
        reach = {place: grad[ks].any(axis=0) for place, ks in places.items()}
        found = [place for place in places if (reach[place] >= wrong).all()]
        found = [place for place in found if (reach[place] <= wrong).all()] or found
        by = [k for k in sorted(cleared) if (grad[k] >= wrong).all()]
        if not places:
            last = _told([self.end])
            return f"{last}: what it is made of is right, or missing" if last else ""
        if not found:
            return _told([*(results[k].places[0] for k in by[-1:]), *places][:1])
        # factors stand before a right cotangent: they are seldom what is wrong
        late = [
            at for at in found
            if places[at][0] > min(by, default=0) or SLOPE.match(results[places[at][0]].name)
        ]  # fmt: skip
        found = late or found
        first = results[places[found[0]][0]]
        again = [
            at for at in found
            if at[0] == found[0][0] and results[places[at][0]].way == first.way
        ]  # fmt: skip
        of = first.of({results[k].name for k in self.forward})
        # what is written again was perhaps not finished
        told = (
            f": {first.name} is not the derivative for {of}"
            if of and len(again) == 1
            else ""
        )
        return (_told(again) + told).removeprefix(": ")


def _told(places: list[Place]) -> str:
    source = linecache.getline(*places[-1]).strip() if places else ""
    if not source:
        return ""
    before = "".join(f", then line {line}" for _, line in places[-2::-1])
    file = Path(places[-1][0])
    name = "the cell" if file.parent.name.startswith("ipykernel") else file.name
    return f"look at line {places[-1][1]} of {name}, `{source}`{before}"


def _line(problem: ProofProblem, theta: Array, wrong: Array) -> str:
    for turn in range(SEEDS):
        search = Search(problem, theta, wrong, SEEDS * problem.seed + turn)
        sound = search.sound()
        if len(search.results) > MOST:
            break
        if sound:
            return search.line()
    return ""


def explanation(
    problem: ProofProblem,
    theta: Array,
    errors: Callable[[], tuple[WrongDerivative, ...]],
) -> Callable[[], list[str]]:
    """Return what says why a gradient is refuted; it is found out when it is called first."""
    arguments = copy_leaves(problem.arguments)
    problem, theta = (
        problem._replace(arguments=arguments, copies=Copies()),
        theta.copy(),
    )

    @cache
    @in_own_context
    def explained() -> list[str]:
        if theta.size > SMALL:
            return []
        wrong = errors()
        names = {one.name for one in wrong}
        bad = np.array([problem.name(j) in names for j in range(theta.size)])
        said = in_words(problem, theta, wrong)
        try:
            line = _line(problem, theta, bad) if bad.any() else ""
        except (
            Exception
        ):  # the verdict stands, whatever the function does while it is watched
            line = ""
        return [*said, line] if line else said

    return explained
