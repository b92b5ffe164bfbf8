"""attempts: the verdict is an enum that is equal to its text, and fields say what they conclude."""

import json
import pickle

import numpy as np
import pytest

from exactgrad import Proof, Verdict, prove, prove_same
from exactgrad.fields.finite import LARGE_THETA, Gauss, Prime, Towers, ZeroTest
from exactgrad.verdict.runs import vanishes

X = np.array([0.5, 1.5])


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_is_equal_to_its_text_and_printed_and_stored_as_it(verdict):
    text = verdict.value
    assert verdict == text
    assert (str(verdict), f"{verdict:>25}", repr(verdict)) == (text, f"{text:>25}", repr(text))
    assert json.dumps(verdict) == json.dumps(text)
    assert pickle.loads(pickle.dumps(Proof(text, 1))).verdict is verdict
    assert Proof(text, 1).proved == text.startswith("proved")


def test_there_is_no_other_verdict():
    with pytest.raises(ValueError, match="is not a valid Verdict"):
        Proof("surely", 1)


def test_proofs_of_gradients_and_of_values_have_the_same_verdicts():
    def right(x):
        return (x**2).sum(), 2 * x

    def wrong(x):
        return (x**2).sum(), 3 * x

    assert prove(right, X).verdict is prove_same(np.square, lambda x: x * x, X).verdict
    assert prove(right, X).verdict is Verdict.PROVED
    assert prove(wrong, X).verdict is prove_same(np.square, lambda x: x**3, X).verdict
    assert prove(wrong, X).verdict is Verdict.REFUTED


def test_a_field_says_when_it_applies():
    fresh = ZeroTest(2)
    assert Prime.applies(fresh)
    assert not Gauss.applies(fresh)
    assert not Towers.applies(fresh)
    assert Gauss.applies(ZeroTest(2, lacks_roots=True))
    assert Towers.applies(ZeroTest(2, has_laws=True))
    assert not Towers.applies(ZeroTest(LARGE_THETA + 1, has_laws=True))


def test_a_field_says_what_it_concludes():
    field = Prime(0)
    assert field.conclude(ZeroTest(2, n_points=1, n_zero=1, is_zero=True)) is True
    assert field.conclude(ZeroTest(2, n_points=1)) is False
    field.n_roots = 1  # each of them has another sign at another point
    assert field.conclude(ZeroTest(2, n_points=1, n_zero=1, is_zero=True)) is None
    assert field.conclude(ZeroTest(2, n_points=4, n_zero=4, is_zero=True)) is True
    for roots_of_roots, concluded in ((Gauss(0), False), (Towers(0), None)):
        roots_of_roots.n_roots = roots_of_roots.n_substituted = 1
        assert roots_of_roots.conclude(ZeroTest(2, n_points=4)) is concluded


def test_what_is_refuted_is_tried_in_no_other_field():
    def excess(field):
        fields.append(type(field))
        field.transcendental = True
        return np.ones((1, field.n_channels), np.int64)

    for is_refuted, tried in ((True, [Prime]), (False, [Prime, Towers])):
        fields = []
        is_zero, _ = vanishes(excess, 0, 2, lambda answer=is_refuted: answer)
        assert not is_zero
        assert list(dict.fromkeys(fields)) == tried
