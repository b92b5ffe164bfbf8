"""The plugin of pytest: a fixture `assert_proved` (D44).

It stands beside the package, which is imported by a test that asks for the fixture and by no other.
"""

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["assert_proved"]


@pytest.fixture(scope="session")
def assert_proved() -> Callable[..., Any]:
    """Return `bbb_numpy.exact.assert_proved`, which fails with the verdict of `prove`."""
    from bbb_numpy.exact import assert_proved as asserting

    return asserting
