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


def test_whoever_asks_for_a_learner_without_scikit_learn_is_told_in_one_line():
    done = run("bbb_numpy.BayesianMLPRegressor")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: the learners need scikit-learn; install it with: "
        "pip install 'bbb_numpy[learners]'"
    )
    done = run("""
from bbb_numpy.cli.main import main
raise SystemExit(main(["fit", "rows.csv", "--target", "y"]))
""")
    assert done.returncode == 2
    assert done.stderr == (
        "bbb-numpy fit: the learners need scikit-learn; install it with: "
        "pip install 'bbb_numpy[learners]'\n"
    )


@pytest.mark.parametrize(
    ("command", "extra"),
    [("predict m.npz", "learners"), ("evaluate", "learners"), ("compare", "uci")],
)
def test_every_command_for_tables_says_what_it_needs(command, extra):
    name, *words = command.split()
    words = [*words, "rows.csv"] + ([] if name == "predict" else ["--target", "y"])
    done = run(f"""
from bbb_numpy.cli.main import main
raise SystemExit(main({[name, *words]}))
""")
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"bbb-numpy {name}: ")
    assert f"[{extra}]'" in line


def test_the_help_needs_no_extra():
    done = run("""
from bbb_numpy.cli.main import main
main(["--help"])
""")
    assert done.returncode == 0, done.stderr
    assert "uci" in done.stdout
