"""What `--help` says of the model's options is what the learners do."""

import argparse
import re
from dataclasses import fields

import pytest

from bbb_numpy import BayesianMLPClassifier, BayesianMLPRegressor
from bbb_numpy.cli.main import main
from bbb_numpy.cli.modelling import SAMPLING_OPTIONS, add_model_options
from bbb_numpy.learners.inference import KERNELS, Sampling, sampler_names
from bbb_numpy.training.schedules import schedule_for

TASKS = ("regression", "classification")
LEARNERS = (BayesianMLPRegressor, BayesianMLPClassifier)


@pytest.fixture
def help_texts():
    """The help of each option, by the name of its argument."""
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    return {action.dest: action.help for action in parser._actions}


def test_help_names_the_defaults_of_training(help_texts):
    numbers, classes = (schedule_for(task, "variational", 512) for task in TASKS)
    epochs = [schedule_for(task, "ivon", 512).epochs for task in TASKS]
    text = f"By default {numbers.epochs}, and {classes.epochs} for classes; with ivon {epochs[0]} "
    assert f"{text}and {epochs[1]}." in help_texts["epochs"]
    assert numbers.batch_size == classes.batch_size
    assert f"By default {numbers.batch_size}, and 32 to 256 on" in help_texts["batch_size"]
    text = f"By default {numbers.samples}, and {classes.samples} for classes; on more than 512 rows"
    assert f"{text} 1 to 4." in help_texts["samples"]
    assert numbers.learning_rate == classes.learning_rate
    text = f"By default {numbers.learning_rate} with adam, and 0.02 where more than 512 rows"
    assert text in help_texts["learning_rate"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n_rows", [513, 4096, 4097, 8192, 8193, 10**6])
def test_help_is_right_of_more_rows(task, n_rows):
    schedule = schedule_for(task, "variational", n_rows)
    assert 32 <= schedule.batch_size <= 256
    assert 1 <= schedule.samples <= 4
    assert schedule.learning_rate == 0.02
    epochs = (200, 1000) if task == "regression" else (100, 100)
    assert epochs[0] <= schedule.epochs <= epochs[1]


def test_help_names_the_defaults_of_the_network(help_texts):
    defaults = [learner().defaults for learner in LEARNERS]
    assert [default["hidden_layer_sizes"] for default in defaults] == [(20,), (50,)]
    assert "By default one layer of 20, and of 50 for classes." in help_texts["hidden"]
    scales = [default["prior"].scale for default in defaults]
    assert f"By default {scales[0]}, and {scales[1]} for classes." in help_texts["prior_scale"]


def test_help_names_the_defaults_of_sampling(help_texts):
    defaults = {field.name: field.default for field in fields(Sampling)}
    assert set(SAMPLING_OPTIONS) < set(defaults)
    for name in ("chains", "draws", "warm_up", "thin"):
        assert f"By default {defaults[name]}." in help_texts[name]
    for name in ("metric", "start"):
        assert f"({defaults[name]}, the default)" in help_texts[name]
    rates = [KERNELS[name].target_accept for name in ("hmc", "nuts", "mams", "chees")]
    assert rates[0] == rates[1]
    text = "By default {1} for hmc and nuts, {2} for mams and {3} for chees".format(*rates)
    assert text in help_texts["target_accept"]


def test_options_stand_in_groups(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    out = capsys.readouterr().out
    assert re.findall(r"^([a-z ]+):$", out, re.MULTILINE) == [
        *("options", "the table", "how the file is written", "the rows that are held out"),
        *("the model", "training", "sampling", "output"),
    ]
    assert f"For --inference {', '.join(sampler_names())} only." in out
