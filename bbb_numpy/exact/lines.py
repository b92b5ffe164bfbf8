"""Which line of a gradient that is refuted to look at first (D44).

The function runs once more under `sys.settrace`, which shows what each line writes, and then so
that single results move: theta stands still, and a random direction d is added to a result z when
its line has run. What the value does is <dV/dz, d>, and what the gradient does says which
derivatives are made of z. A result that moves derivatives but not the value belongs to the backward
pass. It is *cleared* if it is the cotangent of something, <g, d> = <dV/dz, d>, of what its name
says if there is such a variable (dz, z_grad, ...), or a slope da/dz of the forward pass. Where a
result is wrong, so is all that is made of it: one is looked for by which all wrong derivatives go,
and no other, past all results that are cleared.
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

from .arrays import Exact
from .fields import Prime
from .runs import Asked, run
from .trees import copied
from .words import in_words

__all__ = ["explanation"]

Array = NDArray[Any]
SMALL = 256  # numbers of theta, of which words and a line are looked for
MOST = 400  # results that are looked at
DEPTH, ENTRIES = 3, 1000  # of containers in containers, and in each
SEEDS = 8  # that are tried: of each root half of them lack it
OTHERS = (np.__path__[0], str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<frozen",
          "<__")  # fmt: skip
# Names of the cotangent of z: dz, d_z, grad_z, dL_dz, z_grad, ...
COTANGENT = re.compile(
    r"(?:d|g|grad|delta|adj|ct|d[A-Z]_?d)_?(\w+)$|(\w+?)_?(?:grad|bar|adj|ct|delta)$"
)

SLOPE = re.compile(r"slope|deriv|prime|grad|d_")


class Result(NamedTuple):
    """What a line has written: `fresh` entries of an array."""

    place: tuple[str, int]
    name: str
    x: Exact
    fresh: Array

    @property
    def size(self) -> int:
        """So many numbers have been written."""
        return int(self.fresh.sum())

    @property
    def flat(self) -> Array:
        """The numbers (n,)."""
        return self.x.a[self.fresh][:, 0]

    def is_written_by(self, later: Result) -> bool:
        """Return whether another result is the same array, or has the same name."""
        memory = [one.x.r.__array_interface__["data"][0] for one in (self, later)]
        return memory[0] == memory[1] or (self.place[0], self.name) == (later.place[0], later.name)

    def of(self, names: set[str]) -> str:
        """Return the name of that whose cotangent it is, by its own name; "" if there is none."""
        found = COTANGENT.match(self.name)
        wanted = (found[1] or found[2]) if found else ""
        return wanted if wanted in names else ""


def _inside(name: str, value: Any, depth: int = DEPTH) -> Iterator[tuple[str, str, Exact]]:
    """Yield the exact arrays in a value, each with the way to it and its last name."""
    if type(value) is Exact:
        if value.r.flags.writeable:
            yield name, name.rpartition(".")[2], value
    elif depth and not isinstance(value, type | ModuleType) and not callable(value):
        entries: Any = getattr(value, "__dict__", {})
        if isinstance(value, list | tuple):
            entries = dict(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
        elif isinstance(value, dict):
            entries = value
        for key, one in list(entries.items()) if len(entries) <= ENTRIES else ():
            yield from _inside(f"{name}.{key}", one, depth - 1)


class Watch:
    """Shows the results of each line of a function of the user's, and of those that it calls."""

    def __init__(self, show: Callable[[list[Result]], None]) -> None:
        self.show = show
        self.end = ("", 0)  # the line at which it returns
        self.known: dict[FrameType, dict[str, tuple[Any, Array]]] = {}
        self.numbers, self.names = {0}, set[str]()  # that have been seen
        self.seen: dict[int, list[tuple[str, Array]]] = {}  # by their sizes

    def __enter__(self) -> Watch:
        self.before = sys.gettrace()
        sys.settrace(self.called)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.settrace(self.before)

    def called(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow a function, unless it is NumPy's, Python's or ours."""
        if frame.f_code.co_filename.startswith(OTHERS):
            return None
        line, first = frame.f_lineno, not self.known
        self.known[frame] = {}
        self._look(frame, line, frame.f_locals, first)

        def traced(frame: FrameType, event: str, returned: Any) -> Any:
            nonlocal line
            if event in ("line", "return"):
                more = {"return": returned} if event == "return" else {}
                self._look(frame, line, {**frame.f_locals, **more}, True)
                self.end = (frame.f_code.co_filename, line) if first else self.end
                line = frame.f_lineno
            return traced

        return traced

    def _look(self, frame: FrameType, line: int, values: dict[str, Any], show: bool) -> None:
        known, results = self.known[frame], []
        for way, name, x in (one for key in values for one in _inside(key, values[key])):
            memory, before = known.get(way, (None, x.a))
            here = x.r.__array_interface__["data"][0], x.shape
            fresh = (before != x.a).any(axis=-1) if memory == here else np.ones_like(x.v, bool)
            if fresh.any():
                known[way] = here, x.a.copy()
                result = Result((frame.f_code.co_filename, line), name, x, fresh)
                results += [result] if self._is_new(result) else []
        if show and results:
            self.show(results)

    def _is_new(self, result: Result) -> bool:
        """Return whether there are other numbers, or zeros in place of some, or a telling name.

        What only brings numbers to another place is none.
        """
        a, of = result.flat, result.of(self.names)
        same_size, there = self.seen.setdefault(len(a), []), a != 0
        new = not self.numbers.issuperset(a.tolist())
        new |= not there.all() and any((a[there] == b[there]).all() for _, b in same_size)
        again = [name for name, b in same_size if np.array_equal(a, b)]
        new = bool(of) and of not in again if again else new
        same_size.append((of, a))
        self.numbers.update(a.tolist())
        self.names.add(result.name)
        return new


class Lanes(Prime):
    """The integers modulo a prime, with derivatives along C directions at once."""

    C = 32

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Return the same random numbers in all lanes."""
        return np.repeat(super().draw(shape), self.C, axis=-1)

    def whole(self, m: Any) -> Array:
        """Return whole numbers."""
        return np.repeat(super().whole(m), self.C, axis=-1)

    def matmul(self, a: Array, b: Array) -> Array:
        """Return products of matrices."""
        return self.sum(self.mul(a[..., None, :], b[..., None, :, :, :]), -3)


class Search:
    """The results of a function at random numbers, and which of them move what."""

    def __init__(self, asked: Asked, theta: Array, wrong: Array, seed: int) -> None:
        self.asked, self.theta, self.wrong, self.seed = asked, theta, wrong, seed
        self.field = Lanes(seed)
        self.results: list[Result] = []
        self.flat: list[Array] = []
        self.slopes: list[tuple[int, int, bytes]] = []  # of a result by an earlier one

    def direction(self, size: int) -> Array:
        """Return a random direction (n, 1) for results of so many numbers."""
        return self.field.random_function("direction", np.arange(size)[:, None])

    def sound(self) -> bool:
        """Note all results; return whether the field knows why the other derivatives are right."""
        right = np.repeat(~self.wrong[:, None] * self.direction(self.theta.size), Lanes.C, axis=1)

        def note(results: list[Result]) -> None:
            self.results += results
            self.flat += [one.flat for one in results]

        with Watch(note) as watch:
            found = run(self.asked, self.theta, self.field, right)
        self.end = watch.end
        return not found.excess().any()

    def gradient(self) -> bytes:
        """Return the right gradient."""
        parts = []
        for at in range(0, self.theta.size, Lanes.C):
            along = np.eye(self.theta.size, Lanes.C, -at, dtype=np.int64)
            parts.append(run(self.asked, self.theta, Lanes(self.seed), along).value.b[0])
        return np.concatenate(parts)[: self.theta.size].tobytes()

    def moved(self, which: list[int], cut: frozenset[int] = frozenset()) -> tuple[Array, Array]:
        """Return what moves with each of some results, while those of `cut` stand still.

        The slope of the value (n,), and whether derivatives do (n, D).
        """
        starts = range(0, max(len(which), 1), Lanes.C)
        parts = [self._moved(which[at : at + Lanes.C], cut) for at in starts]
        value, grad = (np.concatenate(each) for each in zip(*parts, strict=True))
        return value, grad

    def _moved(self, which: list[int], cut: frozenset[int]) -> tuple[Array, Array]:
        field, lanes, count = Lanes(self.seed), {k: lane for lane, k in enumerate(which)}, 0
        over = {len(self.flat[k]): field.inv(self.direction(len(self.flat[k]))) for k in which}

        def show(results: list[Result]) -> None:
            nonlocal count
            numbered = [(k, one.x.r[..., 1, :], one) for k, one in enumerate(results, count)]
            count += len(results)
            for k, b, one in numbered:
                if k in lanes:
                    part, lane = b[one.fresh], slice(lanes[k], lanes[k] + 1)
                    part[:, lane] = field.add(part[:, lane], self.direction(len(part)))
                    b[one.fresh] = part
            for k, b, one in numbered:
                if k in cut:
                    b[one.fresh] = 0
                elif not cut and one.size in over and b.any():
                    slope = field.mul(b[one.fresh], over[one.size])
                    earlier = [(j, lane) for j, lane in lanes.items() if j < k]
                    self.slopes += [(j, k, slope[:, lane].tobytes()) for j, lane in earlier]

        with Watch(show):
            still = np.zeros((self.theta.size, Lanes.C), np.int64)
            found = run(self.asked, self.theta, field, still)
        if count != len(self.results):
            raise ValueError("two runs of the same function are different")
        return found.value.b[0, : len(which)], found.grad.b.T[: len(which)] != 0

    def line(self) -> str:
        """Say at which line to look, or nothing."""
        every, results, wrong = list(range(len(self.results))), self.results, self.wrong
        value, grad = self.moved(every)
        forward = [k for k in every if value[k]]
        names = {results[k].name for k in forward}
        products = (self.field.mul(x[:, None], self.direction(len(x))) for x in self.flat)
        sums = [int(self.field.sum(product, 0)[0]) for product in products]

        gradient = self.gradient()
        slopes = {slope for j, k, slope in self.slopes if value[j] and value[k]}

        def right(k: int) -> bool:
            of, numbers = results[k].of(names), self.flat[k].tobytes()
            if numbers in gradient or (results[k].size > 1 and numbers in slopes):
                return True
            return any(
                value[z] == sums[k]
                and results[z].size == results[k].size
                and of in ("", results[z].name)
                for z in forward
            )

        backward = [k for k in every if not value[k] and self.flat[k].any() and grad[k].any()]
        cleared = frozenset(k for k in backward if right(k))
        left = [k for k in backward if k not in cleared and (grad[k] & wrong).any()]
        beside = self.moved(left, cleared)[1] & wrong
        places: dict[Any, list[int]] = {}
        for k, goes in zip(left, beside, strict=False):
            if goes.any():
                places.setdefault(results[k].place, []).append(k)
        reach = {place: grad[ks].any(axis=0) for place, ks in places.items()}
        found = [place for place in places if (reach[place] >= wrong).all()]
        found = [place for place in found if (reach[place] <= wrong).all()] or found
        if not places:
            return f"{_told([self.end])}: what it is made of is right, or missing"
        if not found:
            last = [results[k].place for k in sorted(cleared) if (grad[k] >= wrong).all()][-1:]
            return _told([*last, *places][:1])
        # factors stand before a right cotangent: they are seldom what is wrong
        begun = min((k for k in cleared if (grad[k] >= wrong).all()), default=0)
        late = [
            at for at in found if places[at][0] > begun or SLOPE.match(results[places[at][0]].name)
        ]
        found = late or found
        first = results[places[found[0]][0]]
        again = [at for at in found if first.is_written_by(results[places[at][0]])]
        of = first.of(names)  # what is written again was perhaps not finished
        told = f": {first.name} is not the derivative for {of}" if of and len(again) == 1 else ""
        return (_told(again) + told).removeprefix(": ")


def _told(places: list[tuple[str, int]]) -> str:
    source = linecache.getline(*places[-1]).strip() if places else ""
    if not source:
        return ""
    before = "".join(f", then line {line}" for _, line in places[-2::-1])
    file = Path(places[-1][0])
    name = "the cell" if file.parent.name.startswith("ipykernel") else file.name
    return f"look at line {places[-1][1]} of {name}, `{source}`{before}"


def _line(asked: Asked, theta: Array, wrong: Array) -> str:
    for turn in range(SEEDS):
        search = Search(asked, theta, wrong, SEEDS * asked.seed + turn)
        sound = search.sound()
        if len(search.results) > MOST:
            break
        if sound:
            return search.line()
    return ""


def explanation(asked: Asked, theta: Array, wrong: tuple[Any, ...]) -> Callable[[], list[str]]:
    """Return what says why a gradient is refuted; it is found out when it is called first."""
    asked, theta = asked._replace(arguments=copied(asked.arguments)), theta.copy()

    @cache
    def explained() -> list[str]:
        if theta.size > SMALL:
            return []
        names = {one.name for one in wrong}
        bad = np.array([asked.name(j) in names for j in range(theta.size)])
        said = in_words(asked, theta, wrong)
        try:
            line = _line(asked, theta, bad) if bad.any() else ""
        except Exception:  # the verdict stands, whatever the function does while it is watched
            line = ""
        return [*said, line] if line else said

    return explained
