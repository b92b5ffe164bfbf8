"""What training leaves behind when it fails: a message to read, and a state to go on from."""

import pickle

import numpy as np

from bbb_numpy import NonFiniteError
from bbb_numpy.training.optimizers import Adam
from bbb_numpy.training.state import Training


def failed():
    theta = np.arange(3.0)
    return NonFiniteError("the value is nan", Training(theta, Adam().init(theta)))


def test_a_failure_is_told_by_its_message_alone():
    assert str(failed()) == "the value is nan"


def test_a_failure_in_another_process_arrives_with_its_state():
    before = failed()
    before.add_note("in a process that trains")
    after = pickle.loads(pickle.dumps(before))
    assert type(after) is NonFiniteError
    assert str(after) == str(before)
    assert after.__notes__ == before.__notes__
    np.testing.assert_array_equal(after.training.theta, before.training.theta)
    assert after.training.optimizer_state.arrays.keys() == {"m", "v"}
