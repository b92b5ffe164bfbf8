"""`bbb-numpy reproduce` and `report`, typed rightly and wrongly."""

import os
import re
import subprocess
import sys
import types

import pytest

from bbb_numpy.cli.main import main
from bbb_studies.cli import reproduce as repeating

MORE = "two cross-validations in place of one"


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        (["krasser", "--out", "there"], "there/krasser.txt",
         "1 times, seed 4\n\nThis is the full run; there is no shorter one.\n"),
        (["powerball"], "reproduced/powerball/powerball.txt",
         f"1 times, seed 4\n\nThis is the short run; --full: {MORE}.\n"),
        (["powerball", "--full"], "reproduced/powerball-full/powerball.txt",
         f"9 times, seed 4\n\nThis is the full run (--full): {MORE}.\n"),
    ],
)  # fmt: skip
def test_reproduce_writes_text_and_says_where_and_which_run_it_was(
    words, file, said, tmp_path, capsys, monkeypatch
):
    module = types.SimpleNamespace(
        reproduce=lambda out, seed, repeats=1: f"{repeats} times, seed {seed}",
        full=lambda seed: {"seed": seed, "repeats": 9},
    )
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words, "--seed", "4"]) == 0
    assert (tmp_path / file).read_text() == said
    assert capsys.readouterr().out.startswith(f"{said}pictures")


ONE_THREAD = """
import sys, types
from bbb_studies.cli import reproduce as repeating
from bbb_numpy.cli.main import main

def reproduce(out, seed):
    import scipy.linalg, threadpoolctl  # a BLAS of its own, loaded late
    blas = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return str([pool["num_threads"] for pool in blas])

repeating.import_module = lambda name: types.SimpleNamespace(reproduce=reproduce)
main(["reproduce", "krasser", "--out", sys.argv[1]])
"""


def test_a_study_has_one_blas_thread(tmp_path):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", ONE_THREAD, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    threads = set(re.findall(r"\d+", done.stdout.splitlines()[0]))
    assert threads == {"1"}


def test_the_help_of_report_explains_every_setting_and_says_what_else_is_run(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{name}: " in text for name in repeating.SETTINGS)
    assert "plain.py" in text
    assert "--seed SEED of the data, the start and the noise (default: 0)" in text


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["reproduce", "krasser", "--out", str(tmp_path / "taken")]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err
