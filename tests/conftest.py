"""One BLAS thread for each test process, hypothesis profiles, and workers that tests share.

The profiles differ in how many examples they try: ``check`` few, for what runs before every
commit, ``thorough`` many. ``ci`` tries the same examples on every run, the others new ones.
"""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from contextlib import contextmanager, nullcontext

import pytest
from hypothesis import HealthCheck, Phase, find, settings, strategies

# Read when NumPy is imported, by this process and by those that it starts, such as the kernels of
# the notebooks: workers that start two threads each on two cores wait for each other.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# A container may have no home to write to: then the caches of Matplotlib, ArviZ and others, of this
# process and of those that it starts, are in one that ends with it
if os.name == "posix" and not os.access(os.path.expanduser("~"), os.W_OK):
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-of-tests-")
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)
    for _name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ.pop(_name, None)

pytest_plugins = ["seconds"]  # imported, with NumPy, after the lines above

# dask's processes look at themselves, 100 and 50 times a second, and at the machine, twice: of
# clusters that tests share this takes a tenth of a core, for as long as the tests run.
for _name, _value in (
    ("WORKER__PROFILE__ENABLED", "False"),
    ("ADMIN__TICK__INTERVAL", "1s"),
    ("ADMIN__SYSTEM_MONITOR__INTERVAL", "5s"),
):
    os.environ.setdefault(f"DASK_DISTRIBUTED__{_name}", _value)

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
CI = bool(os.environ.get("CI"))  # a gate gives the same answer for the same code
settings.register_profile("check", settings.get_profile("default"), max_examples=15, derandomize=CI)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
# of a mutant the first failing example will do
settings.register_profile(
    "first", settings.get_profile("check"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if CI else "default"))


# A shell's background jobs, and some containers, start with Ctrl-C ignored; children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Spare the garbage collector what reading the tests makes, which lives until their end.

    It would go through these half a million objects again and again: an eighth of all time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # syntax trees of many files live long, too
        gc.enable()


def pytest_collection_modifyitems(items):
    """Begin with the notebooks, so that no worker is left with one; let brief tests be brief."""
    items.sort(key=lambda item: "test_notebooks" not in item.nodeid)
    for item in items:
        if item.get_closest_marker("brief"):  # what a few epochs leave is enough to see
            failed = "ignore::sklearn.exceptions.ConvergenceWarning"
            item.add_marker(pytest.mark.filterwarnings(failed))


@pytest.fixture(scope="session", autouse=True)
def characters():
    """Load Hypothesis's table of all characters, which takes a second in a new checkout."""
    find(strategies.text(), bool)


@pytest.fixture(scope="session")
def arviz():
    """ArviZ, of which the first call takes most of a second: it imports what it computes with."""
    import numpy as np

    from bbb_numpy.evaluation.convergence import import_arviz

    arviz = import_arviz()
    arviz.rhat(np.random.default_rng(0).standard_normal((4, 20)))
    return arviz


@pytest.fixture
def registry():
    """Yield the tables of names, which are restored after the test.

    What the learners derive from the tables is kept until another name is registered, so the
    restoration is written down as a registration.
    """
    from bbb_numpy.registry import FAMILIES, REGISTERED

    tables = [table for entries in FAMILIES.values() for table in (entries.named, entries.checked)]
    copies = [dict(table) for table in tables]
    yield FAMILIES
    for table, copy in zip(tables, copies, strict=True):
        table.clear()
        table.update(copy)
    REGISTERED.append(("", "restored"))


@contextmanager
def in_threads(jobs):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",  # and nothing else listens to other machines
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield lambda *_: nullcontext(client)


@pytest.fixture(scope="session")
def threads():
    """Yield two workers in threads of this process, which see its patches."""
    with in_threads(2) as workers:
        yield workers


@pytest.fixture
def thread():
    """Yield one worker in a thread of this process."""
    with in_threads(1) as workers:
        yield workers


@pytest.fixture(scope="session")
def processes():
    """Yield a process that several tests share: to start it takes longer than most tests."""
    from bbb_studies.uci.workers import local

    with local(1) as client:
        yield lambda *jobs: nullcontext(client)
