"""Keep an executor supplied with trials, and survive the death of its workers."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    wait,
)
from typing import Generic, Protocol, TypeVar

from .executors import stop, width, worker_died

__all__ = ["Crew", "ExecutorError"]

BEAT = 1.0  # seconds between movements of the clock
AHEAD = 2  # trials submitted for each that runs, so that no worker waits for the next
RESUME = "what is finished is recorded, the same command goes on from there"


class Keyed(Protocol):
    """What is worked on."""

    @property
    def key(self) -> str:
        """Its name."""


T = TypeVar("T", bound=Keyed)


class ExecutorError(OSError):
    """The executor cannot go on; what is finished is recorded."""


class Crew(Generic[T]):
    """Workers of one run.

    A process pool breaks with the first worker that dies, and does not say what it was doing. So
    all trials in flight are submitted again to a new pool; those that lose a second pool are run
    alone, one by one, and whichever loses its worker twice then is to blame.

    Parameters
    ----------
    executor : Executor, or function that makes one
    task : picklable callable
        From a trial to the text to keep.
    keep : callable
        Called with each finished trial and its text.
    blame : callable
        Called with a trial that took its workers down, and how that was found.
    beat : callable
        Called about once a second.
    """

    def __init__(
        self,
        executor: Executor | Callable[[], Executor],
        task: Callable[[T], str],
        keep: Callable[[T, str], None],
        blame: Callable[[T, str], None],
        beat: Callable[[], object],
    ) -> None:
        self._make = None if isinstance(executor, Executor) else executor
        self._pool = executor if isinstance(executor, Executor) else executor()
        self._task, self._keep, self._blame, self._beat = task, keep, blame, beat
        self._queue: deque[T] = deque()
        self._suspects: deque[T] = deque()
        self._alone = False  # what is in flight is one suspect
        self._flying: dict[Future[str], T] = {}
        self._losses: Counter[str] = Counter()
        self._deaths: Counter[str] = Counter()  # of its worker, while it ran alone

    def work(self, trials: Iterable[T]) -> None:
        """Begin the trials in their order, and return when all are kept or blamed.

        Raises
        ------
        ExecutorError
            If the executor cannot go on.
        KeyboardInterrupt
            On Ctrl-C. What is finished then is kept, the rest cancelled.
        """
        self._queue.extend(trials)
        try:
            while self._queue or self._suspects or self._flying:
                self._submit()
                done, _ = wait(self._flying, BEAT, FIRST_COMPLETED)
                self._beat()
                self._collect(done)
        except BaseException:
            try:
                self._abandon()
            finally:
                if self._make:
                    stop(self._pool)
            raise
        if self._make:
            self._pool.shutdown()

    def _submit(self) -> None:
        if self._suspects:
            if not self._flying:
                self._alone = True
                self._send(self._suspects)
        elif not (self._alone and self._flying):
            self._alone = False
            room = self._room() if self._queue else 0
            for _ in range(min(room, len(self._queue))):
                self._send(self._queue)

    def _room(self) -> int:
        try:
            return AHEAD * width(self._pool) - len(self._flying)
        except OSError as error:  # asked of a cluster
            raise ExecutorError(f"the scheduler is gone; {RESUME}") from error

    def _send(self, line: deque[T]) -> None:
        trial = line.popleft()
        try:
            self._flying[self._pool.submit(self._task, trial)] = trial
        except BrokenExecutor as error:  # between two trials; this one is not to blame
            line.appendleft(trial)
            self._alone = False
            self._replace(error)

    def _collect(self, done: Iterable[Future[str]]) -> None:
        """Keep what is finished, and decide about what is lost."""
        broken: BrokenExecutor | None = None
        for future in list(done):
            trial = self._flying[future]
            try:
                text = future.result()
            except Exception as error:
                if not worker_died(error):
                    raise ExecutorError(
                        f"the executor cannot run {trial.key} ({type(error).__name__}: {error}); "
                        f"{RESUME}"
                    ) from error
                broken = error if isinstance(error, BrokenExecutor) else broken
                self._lose(trial, error)
            else:
                self._keep(trial, text)
            del self._flying[future]  # after it is kept, should Ctrl-C come between
        if broken:
            self._replace(broken)

    def _lose(self, trial: T, error: BaseException) -> None:
        name = type(error).__name__
        several = not isinstance(error, BrokenExecutor)  # dask has tried it on several workers
        self._losses[trial.key] += 1
        self._deaths[trial.key] += self._alone
        if self._alone and (several or self._deaths[trial.key] > 1):
            self._blame(trial, f"{name}: its worker died, again while it ran alone")
        elif self._losses[trial.key] > 1 or several:
            self._suspects.append(trial)
        else:
            self._queue.appendleft(trial)

    def _replace(self, error: BrokenExecutor) -> None:
        """Take what a broken pool still gives, and make another."""
        if self._flying:
            self._collect(wait(self._flying).done)
            return  # which has replaced the pool, unless everything else was finished
        if not self._make:
            raise ExecutorError(
                f"a worker died and its executor broke ({error}); {RESUME}"
            ) from error
        self._pool.shutdown(wait=False)
        self._pool = self._make()
        try:
            self._pool.submit(os.getpid).result()
        except BrokenExecutor as again:
            raise ExecutorError(
                "workers die as soon as they start, before any trial; is the run started under "
                "`if __name__ == '__main__'`, and is there memory left?"
            ) from again

    def _abandon(self) -> None:
        """Keep what has finished meanwhile, cancel the rest."""
        for future, trial in list(self._flying.items()):
            if future.cancel() or not future.done() or future.cancelled():
                continue
            if future.exception() is None:
                self._keep(trial, future.result())
