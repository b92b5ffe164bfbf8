"""Workers of dask.distributed, one BLAS thread each: processes of this machine, or a cluster.

dask sends work to them, starts processes anew that died and does their work again. A product of
matrices is summed in the same order whatever runs beside it, since no worker has a second thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from signal import SIG_IGN, SIGINT, signal
from threading import RLock, current_thread, main_thread
from typing import Any

import dask.config
import threadpoolctl  # noqa: F401  numeric.threads does nothing without it
from distributed import Client, Future, LocalCluster, Worker, WorkerPlugin, wait
from distributed.utils import silence_logging_cmgr

from bbb_numpy.numeric.processes import starting_processes
from bbb_numpy.progress import tqdm
from bbb_studies.threads import ONE_THREAD

LOCALHOST = "127.0.0.1"  # the address that only this machine reaches
POLL_INTERVAL_S = 1.0  # seconds between updates of the progress bar
DASK_SETTINGS = {
    "distributed.scheduler.allowed-failures": 1,  # a worker that dies twice is no accident
    # No worker keeps work in its queue that another could do.
    "distributed.scheduler.worker-saturation": 1.0,
    # It replaces Dask's own environment, which limits malloc so that every array of 128 kB and more
    # is requested from the system: that costs a fifth of the training of 22,201 weights.
    "distributed.nanny.pre-spawn-environ": dict(ONE_THREAD),
}


class WorkersError(OSError):
    """The workers cannot go on; finished trials are recorded."""


class _EndQuietly(WorkerPlugin):
    """Let workers ignore Ctrl-C, which reaches all processes; the parent ends them.

    A worker that is ended so would leave the semaphore of tqdm, of which Python would warn.
    """

    def setup(self, worker: Worker) -> None:
        signal(SIGINT, SIG_IGN)
        tqdm.set_lock(RLock())


@contextmanager
def local(jobs: int | None = None) -> Iterator[Client]:
    """Start worker processes on this machine, which end with the block.

    They cannot be reached from another machine.

    Parameters
    ----------
    jobs : int, optional
        Number of processes; by default one for each usable CPU.
    """
    with (
        dask.config.set(DASK_SETTINGS),
        _interrupts_put_off() as heard,
        ExitStack() as stack,
    ):
        with starting_processes():
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    processes=True,
                    host=LOCALHOST,
                    # Any free port, since the dashboard is not used.
                    dashboard_address=f"{LOCALHOST}:0",
                    scheduler_kwargs={"dashboard": False},
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(Client(cluster, set_as_default=False))
        client.register_plugin(_EndQuietly())
        try:
            with heard():
                yield client
        except BaseException:
            cluster.sync(_stop, cluster)
            raise


@contextmanager
def _interrupts_put_off() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Delay Ctrl-C to the end of the block, or to an inner block of what this yields.

    Dask that is interrupted while it starts or ends processes leaves them, and its tracebacks.
    """
    if current_thread() is not main_thread():  # only the main thread handles signals
        yield nullcontext
        return
    pressed: list[int] = []
    former_handler: Any = signal(SIGINT, lambda number, _: pressed.append(number))

    @contextmanager
    def heard() -> Iterator[None]:
        put_off: Any = signal(SIGINT, former_handler)
        try:
            if pressed:
                raise KeyboardInterrupt
            yield
        finally:
            signal(SIGINT, put_off)

    try:
        yield heard
    finally:
        signal(SIGINT, former_handler)
    if pressed:
        raise KeyboardInterrupt


async def _stop(cluster: LocalCluster) -> None:
    """Kill workers that are busy; dask would wait for them for seconds."""
    nannies = list(cluster.workers.values())
    closing = asyncio.gather(*(nanny.close() for nanny in nannies))
    await asyncio.sleep(0.1)  # after this the nannies start no new process
    for nanny in nannies:
        if nanny.process is not None and nanny.process.process is not None:
            await nanny.process.process.kill()
    await closing


@contextmanager
def cluster(address: str, timeout: float = 5.0) -> Iterator[Client]:
    """Connect to a dask cluster that is already running; its workers need bbb_numpy.

    Parameters
    ----------
    address : str
        Of the scheduler, e.g. ``tcp://192.168.0.1:8786``.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    ConnectionError
        If no scheduler answers.
    """
    # dask logs each failed attempt with its stack
    with silence_logging_cmgr(logging.CRITICAL):
        try:
            client = Client(address, timeout=timeout, set_as_default=False)
        except (OSError, ValueError, TypeError, AssertionError) as error:
            raise ConnectionError(
                f"no dask scheduler answers at {address} ({error or type(error).__name__}); give "
                "tcp://HOST:PORT, start one with `dask scheduler`, or run on this machine"
            ) from None
        with client:
            yield client


def finished(client: Client, futures: Iterable[Future[Any]]) -> Iterable[Future[Any]]:
    """Return the futures that are finished, after a wait of at most `POLL_INTERVAL_S` seconds.

    Parameters
    ----------
    client : Client
        Their client.
    futures : iterable of Future
        Who keeps a future keeps its work from release.
    """
    with client.as_current(), suppress(TimeoutError):
        return wait(list(futures), POLL_INTERVAL_S, "FIRST_COMPLETED").done
    return ()
