"""Small trials of the UCI benchmark, which tests of it share."""

import os

import numpy as np
import pytest

from bbb_studies.data.uci import UCISet, standard_splits
from bbb_studies.uci import records
from bbb_studies.uci.methods import Settings

# dask's own habits, which are none of ours: it leaves sockets and event loops to the collector
dask = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore:.*:pytest.PytestUnraisableExceptionWarning"
)
TINY = Settings(
    **{"units": 4, "samples": 20, "batch_size": 16, "steps": 24, "full_rank_steps": 12},
    **{"renyi_samples": 2, "eubo_samples": 4, "eubo_rows": 30, "eubo_steps": 4, "members": 2},
    **{"chains": 2, "warm_up": 4, "draws": 10, "thin": 1, "start_batch": 16, "start_steps": 8},
    **{"leaps": 4, "depth": 2},
)


def toy(rows=60, seed=5, unit=1.0):
    """Return a small set with standard splits, which nobody can write to."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    y = 3.0 + 2.0 * np.sin(x[:, :1]) + x[:, 1:2] + 0.2 * rng.standard_normal((rows, 1))
    y *= unit
    x.flags.writeable = y.flags.writeable = False
    return UCISet(x, y, standard_splits(rows, 20), ("a", "b", "c", "y"))


def part(dtype="float32", rows=48):
    """Return standardised rows."""
    data = toy(rows)
    y = (data.y - data.y.mean()) / data.y.std()
    x, y = data.x.astype(dtype), y.astype(dtype)
    x.flags.writeable = y.flags.writeable = False
    return x, y


def without_time(record):
    return {name: part for name, part in record.items() if name != "seconds"}


def recorded(out):
    """Return the records of a run's folder by their keys, without times."""
    record_by_key = {record["key"]: record for record in records.read(out / records.RECORDS_FOLDER)}
    return {key: without_time(record_by_key[key]) for key in sorted(record_by_key)}


needs_data = pytest.mark.skipif(
    not os.environ.get("BBB_NUMPY_DATA"), reason="BBB_NUMPY_DATA is not set: no UCI sets"
)
