"""What the tests of both commands of trials share."""

from functools import wraps
from types import SimpleNamespace

import pytest


@pytest.fixture
def without_pictures(monkeypatch):
    """Nothing is drawn: pictures take longer than small trials."""
    pictures = pytest.importorskip("bbb_studies.uci.pictures")
    nothing = SimpleNamespace(savefig=lambda path, dpi: None)
    for name in ("scores", "calibration", "pit"):
        draw = getattr(pictures, name)
        monkeypatch.setattr(pictures, name, wraps(draw)(lambda rows: nothing))
