"""Views of shared memory, and what partitions themselves read and write there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.lowered import lowered
from tt2gl.ir.operations import UNKNOWN, Operation
from tt2gl.ir.types import IntegerType
from tt2gl.simulate.api import Argument, Simulation, TensorInput, simulate
from tt2gl.simulate.engine import whole_view
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.shared import Buffer, Storage, View
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_shared")
I32 = IntegerType(32)
ANY = Operation("test.any")
X = np.random.default_rng(0).integers(-(2**31), 2**31, 1024).astype(np.int32)


def run(kernel: str, *tensors: Array, **constexprs: Any) -> Simulation:
    function = getattr(kernels, kernel)
    names = [name for name in function.arg_names if name not in constexprs]
    module = lowered(function, "sm90", dict.fromkeys(names, "*i32"), **constexprs)
    arguments: list[Argument] = [TensorInput(name, I32, tensor) for name, tensor in zip(names, tensors, strict=True)]
    return simulate(module, arguments, (1, 1, 1))


def fresh(shape: tuple[int, ...]) -> View:
    """A view of new memory that holds 0, 1, 2, ..."""
    count = int(np.prod(shape))
    storage = Storage("buffer", 4 * count, UNKNOWN, lambda _finding: None)
    elements = np.arange(count, dtype=np.int32)[None].copy()
    return whole_view(Buffer(storage, elements, I32, 4), shape)


# -------------------------------------------------------------------------------------------------------- views


@st.composite
def derivations(draw: st.DrawFn) -> tuple[View, Array]:
    """A view derived in several steps, and the same steps on a numpy array."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3)))
    view, array = fresh(shape), np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for _ in range(draw(st.integers(0, 4))):
        rank = array.ndim
        step = draw(st.sampled_from(["index", "slice", "transpose", "reshape"]))
        if step == "index" and rank > 1:
            slot = draw(st.integers(0, array.shape[0] - 1))
            view, array = view.index(slot), array[slot]
        elif step == "slice":
            offsets = tuple(draw(st.integers(0, size - 1)) for size in array.shape)
            sizes = tuple(
                draw(st.integers(1, size - offset)) for size, offset in zip(array.shape, offsets, strict=True)
            )
            view = view.slice(offsets, sizes)
            array = array[tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))]
        elif step == "transpose":
            order = tuple(draw(st.permutations(range(rank))))
            view, array = view.transpose(order), array.transpose(order)
        elif step == "reshape" and (flat := view.reshape((array.size,))) is not None:
            view, array = flat, array.reshape(-1)
    return view, array


@given(derivations())
def test_views_are_what_numpy_makes_of_them(derived: tuple[View, Array]) -> None:
    view, array = derived
    np.testing.assert_array_equal(view.load(ANY)[0], array)
    assert sorted(array.ravel() * 4) == view.region.starts.tolist()


@given(derivations())
def test_only_what_was_written_counts_as_written(derived: tuple[View, Array]) -> None:
    view, array = derived
    assert view.unwritten()
    view.mark_written()
    assert not view.unwritten()
    written = view.storage.written.reshape(-1, 4).all(axis=1)
    assert np.flatnonzero(written).tolist() == sorted(array.ravel())


def test_a_transposed_view_has_no_flat_one() -> None:
    assert fresh((4, 8)).transpose((1, 0)).reshape((32,)) is None


# --------------------------------------------------------------------------------------------- through operations


def test_plain_bytes_can_be_read_as_another_type() -> None:
    done = run("bits_kernel", X[:128], np.zeros(128, np.int32))
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, X[:128])


def test_swizzled_bytes_may_be_used_again_in_another_layout() -> None:
    done = run("swizzled_reuse_kernel", X, np.zeros(1024, np.int32), WRITE=True)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, X + 1)


def test_swizzled_bytes_are_not_read_in_another_layout() -> None:
    with pytest.raises(Unsupported, match="written in another layout"):
        run("swizzled_reuse_kernel", X, np.zeros(1024, np.int32), WRITE=False)


def test_reshape_transpose_and_slice() -> None:
    done = run("reshaped_kernel", X[:128], np.zeros(64, np.int32))
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, X[:128].reshape(4, 32).T[16:].ravel())


needs_gather = pytest.mark.skipif(
    not hasattr(kernels.gl.shared_memory_descriptor, "gather"), reason="this Triton has no gather from shared memory"
)


@needs_gather
def test_scatter_and_gather() -> None:
    index = np.random.default_rng(1).permutation(128).astype(np.int32)
    done = run("scattered_kernel", X[:128], index, np.zeros(128, np.int32), ALL=True)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[2].elements[index], X[:128])
    done = run("scattered_kernel", X[:128], index, np.zeros(128, np.int32), ALL=False)
    np.testing.assert_array_equal(done.tensors[2].elements, X[:128])


@needs_gather
def test_only_places_scattered_to_may_be_read() -> None:
    index = (np.arange(128) // 2).astype(np.int32)
    assert run("scattered_kernel", X[:128], index, np.zeros(128, np.int32), ALL=False).findings == ()
    found = run("scattered_kernel", X[:128], index, np.zeros(128, np.int32), ALL=True).findings
    assert [(finding.kind, finding.buffer) for finding in found] == [("uninitialised", "smem")]


@needs_gather
def test_an_index_outside_is_found() -> None:
    index = np.arange(1, 129, dtype=np.int32)
    found = run("scattered_kernel", X[:128], index, np.zeros(128, np.int32), ALL=False).findings
    assert {finding.kind for finding in found} == {"out-of-bounds"}


@pytest.mark.skipif(
    not hasattr(kernels.gl.shared_memory_descriptor, "atomic_scatter_add"), reason="this Triton has no shared atomics"
)
def test_atomic_adds_at_places() -> None:
    index, values = (np.arange(128) % 10).astype(np.int32), X[:128] % 1000
    done = run("counted_kernel", values, index, np.zeros(128, np.int32))
    assert done.findings == ()
    sums = np.zeros(128, np.int32)
    found = values.copy()
    for place in range(100):
        found[place] = sums[index[place]]
        sums[index[place]] += values[place]
    np.testing.assert_array_equal(done.tensors[2].elements, sums)
    np.testing.assert_array_equal(done.tensors[0].elements, found)


@pytest.mark.parametrize(("first", "kinds"), [(1, set()), (0, {"out-of-bounds"})])
def test_a_slot_outside_is_a_fault_once_it_is_used(first: int, kinds: set[str]) -> None:
    done = run("slot_before_kernel", np.zeros(1, np.int32), FIRST=first)
    assert {finding.kind for finding in done.findings} - {"deadlock"} == kinds
