"""Kernels of Triton in a program that `exactgrad.torch` reads, without a GPU.

With the environment variable TRITON_INTERPRET=1 Triton interprets its kernels in Python, on arrays
of NumPy. Here a launch becomes one step of the program: on exact numbers the kernel is interpreted
once more, with loads and stores that know the arrays by numbers in place of addresses.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from .fields.finite import Untraceable

__all__ = ["Launch", "traced_launches"]

Array = NDArray[Any]
ADDRESS_BITS = 40  # of an address, those below are the position in an array, in bytes
ITEM_SIZE = 8  # bytes of a float64


class Launch:
    """A launch of a kernel, as a function of the arrays that it gets.

    Parameters
    ----------
    executor : triton.runtime.interpreter.GridExecutor
        The kernel and its grid.
    arguments : dict
        The arguments of the kernel by name.
    tensor_names : list of str
        The names of those that are tensors.
    """

    def __init__(
        self, executor: Any, arguments: dict[str, Any], tensor_names: list[str]
    ) -> None:
        self.executor = executor
        self.arguments = arguments
        self.tensor_names = tensor_names

    def __call__(self, *arrays: Any) -> Any:
        """Return the arrays after the launch: one, or a list of them."""
        interpreter = sys.modules["triton.runtime.interpreter"]
        kernel = ExactKernel(interpreter, [*arrays])
        arguments = dict(self.arguments)
        for i, name in enumerate(self.tensor_names):
            arguments[name] = kernel.pointer(i)
        with kernel.replaced():
            scope = interpreter._patch_lang(self.executor.fn)
            try:
                self._run_grid(interpreter, arguments)
            finally:
                scope.restore()
        if len(arrays) == 1:
            return kernel.arrays[0]
        return kernel.arrays

    def _run_grid(self, interpreter: Any, arguments: dict[str, Any]) -> None:
        """Run the kernel for each index of its grid."""
        names = self.executor.constexprs + self.tensor_names
        values = {
            name: x if name in names else interpreter._implicit_cvt(x)
            for name, x in arguments.items()
        }
        grid = self.executor.grid
        grid = tuple(grid(values) if callable(grid) else grid)
        grid = (*grid, *[1] * (3 - len(grid)))
        interpreter.interpreter_builder.set_grid_dim(*grid)
        for index in np.ndindex(*grid):
            interpreter.interpreter_builder.set_grid_idx(*index)
            self.executor.fn(**values)


class ExactKernel:
    """What a kernel reads and writes, with versions of the interpreter's functions for it.

    Parameters
    ----------
    interpreter : module
        `triton.runtime.interpreter`.
    arrays : list of array
        The arrays, which are replaced by new ones when the kernel writes.
    """

    def __init__(self, interpreter: Any, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.handle = interpreter.TensorHandle
        self.language = import_module("triton.language")
        self.interpreter = interpreter

    def pointer(self, i: int) -> Any:
        """Return the pointer to array i that the kernel gets."""
        pointer_type = self.language.pointer_type(self.language.float64)
        address = np.array([i << ADDRESS_BITS], np.uint64)
        return self.language.tensor(self.handle(address, pointer_type), pointer_type)

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Replace functions of the interpreter that would make floats of exact numbers."""
        builder = type(self.interpreter.interpreter_builder)
        reductions = self.interpreter.ReduceScanOpInterface
        atomics = [name for name in vars(builder) if name.startswith("create_atomic")]
        with ExitStack() as stack:
            for name in atomics:
                stack.enter_context(patch.object(builder, name, _refuse_atomic))
            for owner, name, function in (
                (builder, "create_masked_load", self._load),
                (builder, "create_masked_store", self._store),
                (builder, "create_splat", self._splat),
                (reductions, "to_tensor", self._to_tensor),
                (self.interpreter, "_validate_np_data_size", lambda *_: True),
            ):
                stack.enter_context(patch.object(owner, name, function))
            yield

    def _find(self, pointers: Any, mask: Any) -> tuple[int, Array, Array]:
        """Return the array that pointers point into, the positions in it and which are loaded."""
        addresses = pointers.data.astype(np.int64)
        positions = (addresses & ((1 << ADDRESS_BITS) - 1)) // ITEM_SIZE
        keep = np.broadcast_to(mask.data, positions.shape)
        return (
            int(addresses.flat[0] >> ADDRESS_BITS),
            np.where(keep, positions, 0),
            keep,
        )

    def _load(self, pointers: Any, mask: Any, default: Any, *_: Any) -> Any:
        """Return the numbers at `pointers` where the mask is True, elsewhere the default."""
        i, positions, keep = self._find(pointers, mask)
        values = np.reshape(self.arrays[i], -1)[positions]
        if not keep.all():
            values = np.where(keep, values, 0.0 if default is None else default.data)
        return self.handle(values, pointers.get_element_ty())

    def _store(self, pointers: Any, values: Any, mask: Any, *_: Any) -> None:
        """Write numbers to `pointers` where the mask is True."""
        i, positions, keep = self._find(pointers, mask)
        array = self.arrays[i]
        order = np.arange(array.size)
        order[positions[keep]] = array.size + np.arange(keep.sum())
        written = np.broadcast_to(values.data, positions.shape)[keep]
        flat = np.concatenate([np.reshape(array, -1), written])
        self.arrays[i] = flat[order].reshape(array.shape)

    def _splat(self, block_type: Any, value: Any) -> Any:
        """Return a block of equal numbers."""
        numbers = np.broadcast_to(np.ravel(value.data)[0], tuple(block_type.shape))
        return self.handle(numbers, value.dtype.scalar)

    def _to_tensor(self, values: Any, dtype: Any) -> Any:
        """Return the result of a reduction as a tensor of Triton."""
        tensor_type = dtype
        if np.shape(values):
            tensor_type = self.language.block_type(dtype, [*values.shape])
        values = np.reshape(values, np.shape(values) or (1,))
        return self.language.tensor(self.handle(values, dtype.scalar), tensor_type)


def _refuse_atomic(*_: Any) -> None:
    """Raise Untraceable: the interpreter's atomic operations read memory by its address."""
    raise Untraceable("atomic operations of a kernel have no exact form")


@contextmanager
def traced_launches(
    note: Callable[[Launch, Sequence[Any], Callable[[], Any]], None],
) -> Iterator[None]:
    """Call `note` in place of each launch of a kernel, if Triton interprets kernels.

    Parameters
    ----------
    note : callable
        Takes the launch, the tensors that it gets, and a function that launches it in floats.
    """
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is None:
        yield
        return
    original = interpreter.GridExecutor.__call__

    def launch(executor: Any, *args: Any, **kwargs: Any) -> None:
        names = inspect.signature(executor.fn).parameters
        kwargs = {key: x for key, x in kwargs.items() if key in names}
        bound = inspect.signature(executor.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        tensors = {key: x for key, x in arguments.items() if hasattr(x, "data_ptr")}
        of_floats = arguments | {key: x.detach() for key, x in tensors.items()}
        note(
            Launch(executor, arguments, [*tensors]),
            [*tensors.values()],
            lambda: original(executor, **of_floats),
        )

    with patch.object(interpreter.GridExecutor, "__call__", launch):
        yield
