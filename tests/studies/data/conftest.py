"""A data folder of its own for each test that asks for one."""

import pytest

from bbb_studies.data.locate import ENVIRONMENT


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    return tmp_path
