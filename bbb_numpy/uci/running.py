"""Run trials on any executor, record each as soon as it is finished, skip those recorded.

Nothing here touches a trial's numbers: they depend on the trial alone, not on the executor, the
number of workers, the order, or what was interrupted when.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ..numeric.arguments import positive
from ..progress import tqdm
from ..version import __version__
from .crew import Crew
from .executors import limit_blas, one_blas_thread
from .journal import Record, open_journal

__all__ = ["Outcome", "Work", "attempt", "run"]


class Work(Protocol):
    """A trial: a frozen dataclass of text, numbers and further dataclasses, with a key."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> str:
        """Its name, unlike that of any other trial of the run."""


T = TypeVar("T", bound=Work)
Measure = Callable[[T], Mapping[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """What a run left."""

    records: tuple[Record, ...]  # of the trials that succeeded, in the order asked for
    failed: tuple[Record, ...]  # of those that failed
    done: int  # trials measured now, others had been recorded
    damaged: tuple[int, ...]  # lines of the record file that could not be read
    messages: tuple[str, ...]  # for a person: what was mended, what does not count
    seconds: float


def run(
    trials: Iterable[T],
    out: Path,
    executor: Executor | Callable[[], Executor],
    measure: Measure[T],
    progress: bool | None = None,
    *,
    resume: bool = True,
    retry_failed: bool = False,
    cost: Callable[[T], float] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Outcome:
    """Measure all trials that are not recorded yet.

    Parameters
    ----------
    trials : iterable of Work
        With different keys.
    out : Path
        Folder of the record file; made if missing.
    executor : Executor, or function that makes one
        Only a function lets the run go on when a worker of a process pool dies. An executor
        made by it is shut down at the end, a given one is not.
    measure : callable
        From a trial to what is recorded of it, JSON throughout. Must be picklable.
    progress : bool, optional
        Show a bar with the time left; by default only to a person.
    resume : bool
        False begins a new record file and keeps an old one beside it.
    retry_failed : bool
        Run trials again that are recorded as failed.
    cost : callable, optional
        Expected seconds of a trial, in any unit: the longest begin first, and the time left
        accounts for it.
    tell : callable, optional
        Gets each message; by default they are printed on stderr.

    Raises
    ------
    BusyError, RecordsError, OSError
        Before any work, if the folder or its file cannot be used.
    ExecutorError
        If the executor cannot go on. Finished trials are recorded.
    KeyboardInterrupt
        On Ctrl-C. Finished trials are recorded, the others cancelled.
    """
    begun = perf_counter()
    wanted: dict[str, T] = {}
    for trial in trials:
        if trial.key in wanted:
            raise ValueError(f"each trial must be given once; got {trial.key} again")
        wanted[trial.key] = trial
    asked = {key: _asked(trial) for key, trial in wanted.items()}
    price = {key: 1.0 if cost is None else positive("cost", cost(t)) for key, t in wanted.items()}
    with open_journal(out, resume) as journal:
        known, other = _recorded(journal.records, asked)
        todo = [
            trial
            for key, trial in sorted(wanted.items(), key=lambda item: -price[item[0]])
            if key not in known or (retry_failed and known[key]["status"] == "failed")
        ]
        messages = list(journal.messages)
        if other:
            messages.append(
                f"{len(other)} recorded trials do not count and are run again: {'; '.join(other)}"
            )
        again = [at.key for at in journal.damaged if at.key in wanted and at.key not in known]
        if again:
            messages.append(f"run again, their records were damaged: {', '.join(again)}")
        with _bar([price[trial.key] for trial in todo], progress, tell) as (bar, say):
            for message in messages:
                say(message)

            def keep(trial: T, text: str) -> None:
                result = json.loads(text)
                record = {"key": trial.key, **asked[trial.key], **result, **asked[trial.key]}
                journal.append(record)
                known[trial.key] = record
                if record["status"] == "failed":
                    say(f"{trial.key} failed: {record['error']}")
                bar.update(price[trial.key])

            def lost(trial: T, why: str) -> None:
                keep(trial, json.dumps(_failure(why, None)))

            if todo:
                with one_blas_thread():
                    Crew(executor, partial(attempt, measure), keep, lost, bar.refresh).work(todo)
    records = [known[key] for key in wanted]
    return Outcome(
        tuple(record for record in records if record["status"] == "ok"),
        tuple(record for record in records if record["status"] == "failed"),
        len(todo),
        tuple(at.line for at in journal.damaged),
        tuple(messages),
        perf_counter() - begun,
    )


def _asked(trial: Work) -> Record:
    """Return what a record must say to be of this trial, as JSON gives it back."""
    fields: Record = json.loads(json.dumps(asdict(trial), allow_nan=False))
    return fields


def _recorded(
    records: Sequence[Record], asked: Mapping[str, Record]
) -> tuple[dict[str, Record], list[str]]:
    """Return what is known of the trials asked for, and why other records do not count.

    Of several records of a trial the last that succeeded counts, else the last.
    """
    known: dict[str, Record] = {}
    other: dict[str, str] = {}
    for record in records:
        key = record["key"]
        if key not in asked:
            continue
        why = _difference(record, asked[key])
        if why:
            other[key] = f"{key} ({why})"
        elif record["status"] == "ok" or known.get(key, record)["status"] != "ok":
            known[key] = record
    return known, [why for key, why in other.items() if key not in known]


def _difference(record: Record, asked: Record) -> str:
    """Say in what a record differs from what is asked for; '' if in nothing."""
    version = (record.get("versions") or {}).get("bbb_numpy")
    pairs = {"bbb_numpy": (version, __version__)}
    for name, now in asked.items():
        then = record.get(name)
        if isinstance(now, dict) and isinstance(then, dict):
            pairs |= {part: (then.get(part), now.get(part)) for part in {**then, **now}}
        else:
            pairs[name] = (then, now)
    return ", ".join(f"{name} {a}, now {b}" for name, (a, b) in pairs.items() if a != b)


@contextmanager
def _bar(
    costs: Sequence[float], progress: bool | None, tell: Callable[[str], None] | None
) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """Yield a bar in units of cost, and how to tell something above it."""
    hidden = None if progress is None else not progress
    layout = "{percentage:3.0f}%|{bar}| {n:.4g}/{total:.4g} [{elapsed}<{remaining}]"
    with tqdm(  # smoothing=0: several trials end together, then none for long
        total=sum(costs), bar_format=layout, smoothing=0, leave=False, disable=hidden
    ) as bar:
        yield bar, tell or (lambda message: bar.write(message, file=sys.stderr))


def attempt(measure: Measure[T], trial: T) -> str:
    """Measure one trial, in a worker, and return its record as JSON, a failed one too.

    Text always finds its way back; an exception or an array of a trial's own might not.
    """
    limit_blas()
    wall, cpu = perf_counter(), process_time()
    try:
        return json.dumps({**measure(trial), "status": "ok", "error": None}, allow_nan=False)
    except Exception as error:
        seconds = {"wall": perf_counter() - wall, "cpu": process_time() - cpu}
        return json.dumps(_failure(f"{type(error).__name__}: {error}", seconds))


def _failure(error: str, seconds: dict[str, float] | None) -> Record:
    unknown = dict.fromkeys(("seed", "chosen", "metrics", "notes", "rows"))
    versions = {
        "bbb_numpy": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    said = {"status": "failed", "error": error, "seconds": seconds, "versions": versions}
    return {**unknown, **said}
