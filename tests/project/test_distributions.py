"""The archive and the wheel hold what they should, and the wheel works where nothing else is."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from bbb_numpy.version import __version__

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
PACKAGES = ("exactgrad", "bbb_numpy", "bbb_studies", "bbb_course")
LARGEST = 3_000_000  # bytes; the notebooks alone are more
LEFT_BEHIND = (".*", "build", "dist", "*.egg-info", "__pycache__", "report", "reproduced")
EXTRAS = ["sklearn", "scipy", "pandas", "dask", "arviz", "autograd", "hypothesis", "pytest"]

# What a plain installation does: the core that README.md shows, on numbers of its own
CORE = """
import sys
from importlib.util import find_spec

assert not [extra for extra in {extras!r} if find_spec(extra)], "this environment is not bare"

import numpy as np
import bbb_numpy
from bbb_numpy import plain

assert {here!r} in bbb_numpy.__file__, bbb_numpy.__file__
assert bbb_numpy.__version__ == {version!r}
net, rng = (2, 3, 1), np.random.default_rng(0)
theta = plain.init(net, rng)
numbers = dict(net=net, theta=theta, eps=rng.standard_normal((4, len(theta) // 2)),
               x=rng.standard_normal((5, 2)), y=rng.standard_normal((5, 1)),
               prior=0.7, noise=0.3, pi=0.5)
scope = dict(vars(plain), **numbers)
exec({core!r}, scope)
value, gradient = plain.value_and_grad(**numbers)
assert scope["value"] == value
assert (np.concatenate([scope["d_mu"], scope["d_rho"]]) == gradient).all()
checked = bbb_numpy.check(lambda at: plain.value_and_grad(**dict(numbers, theta=at)), theta)
assert checked.error < 1e-12
"""


def run(*command, cwd):
    """Run a command without this process's paths, and show what it said if it fails."""
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The archive, and the wheel that is built from it; nothing is left in the checkout."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    run(sys.executable, "-m", "build", "--outdir", folder, source, cwd=folder)
    name = f"bbb_numpy-{__version__}"
    return folder / f"{name}.tar.gz", folder / f"{name}-py3-none-any.whl"


def files(archive_or_wheel):
    """The names of all files; those of an archive without its first folder."""
    if archive_or_wheel.suffix == ".whl":
        with zipfile.ZipFile(archive_or_wheel) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(archive_or_wheel) as archive:
        return {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}


def sources(folder, pattern="*.py"):
    found = (path.relative_to(ROOT) for path in (ROOT / folder).rglob(pattern) if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def packaged():
    """Every file of the four packages, and the module with the former name of pytest's plugin."""
    files = set().union(*(sources(package, "*") for package in PACKAGES))
    wrapping = {f"{package}/ruff.toml" for package in PACKAGES}  # of a checkout's code
    return files - wrapping | {"bbb_numpy_pytest.py"}


def test_the_wheel_holds_the_packages_and_nothing_else(built):
    found = files(built[1])
    package = {name for name in found if not name.startswith(f"bbb_numpy-{__version__}.dist-info/")}
    assert package == packaged()
    assert f"bbb_numpy-{__version__}.dist-info/licenses/LICENSE" in found


def test_the_archive_holds_packages_tests_and_derivations_and_no_results(built):
    found = files(built[0])
    texts = {path.name for path in ROOT.glob("*.md")}
    made = {"PKG-INFO", *(name for name in found if name.startswith("bbb_numpy.egg-info/"))}
    assert found - made == (
        packaged()
        | sources("tests")
        | sources("tests", "*.npz")
        | sources("tests", "*.json")
        | {"exercises/README.md", "exercises/measure_cards.py"}
        | texts
        | {path.relative_to(ROOT).as_posix() for path in ROOT.glob("d*/*.md")}
        | sources("tests", "former_page.md")
        | {"setup.cfg", "pyproject.toml", "Makefile", "MANIFEST.in", "LICENSE", "CITATION.cff"}
    )
    assert built[0].stat().st_size < LARGEST


def test_the_metadata_pass_the_strict_check(built):
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=built[0].parent)


def test_the_wheel_works_with_the_plain_dependencies_alone(built, tmp_path):
    """Installs NumPy, Matplotlib and tqdm, so pip must be able to find them."""
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    run(python, "-m", "pip", "--disable-pip-version-check", "install", built[1], cwd=tmp_path)
    core = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    here = str(tmp_path / "venv")
    code = CORE.format(extras=EXTRAS, here=here, version=__version__, core=core[1])
    run(python, "-W", "error", "-c", code, cwd=tmp_path)
    said = run(programs / "bbb-numpy", "gradcheck", "--exact", "--plain", cwd=tmp_path)
    assert "every gradient of plain.py is proved\n" in said
    said = run(programs / "bbb-numpy", "grade", "--copy", "exercises", "02", cwd=tmp_path)
    assert "templates written: 6" in said
    where = "import bbb_course; print(bbb_course.__path__[0])"
    solutions = Path(run(python, "-c", where, cwd=tmp_path).strip()) / "solutions"
    [chapter] = solutions.glob("02_*")
    [answer] = chapter.glob("1_*.py")
    shutil.copy(answer, tmp_path / "exercises" / chapter.name)
    said = run(programs / "bbb-numpy", "grade", f"exercises/{chapter.name}/{answer.name}",
               cwd=tmp_path)  # fmt: skip
    assert "1 of 1 pass" in said
    (tmp_path / "square.py").write_text("def square(w):\n    return w @ w, 2 * w\n")
    said = run(programs / "exactgrad", "square.py::square", "--theta", "2", cwd=tmp_path)
    assert said == "proved: all 2 derivatives are exact\n"
    said = run(programs / "bbb-numpy", "prove", "square.py::square", cwd=tmp_path)
    assert said == "proved: all 3 derivatives are exact\n"
    installed = json.loads(run(python, "-m", "pip", "list", "--format", "json", cwd=tmp_path))
    assert {"numpy", "matplotlib", "tqdm"} <= {package["name"] for package in installed}
