"""A pytest plugin with the fixture `assert_proved` (D44).

pytest imports this module when it starts. NumPy and the prover are imported by the first test that
uses the fixture.
"""

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["assert_proved"]


@pytest.fixture(scope="session")
def assert_proved() -> Callable[..., Any]:
    """Return `exactgrad.assert_proved`, which fails a test whose gradient is not proved."""
    from .proofs import assert_proved as fails_unless_proved

    return fails_unless_proved
