"""`bbb_numpy.gradients.estimator` by its name of before; it goes with version 0.2."""

from __future__ import annotations

from ..numeric.deprecation import renamed_names

__getattr__ = renamed_names(
    "bbb_numpy.gradients.estimator",
    {
        "Family": "GradientEstimator",
        **{name: name for name in ("Batch", "Evaluated", "Step", "is_linear")},
    },
)
