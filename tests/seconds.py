"""Processor seconds of each test; under `--seconds` an unmarked test above one second fails.

Counted is what a test takes itself, its processes included: its set-up, its call, and what its own
fixtures do at the end. Not counted are fixtures that several tests share, the first import of a
module, and a full garbage collection, which goes through what all earlier tests have left.

A second is as long as the machine needs for what takes a second on an idle machine of the year
2026 (two cores at about 3 GHz, NumPy 2.4): a reference computation is timed as the run starts, and
again before a test is refused, with a quarter more for cores that are shared. A faster machine has
seconds of one second too.
"""

import gc
import importlib
import os
import statistics
import threading
from contextlib import contextmanager
from os import listdir, times  # by names of this module's own: tests replace those of others
from time import process_time

import numpy as np
import pytest
from budgets import above_seconds, folder, table

LIMIT = 1.0
REFERENCE_S = 0.0105  # of reference(), on the machine described above
BUSY = 1.25  # what other processes on the same cores take from a test, and not from the reference
LISTED = 10  # of the tests above the limit
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # a second, in /proc
ADVICE = "make it smaller, share a fixture of the module or session, or mark it pytest.mark.slow"

OPEN = open


def read(path):
    with OPEN(path, errors="replace") as file:
        return file.read()


def living(pid="self"):
    """Return the seconds of the children alive, on Linux, and of those of theirs that have ended.

    Children that several tests share are so charged to each by what they do for it, not all to
    the test in which they end.
    """
    total = 0.0
    try:
        for task in listdir(f"/proc/{pid}/task"):
            for child in read(f"/proc/{pid}/task/{task}/children").split():
                fields = read(f"/proc/{child}/stat").rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / TICKS + living(child)
    except OSError:  # it has just ended, or this is not Linux
        pass
    return total


def processor_time():
    """Return the seconds of this process and of its children."""
    spent = times()
    return process_time() + spent.children_user + spent.children_system + living()


def reference():
    """Time a fixed mix of Python, small arrays and larger ones, in processor seconds.

    No products of matrices: BLAS may have more threads than the tests give it.
    """
    start = process_time()
    rng = np.random.default_rng(0)
    counts = {}
    for i in range(20_000):
        counts[i % 97, str(i % 11)] = counts.get((i % 89, "0"), 0) + i
    small = rng.standard_normal(16)
    for _ in range(2_000):
        small = np.tanh(small + 0.1).clip(-1.0, 1.0)
    matrix = rng.standard_normal((128, 128)) / 12.0
    for _ in range(10):
        matrix = np.tanh(matrix + matrix.T)
    return process_time() - start


def second():
    """Return how long a second is on this machine now, at least 1."""
    return max(1.0, statistics.median(reference() for _ in range(5)) / REFERENCE_S)


def pytest_addoption(parser):
    parser.addoption(
        "--seconds", action="store_true", help="fail unmarked tests above a second of processor"
    )
    parser.addoption("--second", type=float, default=LIMIT, help="how long that second is")


def pytest_configure(config):
    config.pluginmanager.register(Meter(config), "seconds-meter")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Sums(config), "seconds-sums")


