"""`bbb-numpy uci`: records, tables and pictures, or one line that says why not."""

import socket
import subprocess
import sys
from functools import partial

import pytest
from uci_trials import dask, needs_data, recorded, toy, without_time

from bbb_numpy.cli.main import main
from bbb_numpy.numeric.threads import one_blas_thread
from bbb_studies.cli import uci as benchmarking
from bbb_studies.data.locate import ENVIRONMENT
from bbb_studies.uci import gaps, trials, workers
from bbb_studies.uci.trials import METHODS, Trial, measure, settings_for

pytestmark = [dask, pytest.mark.filterwarnings("ignore:.*divergent transitions:UserWarning")]
WRITTEN = {
    *("records", "table.md", "trials.csv"),
    *("scores.png", "calibration.png", "pit.png"),
}


@pytest.fixture
def small(monkeypatch, threads):
    """A small set by any name, and threads, which see it, in place of processes."""
    monkeypatch.setattr(benchmarking.sets, "load", lambda name, splits=None: toy())
    monkeypatch.setattr(trials, "_data", lambda name, splits: toy())
    monkeypatch.setattr(workers, "local", threads)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def uci(out, *words, data=("boston",), method=("map",), splits=2):
    given = ["uci", "--quick", "--data", *data, "--method", *method, "--splits", str(splits)]
    where = [] if "--scheduler" in words else ["--jobs", "2"]
    return main([*given, *where, "--out", str(out), *words])


def one_line(capsys):
    """Return what was said on standard error, if it was one line."""
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("bbb-numpy uci: ")
    return line


def test_a_run_writes_records_tables_and_pictures_and_says_what_it_did(small, out, capsys):
    assert uci(out, method=("map", "mean-field")) == 0
    said = capsys.readouterr()
    assert set(recorded(out)) == {f"boston/{m}/0{k}" for m in ("map", "mean-field") for k in (0, 1)}
    assert {path.name for path in out.iterdir() if not path.name.startswith(".")} == WRITTEN
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert "4 trials measured now" in said.out
    assert "4 of 4 finished, 0 failed" in said.out
    assert str(out) in said.out
    assert said.err == ""
    by_hand = [record["metrics"]["rmse"] for key, record in recorded(out).items() if "map" in key]
    assert f"{sum(by_hand) / 2:.3f}" in said.out
    assert "boston" in (out / "table.md").read_text(encoding="utf-8")
    assert len((out / "trials.csv").read_text(encoding="utf-8").splitlines()) == 1 + 4


def test_other_settings_are_measured_again_and_it_is_said_why(small, no_pictures, out, capsys):
    assert uci(out, splits=1) == 0
    capsys.readouterr()
    assert uci(out, "--units", "7", splits=1) == 0
    said = capsys.readouterr()
    assert "boston/map/00 (units 50, now 7)" in said.err
    assert "1 trials measured now" in said.out
    assert recorded(out)["boston/map/00"]["settings"]["units"] == 7
    text = (out / "table.md").read_text(encoding="utf-8")
    assert f"--units 7 --seed 0 --jobs 2 --quick --out {out}" in text
    assert uci(out, "--no-resume", "--seed", "9", splits=1, data=("protein",)) == 0
    assert "records.previous-2" in capsys.readouterr().err
    ((key, record),) = recorded(out).items()
    quick = settings_for("protein", **(benchmarking.QUICK | {"seed": 9}))
    assert (key, record["settings"]) == ("protein/map/00", vars(quick))
    assert record["seed"] == Trial("protein", "map", 0, quick).seed


@pytest.mark.slow
def test_every_method_runs(small, no_pictures, out):
    assert uci(out, method=tuple(METHODS), splits=1) == 0
    assert len(recorded(out)) == len(METHODS)


def test_gap_splits_have_records_and_a_page_of_their_own(small, out, monkeypatch, capsys):
    data = toy(60)
    monkeypatch.setattr(gaps, "load", lambda name: data)
    monkeypatch.setattr(benchmarking.sets, "load", lambda name: data)
    command = ["uci", "--gap", "--quick", "--data", "yacht", "--method", "map"]
    assert main([*command, "--jobs", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "| yacht | MAP | 3 | " in said
    assert "3 of 3 finished" in said
    assert {path.name for path in (out / "gaps").iterdir()} == {"records", "table.md", "gaps.png"}
    text = (out / "gaps" / "table.md").read_text(encoding="utf-8")
    assert "](gaps.png)" in text
    assert "--gap --quick" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--gap --data protein",
            "--data must be of boston, concrete, energy, yacht with --gap; got protein",
        ),
        ("--gap --splits 3", "--splits none to count"),
        ("--scheduler tcp://127.0.0.1:1 --jobs 2", "--jobs counts processes of this machine"),
    ],
)
def test_what_does_not_go_together_is_said(small, out, capsys, words, message):
    assert main(["uci", *words.split(), "--method", "map", "--out", str(out)]) == 2
    assert message in capsys.readouterr().err


