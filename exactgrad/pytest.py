"""The plugin of pytest: a fixture `assert_proved` (D44).

pytest imports this module, and NumPy and the prover only with the first test that uses the fixture.
"""

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["assert_proved"]


@pytest.fixture(scope="session")
def assert_proved() -> Callable[..., Any]:
    """Return `exactgrad.assert_proved`, which fails with the verdict of `prove`."""
    from .proofs import assert_proved as fails_unless_proved

    return fails_unless_proved
