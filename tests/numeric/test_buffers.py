"""buffers: what is taken is nobody else's until the owner rewinds, and then it comes back."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbb_numpy import MLP
from bbb_numpy.numeric.buffers import Buffers, ThreadLocalBuffers

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
DTYPES = st.sampled_from([np.float32, np.float64, np.complex128])
REQUESTS = st.lists(st.tuples(SHAPES, DTYPES), max_size=6)


def take(buffers, requests):
    return [buffers.array(shape, dtype) for shape, dtype in requests]


@given(requests=REQUESTS)
def test_every_array_is_another_one_until_the_owner_rewinds(requests):
    taken = take(Buffers(), [*requests, *requests])
    for array, (shape, dtype) in zip(taken, [*requests, *requests], strict=True):
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.flags.writeable
        assert not any(
            np.shares_memory(array, other_array)
            for other_array in taken
            if other_array is not array
        )


@given(requests=REQUESTS, others=REQUESTS)
def test_who_asks_for_something_else_gets_that_and_the_memory_of_the_rest(requests, others):
    buffers = Buffers()
    first = take(buffers, requests)
    for array, (shape, dtype), old, request in zip(
        take(buffers.rewind(), others), others, first, requests, strict=False
    ):
        assert (array.shape, array.dtype) == (shape, dtype)
        assert (array is old) is ((shape, dtype) == request)
    with pytest.MonkeyPatch.context() as patch:  # and now nothing is allocated any more
        patch.setattr(np, "empty", None)
        take(buffers.rewind(), others)


def test_views_are_made_again_for_another_array_and_for_another_way_to_view():
    buffers, a = Buffers(), np.zeros((1, 7))
    net, same_size = MLP((2, 1, 2)), MLP((6, 1))
    first = buffers.views(a, net.layers)
    assert buffers.rewind().views(a, net.layers) is first
    assert buffers.views(a, net.layers) is not first  # the next place
    equal = a.copy()
    second = buffers.rewind().views(equal, net.layers)
    assert second is not first
    assert np.shares_memory(second[0].weight, equal)
    assert len(buffers.rewind().views(equal, same_size.layers)) == 1
    assert len(buffers.rewind().views(equal, net.layers)) == 2


def test_ones_are_read_only_and_made_again_for_another_number_or_dtype():
    buffers = Buffers()
    ones = buffers.ones(3, np.float64)
    assert buffers.rewind().ones(3, np.float64) is ones
    for rows, dtype in ((4, np.float64), (4, np.float32), (0, np.float32), (1, np.float64)):
        for array in (buffers.ones(rows, dtype), Buffers().ones(rows, dtype)):
            assert (array.shape, array.dtype) == ((1, rows), dtype)
            assert (array == 1).all()
            assert not array.flags.writeable
    np.testing.assert_array_equal(ones, [[1.0, 1.0, 1.0]])  # who has them keeps them


def test_each_thread_finds_its_own_buffers_again_and_nobody_elses():
    shared = ThreadLocalBuffers()
    with ThreadPoolExecutor(1) as other:
        mine, theirs = shared.for_size(4)[0], other.submit(lambda: shared.for_size(4)[0]).result()
        assert mine is not theirs
        assert shared.for_size(4)[0] is mine
        assert other.submit(lambda: shared.for_size(4)[0]).result() is theirs
    assert shared.for_size(4)[1] is not mine is not shared.for_size(3)[0]


def test_five_sizes_are_kept_a_sixth_alone_and_a_copy_begins_with_none():
    shared = ThreadLocalBuffers()
    five = [shared.for_size(size)[0] for size in range(5)]
    assert [shared.for_size(size)[0] for size in range(5)] == five
    assert pickle.loads(pickle.dumps(shared)).by_size == {}
    shared.for_size(5)
    assert list(shared.by_size) == [5]
