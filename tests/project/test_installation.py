"""A plain installation serves everything below the learners, and says what the learners need."""

import subprocess
import sys

import pytest

PLAIN = """
import sys
for extra in ("sklearn", "scipy", "pandas", "dask", "distributed", "arviz", "threadpoolctl"):
    sys.modules[extra] = None
import bbb_numpy
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAIN + code],
        capture_output=True,
        text=True,
        check=False,
    )


SAMPLES = """
import numpy as np
from bbb_numpy.cli.main import main
assert main("gradcheck --plain --layers {layers}".split()) == 0
model = bbb_numpy.Model(bbb_numpy.MLP((1, 3, 1)))
draws = bbb_numpy.sample(model, np.ones((4, 1)), np.ones((4, 1)), chains=2, draws=5, warm_up=5,
                         groups=2, cores={cores}, seed=0, progress=False)
assert np.isfinite(draws.positions).all()
import bbb_numpy.training, bbb_numpy.evaluation.predictive
"""
IMPORTS = "import bbb_numpy.plots.fits, bbb_studies.data.toys, bbb_studies.kebude"


@pytest.mark.parametrize(
    "code",
    [
        SAMPLES.format(layers="2 1", cores=1),
        pytest.param(SAMPLES.format(layers="3 7 5 2", cores=2) + IMPORTS, marks=pytest.mark.slow),
    ],
    ids=["few", "many"],
)
def test_the_mathematics_trains_samples_and_is_checked_without_extras(code):
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_whoever_asks_for_what_needs_extras_is_told_in_one_line():
    done = run("""
from contextlib import suppress
from bbb_numpy.cli.main import main
with suppress(SystemExit):
    main(["--help"])
for name in ("BayesianMLPRegressor", "BayesianMLPClassifier", "TableEncoder", "load", "save"):
    try:
        getattr(bbb_numpy, name)
    except ImportError as error:
        print(error, file=sys.stderr)
for name in ("fit", "evaluate", "compare"):
    assert main([name, "rows.csv", "--target", "y"]) == 2
raise SystemExit(main(["predict", "m.npz", "rows.csv"]))
""")
    assert done.returncode == 2, done.stderr
    assert "uci" in done.stdout
    needs = "the learners need scikit-learn; install it with: pip install 'bbb_numpy[learners]'"
    assert done.stderr.splitlines()[:6] == [*[needs] * 5, f"bbb-numpy fit: {needs}"]
    for line, (name, extra) in zip(
        done.stderr.splitlines()[6:],
        [("evaluate", "learners"), ("compare", "uci"), ("predict", "learners")],
        strict=True,
    ):
        assert line.startswith(f"bbb-numpy {name}: ")
        assert f"[{extra}]'" in line
