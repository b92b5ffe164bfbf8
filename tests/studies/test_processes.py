"""Parts of a study come back in their order, from processes that end with their parent."""

import os
import signal

import pytest
from targets import survives_ctrl_c, watches_its_parent

from bbb_studies.processes import in_processes


def test_parts_come_back_in_their_order_also_from_this_process():
    assert list(in_processes(1, divmod, [(7, 2), (5, 3)])) == [(3, 1), (1, 2)]


def number(_):
    return os.getpid()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs masks of signals")
def test_processes_leave_ctrl_c_to_their_parent_and_end_with_it():
    four = [(place,) for place in range(4)]
    assert list(in_processes(2, divmod, [(7, 2), (5, 3), (9, 4)])) == [(3, 1), (1, 2), (2, 1)]
    assert os.getpid() not in set(in_processes(2, number, four))
    for asked in (survives_ctrl_c, watches_its_parent):
        assert list(in_processes(2, asked, four)) == [True] * 4
