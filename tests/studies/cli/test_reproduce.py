"""`bbb-numpy reproduce` and `report`, typed rightly and wrongly."""

import os
import re
import subprocess
import sys
import types

import pytest

from bbb_numpy.cli.main import main
from bbb_studies.cli import reproduce as repeating

MORE = repeating.STUDIES["powerball"].full
LESS = f"Left out: {repeating.STUDIES['powerball'].quick}."


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        (["krasser", "--out", "there"], "there/krasser.txt",
         "1 times, seed 4\n\nThis is the full run; there is no shorter one.\n"),
        (["powerball"], "reproduced/powerball/powerball.txt",
         f"1 times, seed 4\n\nThis is the usual run; --full: {MORE}.\n"),
        (["powerball", "--quick"], "reproduced/powerball-quick/powerball.txt",
         f"0 times, seed 4\n\nThis is the quick run (--quick), whose numbers are rough. {LESS}\n"),
        (["krasser", "--quick", "--out", "there"], "there/krasser.txt",
         "1 times, seed 4\n\nThis is the full run; there is no shorter one.\n"),
        (["powerball", "--full"], "reproduced/powerball-full/powerball.txt",
         f"9 times, seed 4\n\nThis is the full run (--full): {MORE}.\n"),
    ],
)  # fmt: skip
def test_reproduce_writes_text_and_says_where_and_which_run_it_was(
    words, file, said, tmp_path, capsys, monkeypatch
):
    module = types.SimpleNamespace(
        reproduce=lambda out, seed, repeats=1, progress=None: f"{repeats} times, seed {seed}",
        quick=lambda seed: {"seed": seed, "repeats": 0},
        full=lambda seed: {"seed": seed, "repeats": 9},
    )
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words, "--seed", "4"]) == 0
    assert (tmp_path / file).read_text() == said
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{said}pictures")
    assert re.match(rf"{words[0]} takes (about \d+ (seconds|minutes)|long: )", printed.err)


ONE_THREAD = """
import sys, types
from bbb_studies.cli import reproduce as repeating
from bbb_numpy.cli.main import main

def reproduce(out, seed, progress):
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
    assert all(f"{name}: " in text for name in repeating.TRAINING_SETTINGS)
    assert "plain.py" in text
    assert "--seed SEED of the data, the start and the noise (default: 0)" in text


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["reproduce", "krasser", "--out", str(tmp_path / "taken")]) == 2
    assert "cannot be written to: name a folder" in capsys.readouterr().err


def test_help_has_the_time_of_every_experiment_and_of_its_quick_form(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    _, times = capsys.readouterr().out.split("time on one core")
    rows = dict(line.split(maxsplit=1) for line in times.splitlines()[1:])
    assert rows.keys() == repeating.STUDIES.keys()
    for name, study in repeating.STUDIES.items():
        assert (study.seconds <= 60) or study.quick
        assert study.quick_seconds <= 60
        assert rows[name].endswith("seconds" if study.quick else "-")
