"""A plain installation serves everything below the learners, and says what the learners need."""

import subprocess
import sys

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


def test_the_mathematics_trains_samples_and_is_checked_without_extras():
    done = run("""
import numpy as np
from bbb_numpy.cli.main import main
assert main(["gradcheck", "--plain"]) == 0
rng = np.random.default_rng(0)
model = bbb_numpy.Model(bbb_numpy.MLP((1, 3, 1)))
draws = bbb_numpy.sample(model, np.ones((4, 1)), np.ones((4, 1)), chains=2, draws=5, warm_up=5,
                         groups=2, cores=2, seed=0, progress=False)
assert np.isfinite(draws.positions).all()
import bbb_numpy.training, bbb_numpy.evaluation.predictive, bbb_numpy.plots.fits
import bbb_studies.data.toys, bbb_studies.kebude
""")
    assert done.returncode == 0, done.stderr


def test_whoever_asks_for_what_needs_extras_is_told_in_one_line():
    needs = "the learners need scikit-learn; install it with: pip install 'bbb_numpy[learners]'"
    done = run("bbb_numpy.BayesianMLPRegressor")
    assert done.stderr.splitlines()[-1] == f"ImportError: {needs}"
    done = run("""
from contextlib import suppress
from bbb_numpy.cli.main import main
with suppress(SystemExit):
    main(["--help"])
for name in ("fit", "evaluate", "compare"):
    assert main([name, "rows.csv", "--target", "y"]) == 2
raise SystemExit(main(["predict", "m.npz", "rows.csv"]))
""")
    assert done.returncode == 2, done.stderr
    assert "uci" in done.stdout
    fit, evaluate, compare, predict = done.stderr.splitlines()
    assert fit == f"bbb-numpy fit: {needs}"
    assert evaluate.startswith("bbb-numpy evaluate: ")
    assert predict.startswith("bbb-numpy predict: ")
    assert "[learners]'" in evaluate
    assert "[learners]'" in predict
    assert compare.startswith("bbb-numpy compare: ")
    assert "[uci]'" in compare
