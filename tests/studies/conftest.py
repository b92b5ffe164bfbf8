"""Every progress bar of the studies has to end where it said that it would; no picture is drawn."""

import io
from functools import cache

import pytest
from matplotlib.figure import Figure
from shortened import not_drawn, shorten

import bbb_studies.progress
from bbb_numpy.progress import tqdm


class Watched(tqdm):
    """A bar that counts though nobody sees it, and objects if its work ends too soon or late."""

    def __init__(self, *args, **options):
        super().__init__(*args, **{**options, "progress": True, "file": io.StringIO()})

    def __exit__(self, error_type, error, trace):
        super().__exit__(error_type, error, trace)
        if error_type is None:
            assert self.n == pytest.approx(self.total), "the bar does not know its end"


SAVEFIG = Figure.savefig


@pytest.fixture(autouse=True, scope="module")  # before the fixtures that run whole experiments
def watched_bars():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bbb_studies.progress, "tqdm", Watched)
        patch.setattr(Figure, "savefig", not_drawn)
        yield


@pytest.fixture
def drawn(monkeypatch):
    """Pictures are drawn after all."""
    monkeypatch.setattr(Figure, "savefig", SAVEFIG)


@pytest.fixture(scope="session")
def short(tmp_path_factory):
    """Return a function from the name of a study to what its shortened run left, made once."""
    return cache(lambda name: shorten(name, tmp_path_factory.mktemp(name) / "new"))


@pytest.fixture
def no_network(monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)


@pytest.fixture
def interrupted():
    """A `fit` that Ctrl-C ends at once."""

    def fit(estimator, state, *args, **kwargs):
        state = state.copy()
        state.stopped = "interrupted"
        return state

    return fit