def failing(trial):
    if trial.split == 1:
        raise ArithmeticError("planted")
    return measure(trial)


def test_a_failing_trial_is_named_and_tried_again_when_it_is_asked_for(
    small, no_pictures, out, capsys, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(benchmarking, "measure", failing)
        assert uci(out) == 1
    said = capsys.readouterr()
    assert "--retry-failed" in said.err
    assert "boston, map, split 1: ArithmeticError: planted" in said.out
    assert "1 finished, 1 failed" in (out / "table.md").read_text(encoding="utf-8")
    assert uci(out) == 1  # recorded as failed, and left so
    assert uci(out, "--retry-failed") == 0
    assert "1 trials measured now" in capsys.readouterr().out


# What cannot be done is said in one line, before any work


@pytest.fixture
def idle(monkeypatch):
    """Fails where anything is measured."""
    monkeypatch.setattr(workers, "local", lambda jobs: pytest.fail("began to work"))


@pytest.mark.parametrize("kind", ["unset", "empty"])
def test_missing_data_are_named_with_where_to_get_and_put_them(
    kind, idle, out, tmp_path, capsys, monkeypatch, no_network
):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv(ENVIRONMENT, "" if kind == "unset" else str(tmp_path / "data"))
    assert uci(out) == 2
    line = one_line(capsys)
    put = f"put it at {tmp_path / 'data' / 'boston' / 'boston.csv'}"
    wanted = f"set {ENVIRONMENT}=FOLDER" if kind == "unset" else put
    missing = "boston.csv of the data set 'boston' is missing"
    assert all(part in line for part in (missing, "no network", "StatLib", wanted))
    assert not out.exists()


def test_an_output_that_is_a_file_is_named_and_left_alone(small, idle, out, capsys):
    out.write_text("precious")
    for folder in (out, out / "below"):
        assert uci(folder) == 2
        assert str(folder) in one_line(capsys)
    assert out.read_text() == "precious"


INSTALL = "bbb-numpy uci: it needs dask; pip install 'bbb-numpy[uci]' brings it"


def test_without_the_extra_it_is_said_in_one_line_what_to_install(out, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    for name in ("running", "workers"):  # which import it, and so are imported again
        monkeypatch.delitem(sys.modules, f"bbb_studies.uci.{name}")
        monkeypatch.delattr(f"bbb_studies.uci.{name}")
    assert uci(out) == 2
    assert one_line(capsys) == INSTALL
    assert not out.exists()


@pytest.mark.slow
def test_without_the_extra_nothing_needs_it_sooner(out):
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from bbb_numpy.cli.main import main\n"
        "sys.exit(main(['uci', '--out', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [INSTALL]
    assert not out.exists()


def test_a_scheduler_that_cannot_be_reached_is_named(small, idle, out, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # free again below
    monkeypatch.setattr(workers, "cluster", partial(workers.cluster, timeout=0.5))
    assert uci(out, "--scheduler", f"tcp://127.0.0.1:{port}") == 2
    assert f"no dask scheduler answers at tcp://127.0.0.1:{port}" in one_line(capsys)
    assert uci(out, "--scheduler", "nonsense") == 2
    assert "no dask scheduler answers at nonsense" in one_line(capsys)


@needs_data
@pytest.mark.slow
def test_processes_measure_the_published_set_as_this_process_does(out, capsys):
    assert uci(out, method=("map", "mean-field")) == 0
    assert "4 of 4 finished, 0 failed" in capsys.readouterr().out
    found = recorded(out)
    assert {record["rows"]["train"] for record in found.values()} == {455}
    trial = Trial("boston", "map", 1, settings_for("boston", **benchmarking.QUICK))
    one_blas_thread()
    here = measure(trial)
    assert found[trial.key] | without_time(here) == found[trial.key]
