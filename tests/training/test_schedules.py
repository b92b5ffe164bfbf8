"""schedules: every task and inference has one schedule for any number of rows."""

from itertools import pairwise

import pytest

from bbb_numpy.training.schedules import INFERENCES, SCHEDULES, schedule_for, schedule_table

pytestmark = pytest.mark.brief
TASKS = ("regression", "classification")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("inference", INFERENCES)
def test_rows_of_the_table_go_from_few_rows_to_any_number(task, inference):
    rows = [row for row in SCHEDULES if row.task in (task, "any") and inference in row.inferences]
    *limits, last = [row.max_rows for row in rows]
    assert last is None
    assert all(few < many for few, many in pairwise(limits))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("n_rows", [1, 511, 512, 513, 4096, 4097, 8192, 8193, 10**6])
def test_a_schedule_keeps_to_the_limits_of_its_row(task, inference, n_rows):
    schedule = schedule_for(task, inference, n_rows)
    samples = [row.samples for row in SCHEDULES if inference in row.inferences]
    assert schedule.samples in samples
    assert 1 <= schedule.epochs <= 32_000
    assert 32 <= schedule.batch_size <= 256


def test_epochs_follow_from_a_batch_size_that_is_given():
    assert schedule_for("regression", "variational", 4000).epochs == 500
    assert schedule_for("regression", "variational", 4000, 200) == (500, 200, 4, 2e-2)
    assert schedule_for("regression", "variational", 10**4, 100) == (320, 100, 1, 2e-2)
    # 16 steps an epoch, which are not cut
    assert schedule_for("regression", "variational", 4000, 250) == (1000, 250, 1, 1e-2)


def test_the_tables_have_a_line_for_every_row():
    in_words, in_markdown = schedule_table(markdown=False), schedule_table(markdown=True)
    rows = in_words.split("=\n")[2].splitlines()
    assert len(rows) - 1 == len(SCHEDULES) == len(in_markdown.splitlines()) - 2
    assert "| any | 200-1000 | 32000 | N / 32, 32-256 | 1 | 0.02 | larger" in in_markdown


def test_what_is_no_inference_has_no_schedule():
    with pytest.raises(KeyError, match="no schedule for regression by mh"):
        schedule_for("regression", "mh", 10)
