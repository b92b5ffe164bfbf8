"""What the tests of both commands of trials share."""

import pytest
from uci_trials import TINY

from bbb_studies.cli import uci


@pytest.fixture(autouse=True)
def tiny_trials(monkeypatch):
    """Make --quick quicker still."""
    monkeypatch.setattr(uci, "QUICK", {name: getattr(TINY, name) for name in uci.QUICK})


@pytest.fixture
def no_pictures(monkeypatch):
    """None is made of the records, which takes longer than a tiny trial."""
    monkeypatch.setattr("bbb_studies.uci.page._save", lambda out, rows, *draws: None)
