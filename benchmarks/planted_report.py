"""What `planted.py` has pytest do in each run: say at once what became of a test.

A run may be ended from outside, so that a report at the end would be too late.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hypothesis

PACKAGE, REPORT = "PLANTED_PACKAGE", "PLANTED_REPORT"  # what must be tested, and where to report


def pytest_configure(config: Any) -> None:
    """Shrink no failing example: that it fails is enough."""
    hypothesis.settings.register_profile(
        "planted",
        hypothesis.settings.get_profile("check"),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        derandomize=True,
    )
    hypothesis.settings.load_profile("planted")


def pytest_collection_finish(session: Any) -> None:
    """See that the package is the one with the error."""
    import bbb_numpy

    assert Path(bbb_numpy.__file__).parent == Path(os.environ[PACKAGE]), bbb_numpy.__file__


def pytest_runtest_logreport(report: Any) -> None:
    """Write the test and whether it failed; parameters and the tests of a class are one."""
    if report.skipped or (report.when != "call" and not report.failed):
        return
    name = "::".join(report.nodeid.split("[")[0].split("::")[:2])
    with open(os.environ[REPORT], "a", encoding="utf-8") as stream:
        stream.write(json.dumps([name, report.failed]) + "\n")
