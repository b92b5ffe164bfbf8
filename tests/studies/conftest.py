"""Every progress bar of the studies has to end where it said that it would."""

import io

import pytest
from tqdm import tqdm

import bbb_studies.progress


class Watched(tqdm):
    """A bar that counts though nobody sees it, and objects if its work ends too soon or late."""

    def __init__(self, *args, **options):
        super().__init__(*args, **{**options, "disable": False, "file": io.StringIO()})

    def __exit__(self, kind, error, trace):
        super().__exit__(kind, error, trace)
        if kind is None:
            assert self.n == pytest.approx(self.total), "the bar does not know its end"


@pytest.fixture(autouse=True, scope="module")  # before the fixtures that run whole experiments
def watched_bars():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bbb_studies.progress, "tqdm", Watched)
        yield


@pytest.fixture
def interrupted():
    """A `fit` that Ctrl-C ends at once."""

    def fit(estimator, state, *args, **kwargs):
        state = state.copy()
        state.stopped = "interrupted"
        return state

    return fit
