"""Tensor descriptors: tiles in and out, their edges, rows by index, and those the host makes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tests.simulate.small import kernels, results
from tt2gl.ir.types import FloatType
from tt2gl.simulate.api import DescriptorInput, TensorInput, simulate
from tt2gl.simulate.descriptors import Descriptor, expanded
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.values import Array, put_rows

F32 = FloatType("f32")
random = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def descriptor(*, programs: int = 1) -> Descriptor:
    """Of a tensor of 6 rows of 10, 16 apart, at 1000; of each program its own, 4096 further."""
    base = 1000 + 4096 * np.arange(programs)
    return Descriptor(base, (np.array([6]), np.array([10])), (np.array([16]), np.array([1])), (4, 8), F32)


def test_a_tile_inside_needs_no_mask() -> None:
    address, inside = descriptor().tile([np.array([1]), np.array([2])])
    expected = 1000 + 4 * (16 * (1 + np.arange(4))[:, None] + 2 + np.arange(8))
    np.testing.assert_array_equal(address, expected[None])
    assert inside is None


def test_a_tile_across_an_edge_has_a_mask_for_each_program() -> None:
    address, inside = descriptor(programs=2).tile([np.array([-1, 3]), np.array([0, 4])])
    assert inside is not None
    assert address.shape == inside.shape == (2, 4, 8)
    np.testing.assert_array_equal(inside[0], np.broadcast_to((np.arange(4) > 0)[:, None], (4, 8)))
    np.testing.assert_array_equal(inside[1], (np.arange(4) < 3)[:, None] & (np.arange(8) < 6))


def test_a_tile_may_have_another_shape() -> None:
    address, _ = descriptor().tile([np.array([0]), np.array([0])], (2, 4))
    assert address.shape == (1, 2, 4)


def test_rows_by_index() -> None:
    address, inside = descriptor().rows(np.array([[5, 6, 0]]), np.array([2]))
    assert address[0, :, 0].tolist() == [1000 + 4 * (16 * row + 2) for row in (5, 6, 0)]
    assert inside is not None
    assert inside[0].all(axis=1).tolist() == [True, False, True]


def test_some_programs_keep_theirs() -> None:
    taken = descriptor(programs=3).take(np.array([2, 0]))
    assert taken.base.tolist() == [1000 + 2 * 4096, 1000]
    assert taken.shape[0].tolist() == [6]


def test_programs_that_parted_put_theirs_together_again() -> None:
    whole, rows = descriptor(programs=3), np.array([2, 0])
    some = put_rows(None, rows, whole.take(rows), 3)
    joined = put_rows(some, np.array([1]), whole.take(np.array([1])), 3)
    assert joined.base.tolist() == whole.base.tolist()
    assert [size.tolist() for size in joined.shape] == [[6] * 3, [10] * 3]
    assert (joined.block, joined.element) == (whole.block, whole.element)


def test_what_is_outside_is_zero_unless_it_is_nan() -> None:
    assert descriptor().outside(Ieee()) == 0


@pytest.mark.parametrize(("padding", "outside"), [("zero", 0), ("nan", np.nan)])
def test_loads_and_stores_stay_within_the_tensor(padding: str, outside: float) -> None:
    x = floats(6, 10)
    done = results("descriptor_kernel", x, np.zeros((6, 16), np.float32), 6, 10, grid=(2,), PADDING=padding)
    shifted = np.full((6, 16), outside, np.float32)
    shifted[1:, :10] = x[:5]
    # The second descriptor has 12 columns of 16.
    shifted[:, 12:] = 0
    np.testing.assert_array_equal(done["out_ptr"], shifted)


def test_gather_and_scatter() -> None:
    x, rows = floats(8, 16), np.array([3, 0, 7, 8, -1, 2, 2, 5], np.int32)
    out = results("rows_kernel", x, rows, np.zeros((8, 16), np.float32), 8, 16)["out_ptr"]
    expected = np.zeros((8, 16), np.float32)
    expected[:, :8] = np.where(((rows >= 0) & (rows < 8))[:, None], x[np.clip(rows, 0, 7), 8:], 0)
    np.testing.assert_array_equal(out, expected)


def test_reductions_into_memory() -> None:
    x = floats(4, 8)
    out = results("descriptor_add_kernel", x, np.zeros((4, 8), np.float32), 4, 8, grid=(3,))["out_ptr"]
    expected = np.zeros((4, 8), np.float32)
    for program in range(3):
        expected[program:] += x[: 4 - program]
    np.testing.assert_array_equal(out, expected)


def test_descriptors_made_on_the_host() -> None:
    x = floats(6, 16)
    types = {"x_desc": "tensordesc<fp32[4,8]>", "out_desc": "tensordesc<fp32[4,8]>"}
    module = lowered(kernels.host_descriptor_kernel, "sm90", types)
    tensors = [TensorInput("x", F32, x.ravel()), TensorInput("out", F32, np.zeros(96, np.float32))]
    given = expanded([DescriptorInput(tensor, (6, 16), (16, 1), (4, 8)) for tensor in tensors])
    done = simulate(module, given, (2, 1, 1))
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements.reshape(6, 16), x + 16)
