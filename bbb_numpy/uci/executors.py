"""Where trials run: processes of this machine, or a dask.distributed cluster.

Each is an ordinary `concurrent.futures.Executor`. A trial gets one BLAS thread everywhere:
workers do not fight for the cores, and a product of matrices is summed in the same order
whatever runs beside it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.context import SpawnContext, SpawnProcess
from signal import SIG_IGN, SIGINT, signal
from typing import Any, ClassVar

from ..numeric.arguments import positive, whole

__all__ = [
    "limit_blas",
    "one_blas_thread",
    "processes",
    "scheduler",
    "stop",
    "usable_cpus",
    "width",
    "worker_died",
]

BLAS_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
environment = threading.Lock()


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker(SpawnProcess):
    """A process that finds BLAS limited to one thread when it imports NumPy."""

    def start(self) -> None:
        with environment:
            before = {name: os.environ.get(name) for name in BLAS_VARIABLES}
            os.environ.update(dict.fromkeys(BLAS_VARIABLES, "1"))
            try:
                super().start()
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value


class _Context(SpawnContext):
    Process: ClassVar[Any] = _Worker


def processes(jobs: int | None = None) -> ProcessPoolExecutor:
    """Return a pool of fresh processes, which import nothing of this one.

    Parameters
    ----------
    jobs : int, optional
        How many; by default one for each usable CPU.
    """
    jobs = usable_cpus() if jobs is None else whole("jobs", jobs, 1)
    return ProcessPoolExecutor(jobs, mp_context=_Context(), initializer=_begin)


def _begin() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal(SIGINT, SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """Exit when the parent is gone, even in the middle of a trial.

    A worker of a killed parent would wait for work for ever: it holds the pipe it reads from.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def limit_blas() -> None:
    """Give this process, a worker, one BLAS thread in each library that is loaded by now.

    Needs threadpoolctl. Workers of `processes`, and of dask with a nanny, have one from the
    beginning.
    """
    with suppress(ImportError):
        import_module("threadpoolctl").threadpool_limits(1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS in this process meanwhile, for executors of threads; needs threadpoolctl."""
    try:
        limits = import_module("threadpoolctl").threadpool_limits(1)
    except ImportError:
        yield
        return
    with limits:
        yield


class _Cluster(Executor):
    """The executor of a dask client, which it closes at the end."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)  # the same trial twice is run twice

    @property
    def _max_workers(self) -> int:  # of the moment: workers come and go
        return sum(self._client.nthreads().values())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait and not cancel_futures)
        self._client.close()


def scheduler(address: str, timeout: float = 5.0) -> Executor:
    """Return an executor that sends trials to a dask.distributed cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, e.g. ``tcp://192.168.0.1:8786``. The workers need bbb_numpy.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    ImportError
        Without dask.distributed.
    ValueError
        If the address is none.
    ConnectionError
        If no scheduler answers there.
    """
    timeout = positive("timeout", timeout)
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise ImportError(
            "a cluster needs dask.distributed: pip install 'bbb-numpy[cluster]'"
        ) from error
    address = address if "://" in address else f"tcp://{address}"
    try:
        host, port = distributed.comm.get_address_host_port(address, strict=True)
    except (TypeError, ValueError):
        raise ValueError(
            f"the scheduler's address must be like tcp://HOST:PORT; got {address!r}"
        ) from None
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)  # dask logs each failed attempt with its stack
    try:
        _probe(host, port, timeout, address.startswith("tls"))
        client = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, AssertionError) as error:  # dask asserts where it should time out
        raise ConnectionError(
            f"no dask scheduler answers at {address} within {timeout:g} s "
            f"({error or type(error).__name__}); start one with `dask scheduler`, or run on this "
            "machine"
        ) from None
    finally:
        log.setLevel(level)
    return _Cluster(client)


def _probe(host: str, port: int, timeout: float, encrypted: bool) -> None:
    """Raise OSError unless something at the port speaks first, as a dask scheduler does.

    A dask client would wait for ever for a server of another kind to answer.
    """
    with socket.create_connection((host, port), timeout) as connection:
        if not encrypted and not connection.recv(1):
            raise ConnectionResetError("it hung up")


def width(executor: Executor) -> int:
    """Return how many trials an executor runs at once, as far as it says."""
    said = getattr(executor, "_max_workers", None)
    return max(said, 1) if isinstance(said, int) else usable_cpus()


def stop(executor: Executor) -> None:
    """End an executor now, with the trials that run in its processes."""
    workers = list((getattr(executor, "_processes", None) or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()


def worker_died(error: BaseException) -> bool:
    """Whether an error of a future says that its worker died, not what the trial raised."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"