class Meter:
    """Measures the tests of one process, and refuses those above the limit."""

    def __init__(self, config):
        self.refuses = config.getoption("--seconds")
        self.limit = config.getoption("--second")
        self.second = second() if self.refuses else 1.0
        self.spared = 0.0  # processor time that is not charged to a test
        self.nested = 0  # of what is spared, inside of one another
        self.taken = 0.0  # by the present test
        self.started = 0.0
        self.refused = False

    def pytest_sessionstart(self):
        gc.callbacks.append(self.collected)
        self.find_and_load = importlib._bootstrap._find_and_load
        importlib._bootstrap._find_and_load = self.imported

    def pytest_sessionfinish(self):
        importlib._bootstrap._find_and_load = self.find_and_load
        gc.callbacks.remove(self.collected)

    # --- what is spared ---

    @contextmanager
    def sparing(self):
        """Leave out what is done meanwhile by the main thread."""
        if self.nested or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.nested += 1
        start = processor_time()
        try:
            yield
        finally:
            self.spared += processor_time() - start
            self.nested -= 1

    def imported(self, name, import_):
        """Load a module that no test has imported before."""
        with self.sparing():
            return self.find_and_load(name, import_)

    def collected(self, phase, info):
        """Leave out a full collection of garbage, which is called as it starts and as it stops."""
        if info["generation"] < 2 or self.nested:
            return
        if phase == "start":
            self.collection = processor_time()
        else:
            self.spared += processor_time() - self.collection

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope == "function":
            return (yield)
        with self.sparing():
            return (yield)

    # --- what is counted ---

    def clock(self):
        return processor_time() - self.spared

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        self.taken = 0.0
        self.started = self.clock()
        self.refused = False
        try:
            return (yield)
        finally:
            self.taken += self.clock() - self.started

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self):
        self.started = self.clock()
        try:
            return (yield)
        finally:
            self.taken += self.clock() - self.started

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self):
        self.started = self.clock()

    def pytest_fixture_post_finalizer(self, fixturedef):
        """A test's own fixtures end before those that it shares."""
        if fixturedef.scope == "function":
            self.taken += self.clock() - self.started
            self.started = self.clock()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        marked = item.get_closest_marker("slow") is not None
        if call.when == "teardown":
            # in seconds of the reference, for the sum of the folder
            report.user_properties.append(("seconds", [self.taken / self.second, marked]))
        if not report.passed:  # it has another reason to look at
            self.refused = True
        elif self.refuses and not marked and call.when != "setup":
            self.refuse(report)
        return report

    def refuse(self, report):
        """Let a test fail that takes more than a second, however slow the machine is by now."""
        if self.refused or self.taken <= self.limit * self.second:
            return
        allowed = BUSY * self.limit * max(self.second, second())
        if self.taken > allowed:
            self.refused = True
            report.outcome = "failed"
            report.longrepr = (
                f"{self.taken:.2f} s of processor time, more than the {allowed:.2f} s of a test by "
                f"day on this machine now: {ADVICE}"
            )


class Sums:
    """Collects what the tests of all processes took: the dearest, and the sum of each folder."""

    def __init__(self, config):
        self.config = config
        self.taken = {}
        self.folders = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown":
            taken, marked = dict(report.user_properties)["seconds"]
            if not marked:
                self.add(report.nodeid, taken)

    def add(self, test, taken):
        self.taken[test] = taken
        row = folder(test.partition("::")[0])
        if row is not None:
            self.folders[row] = self.folders.get(row, 0.0) + taken

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if not self.config.getoption("--seconds"):
            return
        if above_seconds(self.folders) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.config.args == self.config.getini("testpaths"):  # for `budgets.py --write`
            self.config.cache.set("seconds/folders", self.folders)

    def pytest_terminal_summary(self, terminalreporter):
        dear = sorted(
            ((taken, test) for test, taken in self.taken.items() if taken > LIMIT), reverse=True
        )
        if dear:
            terminalreporter.section(f"unmarked tests above a second: {len(dear)}")
            for taken, test in dear[:LISTED]:
                terminalreporter.write_line(f"{taken:6.2f} s  {test}")
        if not self.config.getoption("--seconds"):
            return
        terminalreporter.section("processor seconds of the unmarked tests, of tests/budgets.toml")
        above = above_seconds(self.folders)
        for name, taken in sorted(self.folders.items()):
            budget = table().get(name, {}).get("seconds", 0)
            remark = "  ABOVE ITS BUDGET" if name in above else ""
            terminalreporter.write_line(f"{taken:6.1f} of {budget:4} s  {name}{remark}")
        terminalreporter.write_line(f"{sum(self.folders.values()):6.1f} s in all")
