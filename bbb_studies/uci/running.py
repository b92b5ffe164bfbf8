"""Run trials on workers, record each as soon as it is finished, skip those recorded.

Nothing here touches a trial's numbers: they depend on the trial alone, not on where it runs, the
number of workers, the order, or what was interrupted when.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from distributed import Client, KilledWorker
from distributed.comm.core import CommClosedError

from bbb_numpy.numeric.threads import one_blas_thread
from bbb_numpy.progress import tqdm
from bbb_numpy.version import __version__

from . import records
from .records import Record, recorded_versions
from .workers import WorkersError, finished

RESUME = "finished trials are recorded, and the same command goes on from there"
Measure = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """The records of a run."""

    records: tuple[Record, ...]  # of the trials that succeeded, in their order
    failed: tuple[Record, ...]  # of the trials that failed
    done: int  # number of trials measured now; the others had been recorded
    messages: tuple[str, ...]  # for a person: what was set aside, and why
    seconds: float

    def summary(self) -> str:
        """Return in words how many trials were measured, finished and failed."""
        count = len(self.records)
        failed = len(self.failed)
        return (
            f"{self.done} trials measured now in {self.seconds:.0f} s, "
            f"{count} of {count + failed} finished, {failed} failed"
        )


def run(
    trials: Iterable[Any],
    out: Path,
    workers: Callable[[], AbstractContextManager[Client]],
    measure: Measure,
    progress: bool | None = None,
    *,
    resume: bool = True,
    retry_failed: bool = False,
) -> Outcome:
    """Measure all trials that are not recorded yet.

    Parameters
    ----------
    trials : iterable
        Frozen dataclasses of text, numbers and further dataclasses, with a ``key`` unlike that of
        any other, and a ``cost``, expected seconds in any unit: the longest begin first, and the
        time left accounts for it.
    out : Path
        Its folder `records` gets a file for each trial; made if missing.
    workers : function that returns a context manager
        Called if there is anything to measure; e.g. ``partial(workers.local, 2)``.
    measure : callable
        From a trial to what is recorded of it, JSON throughout. Must be picklable.
    progress : bool, optional
        Show a bar with the time left; by default only to a person.
    resume : bool
        False sets earlier records aside.
    retry_failed : bool
        Run trials again that are recorded as failed.

    Raises
    ------
    WorkersError
        If the workers cannot go on. Finished trials are recorded.
    KeyboardInterrupt
        On Ctrl-C. Finished trials are recorded, the others cancelled.
    """
    started = perf_counter()
    trial_by_key = {trial.key: trial for trial in trials}
    planned: dict[str, Record] = {
        k: json.loads(json.dumps(asdict(t))) for k, t in trial_by_key.items()
    }
    (out / records.RECORDS_FOLDER).mkdir(parents=True, exist_ok=True)
    recorded, messages = _recorded(out, planned, resume)
    todo = [
        trial
        for key, trial in sorted(trial_by_key.items(), key=lambda item: -item[1].cost)
        if key not in recorded or (retry_failed and recorded[key]["status"] == "failed")
    ]
    with tqdm(
        total=sum(trial.cost for trial in todo),
        bar_format="{percentage:3.0f}%|{bar}| {n:.4g}/{total:.4g} [{elapsed}<{remaining}]",
        smoothing=0,  # several trials may end together, then none for long
        progress=progress,
    ) as bar:
        for message in messages:
            bar.write(message, file=sys.stderr)

        def keep(trial: Any, text: str) -> None:
            key = trial.key
            record = recorded[key] = {
                "key": key,
                **planned[key],
                **json.loads(text),
                **planned[key],
            }
            records.write(out, record)
            if record["status"] == "failed":
                bar.write(f"{key} failed: {record['error']}", file=sys.stderr)
            bar.update(trial.cost)

        if todo:
            with workers() as client:
                _work(client, measure, todo, keep, bar.refresh)
    results = [recorded[key] for key in trial_by_key]
    return Outcome(
        tuple(record for record in results if record["status"] == "ok"),
        tuple(record for record in results if record["status"] == "failed"),
        len(todo),
        tuple(messages),
        perf_counter() - started,
    )


def _work(
    client: Client,
    measure: Measure,
    todo: list[Any],
    keep: Callable[[Any, str], None],
    beat: Callable[[], object],
) -> None:
    """Measure the trials of `todo`, begun in order; call `beat` about once a second."""
    flying = {
        client.submit(attempt, measure, trial, pure=False, priority=-index): trial
        for index, trial in enumerate(todo)
    }
    try:
        while flying:
            for future in finished(client, flying):
                try:
                    text = future.result()
                except KilledWorker:
                    text = json.dumps(
                        _failure("KilledWorker: its worker died, repeatedly", None)
                    )
                except (
                    ImportError,
                    RuntimeError,
                ) as error:  # dask raises them if a worker cannot import the code
                    raise WorkersError(
                        f"a worker cannot run a trial ({type(error).__name__}: {error}); "
                        f"is bbb_numpy installed there? {RESUME}"
                    ) from error
                keep(flying[future], text)
                del flying[future]  # after `keep`, in case Ctrl-C comes between the two
            beat()
    except (CancelledError, CommClosedError) as error:
        raise WorkersError(f"the scheduler is gone; {RESUME}") from error
    except BaseException:
        for future, trial in flying.items():
            if future.status == "finished":
                keep(trial, future.result())
        raise


def _recorded(
    out: Path, planned: Mapping[str, Record], resume: bool
) -> tuple[dict[str, Record], list[str]]:
    """Return what is known of the trials asked for; set aside what does not count, and say so."""
    earlier = sorted((out / records.RECORDS_FOLDER).rglob("*.json"))
    if not resume and earlier:
        return {}, [f"earlier records are kept in {records.set_aside(out, earlier)}"]
    recorded: dict[str, Record] = {}
    set_aside: dict[Path, str] = {}
    for key, plan in planned.items():
        path = records.path_of(out, key)
        if not path.exists():
            continue
        try:
            record = records.parse(path.read_text("utf-8"))
            why = _difference(record, plan)
        except ValueError as error:  # also if it is not UTF-8
            why = f"damaged: {error}"
        if why:
            set_aside[path] = f"{key} ({why})"
        else:
            recorded[key] = record
    if not set_aside:
        return recorded, []
    folder = records.set_aside(out, set_aside)
    return recorded, [
        f"{len(set_aside)} recorded trials do not count and are run again: "
        f"{'; '.join(set_aside.values())}."
        f" Their records are kept in {folder}"
    ]


def _difference(record: Record, planned: Record) -> str:
    """Return in words how a record differs from the planned trial; '' if it does not."""
    pairs = {
        "bbb_numpy": ((record.get("versions") or {}).get("bbb_numpy"), __version__)
    }
    for name, planned_value in planned.items():
        recorded_value = record.get(name)
        if isinstance(planned_value, dict) and isinstance(recorded_value, dict):
            pairs |= {
                part: (recorded_value.get(part), planned_value.get(part))
                for part in {**recorded_value, **planned_value}
            }
        else:
            pairs[name] = (recorded_value, planned_value)
    return ", ".join(f"{name} {a}, now {b}" for name, (a, b) in pairs.items() if a != b)


def attempt(measure: Measure, trial: Any) -> str:
    """Measure one trial in a worker, and return its record as JSON, also if it failed.

    Text always finds its way back; an exception or an array of a trial's own might not.

    Parameters
    ----------
    measure : callable
        From a trial to what is recorded of it.
    trial : Trial
        Any frozen dataclass that `measure` accepts.
    """
    one_blas_thread()  # not undone: a worker may run several trials at a time
    wall = perf_counter()
    cpu = process_time()
    try:
        return json.dumps(
            {**measure(trial), "status": "ok", "error": None}, allow_nan=False
        )
    except Exception as error:
        seconds = {"wall": perf_counter() - wall, "cpu": process_time() - cpu}
        return json.dumps(_failure(f"{type(error).__name__}: {error}", seconds))


def _failure(error: str, seconds: dict[str, float] | None) -> Record:
    unknown = dict.fromkeys(("seed", "chosen", "metrics", "notes", "rows"))
    details = {
        "status": "failed",
        "error": error,
        "seconds": seconds,
        "versions": recorded_versions(),
    }
    return {**unknown, **details}
