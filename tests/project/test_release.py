"""What is said in several files of a release is said once: version, oldest NumPy, oldest Python."""

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

from bbb_numpy.version import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def setup(section, option):
    parser = ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser[section][option]


def workflow(name):
    return yaml.safe_load(text(f".github/workflows/{name}.yml"))


def test_the_citation_and_the_newest_heading_of_the_changes_name_the_version():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["version"] == __version__
    assert citation["license"] == setup("metadata", "license")
    assert re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[0] == __version__


def test_the_oldest_numpy_is_the_same_wherever_it_is_named():
    oldest = re.search(r"numpy>=(\S+)", setup("options", "install_requires"))[1]
    assert f"'numpy=={oldest}.*'" in text(".ci/run")
    assert f"'numpy=={oldest}.*'" in text(".github/workflows/tests.yml")
    assert re.findall(r"numpy >= ([\d.]+\d)", text("README.md")) == [oldest]


def test_the_oldest_python_is_the_same_wherever_it_is_named():
    oldest = setup("options", "python_requires").removeprefix(">=")
    assert workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]["python"][0] == oldest
    assert set(re.findall(r"Python >= ([\d.]+\d)", text("README.md") + text("Makefile"))) == {
        oldest
    }
    ruff = tomllib.loads(text("pyproject.toml"))["tool"]["ruff"]
    assert ruff["target-version"] == f"py{oldest.replace('.', '')}"


def test_only_the_job_that_publishes_may_ask_for_an_identity_and_it_waits_for_the_tests():
    jobs = workflow("publish")["jobs"]
    asks = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    assert asks == ["publish"]
    assert (jobs["publish"]["needs"], jobs["build"]["needs"]) == ("build", "tests")
    assert "id-token" not in workflow("publish")["permissions"]
    assert "secrets." not in text(".github/workflows/publish.yml")
