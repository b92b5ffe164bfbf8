"""One BLAS thread for each test process, and hypothesis profiles.

The profiles differ in how many examples they try: ``check`` few, for what runs before every
commit, ``thorough`` many. ``ci`` tries the same examples on every run, the others new ones.
"""

import os

from hypothesis import HealthCheck, settings

# Read when NumPy is imported, by this process and by those that it starts, such as the kernels of
# the notebooks: workers that start two threads each on two cores wait for each other.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("check", settings.get_profile("default"), max_examples=15)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


def pytest_collection_modifyitems(items):
    """Begin with the notebooks: no worker is left with a long one when all else is done."""
    items.sort(key=lambda item: "test_notebooks" not in item.nodeid)
