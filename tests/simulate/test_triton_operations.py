"""Triton's operations against numpy: loads and stores, shapes, atomics, reductions, scans, gathers, maps, checks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulate.small import kernels, results, simulated
from tt2gl.simulate.values import Array

random = np.random.default_rng(0)


def integers(*shape: int, low: int = -100, high: int = 100) -> Array:
    return random.integers(low, high, size=shape, dtype=np.int32)


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return random.standard_normal(shape).astype(dtype)


# ------------------------------------------------------------------------------------------------- loads and stores


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8])
def test_what_a_mask_hides_is_the_other_value(dtype: Any) -> None:
    x = floats(90).astype(dtype)
    out = results("copy_kernel", x, np.zeros(128, dtype), 90, grid=(4,), OTHER=7, BLOCK=32)["out_ptr"]
    np.testing.assert_array_equal(out, np.concatenate([x, np.full(38, 7, dtype)]))


def test_what_a_mask_hides_is_poison_without_another_value() -> None:
    out = results("copy_kernel", floats(40), np.zeros(64, np.float32), 40, OTHER=None, BLOCK=64)["out_ptr"]
    assert np.isnan(out[40:]).all()


@pytest.mark.parametrize(("read", "written"), [(40, 64), (64, 40)])
def test_an_access_outside_its_tensor_is_found_with_its_line(read: int, written: int) -> None:
    done = simulated("unmasked_kernel", floats(read), floats(written), START=0, BLOCK=64)
    (finding,) = done.findings
    assert finding.kind == "out-of-bounds"
    assert finding.buffer == ("x_ptr" if read < 64 else "out_ptr")
    assert finding.location.file.endswith("small_triton.py")
    assert "24 elements" in finding.message


def test_only_what_is_stored_counts_as_written() -> None:
    done = simulated("unmasked_kernel", floats(16), floats(64), START=8, BLOCK=16)
    x, out = done.tensors
    assert x.loaded
    assert not x.written.any()
    assert not out.loaded
    assert np.flatnonzero(out.written).tolist() == list(range(8, 24))


def test_scalars_of_a_grid_of_two_dimensions() -> None:
    x = integers(12)
    out = results("scalars_kernel", x, np.zeros(12, np.int32), 10, grid=(4, 3))["out_ptr"]
    np.testing.assert_array_equal(out, np.where(np.arange(12) < 10, x, -1) + 1)


def test_shapes() -> None:
    x = integers(4, 8)
    out = results("shapes_kernel", x, np.zeros(128, np.int32))["out_ptr"]
    turned, reshaped = x.T, x.reshape(8, 4)
    np.testing.assert_array_equal(out[:64], np.concatenate([turned.ravel(), reshaped.ravel()]))
    np.testing.assert_array_equal(out[64:], np.stack([turned, reshaped]).ravel())


# ---------------------------------------------------------------------------------------------------------- atomics


def test_atomic_adds_of_floats_follow_the_order_of_programs() -> None:
    x, places = floats(200), integers(200, low=0, high=5)
    out = results("add_kernel", x, places, np.zeros(5, np.float32), 190, grid=(4,), BLOCK=64)["out_ptr"]
    expected = np.zeros(5, np.float32)
    for value, place in zip(x[:190], places[:190], strict=True):
        expected[place] += value
    np.testing.assert_array_equal(out, expected)


def test_atomic_adds_of_residues_are_exact() -> None:
    x, places = floats(128), integers(128, low=0, high=3)
    runs = [
        simulated("add_kernel", x[order], places[order], np.zeros(3, np.float32), 128, arithmetic="field", BLOCK=128)
        for order in (np.arange(128), random.permutation(128))
    ]
    np.testing.assert_array_equal(runs[0].tensors[2].elements, runs[1].tensors[2].elements)


def test_many_residues_are_added_to_one_place_at_once() -> None:
    count = 1 << 17
    x, places = np.full(count, 3, np.float32), np.zeros(count, np.int32)
    done = simulated("add_kernel", x, places, np.ones(1, np.float32), count, arithmetic="field", BLOCK=count)
    assert done.tensors[2].elements.tolist() == [3 * count + 1]


STEPS: dict[str, Any] = {
    "add": lambda old, x: old + x,
    "max": max,
    "min": min,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "xchg": lambda old, x: x,
    "cas": lambda old, x: x if old == x - 1 else old,
}


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("kind", list(STEPS))
def test_atomics_return_what_was_there(kind: str, dtype: Any) -> None:
    x = random.integers(0, 6, size=64, dtype=dtype)
    x[::7] += np.dtype(dtype).type(0 if kind == "cas" or dtype == np.int32 else 1 << 31)
    places = integers(64, low=0, high=7)
    start = random.integers(0, 6, size=7, dtype=dtype)
    done = results("kinds_kernel", x, places, start, np.zeros_like(x), grid=(2,), KIND=kind, BLOCK=32)
    held, before = start.copy(), []
    with np.errstate(over="ignore"):
        for value, place in zip(x, places, strict=True):
            before.append(held[place])
            held[place] = STEPS[kind](held[place], value)
    np.testing.assert_array_equal(done["before_ptr"].view(dtype), before)
    np.testing.assert_array_equal(done["out_ptr"].view(dtype), held)


@pytest.mark.parametrize("kind", ["max", "min", "add", "xchg"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_atomics_of_floats(kind: str, dtype: Any) -> None:
    if kind != "add" and dtype == np.float16:
        pytest.skip("Triton has no such atomic")
    x, places, start = floats(64, dtype=dtype), integers(64, low=0, high=7), floats(7, dtype=dtype)
    done = results("kinds_kernel", x, places, start, np.zeros_like(x), grid=(2,), KIND=kind, BLOCK=32)
    held = start.copy()
    for value, place in zip(x, places, strict=True):
        held[place] = STEPS[kind](held[place], value)
    np.testing.assert_array_equal(done["out_ptr"], held)


def test_programs_that_do_the_same_still_do_it_each() -> None:
    done = results("count_kernel", np.zeros(1, np.int32), np.zeros(5, np.int32), grid=(5,))
    assert done["count_ptr"].tolist() == [5]
    assert done["ticket_ptr"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("programs", [5, 300])
def test_programs_that_wait_for_a_lock_get_it_in_turn(programs: int) -> None:
    done = results("lock_kernel", np.zeros(1, np.int32), np.zeros(1, np.int32), grid=(programs,))
    assert done["count_ptr"].tolist() == [programs]
    assert done["lock_ptr"].tolist() == [0]


# -------------------------------------------------------------------------------------------- reductions and scans


def halves(x: Array) -> Array:
    """The sum along the last axis, element i with element i + N/2 and so on."""
    while x.shape[-1] > 1:
        middle = x.shape[-1] // 2
        x = x[..., :middle] + x[..., middle:]
    return x[..., 0]


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_reductions_along_either_axis(dtype: Any) -> None:
    x = (floats(8, 64) * 100).astype(dtype)
    outputs = [np.zeros(size, dtype) for size in (8, 64, 1)]
    done = results("sums_kernel", x, *outputs, M=8, N=64)
    np.testing.assert_array_equal(done["rows_ptr"], halves(x))
    np.testing.assert_array_equal(done["columns_ptr"], x.max(0))
    np.testing.assert_array_equal(done["all_ptr"], [x.min()])


def test_a_reduction_of_two_operands_breaks_ties_to_the_left() -> None:
    x = integers(8, 64, low=0, high=5)
    done = results("argmax_kernel", x, np.zeros(8, np.int32), np.zeros(8, np.int32), grid=(2,), M=4, N=64)
    np.testing.assert_array_equal(done["value_ptr"], x.max(1))
    np.testing.assert_array_equal(done["index_ptr"], x.argmax(1))


def test_a_reduction_keeps_the_order_of_its_operands() -> None:
    x = integers(32)
    assert results("first_kernel", x, np.zeros(1, np.int32), N=32)["out_ptr"].tolist() == [x[0]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [2, 32])
def test_scans_of_one_and_of_two_operands(length: int, reverse: bool) -> None:
    x = integers(2, length)
    outputs = [np.zeros_like(x) for _ in range(3)]
    done = results("scans_kernel", x, *outputs, REVERSE=reverse, N=length)
    along = x[:, ::-1] if reverse else x
    slope, rest = along.copy(), along + 1
    for place in range(1, length):
        slope[:, place] = slope[:, place - 1] * along[:, place]
        rest[:, place] = rest[:, place - 1] * along[:, place] + along[:, place] + 1
    step = -1 if reverse else 1
    np.testing.assert_array_equal(done["sums_ptr"][:, ::step], np.cumsum(along, 1))
    np.testing.assert_array_equal(done["slope_ptr"][:, ::step], slope)
    np.testing.assert_array_equal(done["rest_ptr"][:, ::step], rest)


def test_sort() -> None:
    x = floats(3, 64)
    out = results("sort_kernel", x, np.zeros_like(x), grid=(3,), N=64)["out_ptr"]
    np.testing.assert_array_equal(out, np.sort(x, 1))


# --------------------------------------------------------------------------------------- picked, counted, mapped


def test_a_histogram_counts_what_its_mask_leaves() -> None:
    x = integers(2, 64, low=0, high=16)
    out = results("histogram_kernel", x, np.zeros((2, 16), np.int32), 50, grid=(2,), BINS=16, BLOCK=64)["out_ptr"]
    np.testing.assert_array_equal(out, [np.bincount(row[:50], minlength=16) for row in x])


def test_gather() -> None:
    x, index = floats(8, 16), integers(8, 16, low=0, high=8)
    out = results("gather_kernel", x, index, np.zeros_like(x), M=8, N=16)["out_ptr"]
    np.testing.assert_array_equal(out, np.take_along_axis(x, index, 0))


def test_a_gather_outside_its_tensor_is_found() -> None:
    index = integers(8, 16, low=0, high=8)
    index[3, 4] = 8
    done = simulated("gather_kernel", floats(8, 16), index, np.zeros((8, 16), np.float32), M=8, N=16)
    assert [(finding.kind, finding.message) for finding in done.findings] == [
        ("out-of-bounds", "gather takes element 8 of 8")
    ]
    assert np.flatnonzero(np.isnan(done.tensors[2].elements)).tolist() == [3 * 16 + 4]


def test_a_map_may_branch_on_each_element() -> None:
    x, y = floats(64), floats(64)
    out = results("map_kernel", x, y, np.zeros((2, 64), np.float32), N=64)["out_ptr"]
    np.testing.assert_array_equal(out, [np.where(x > y, x - y, y * 2), x])


def test_a_map_of_neighbours() -> None:
    x = integers(64)
    out = results("pack_kernel", x, np.zeros_like(x), N=64)["out_ptr"]
    np.testing.assert_array_equal(out, x.reshape(-1, 2)[:, ::-1].ravel())


@pytest.mark.parametrize(("n", "kinds"), [(5, []), (4, ["assert"]), (2, ["assert", "assert"])])
def test_assertions_and_assumptions_are_checked(n: int, kinds: list[str]) -> None:
    done = simulated("checks_kernel", np.full(1, 5, np.int32), n)
    assert [finding.kind for finding in done.findings if "assumption" in finding.message] == kinds[1:]
    # Triton leaves assertions out where it is not told to debug.
    assert {finding.kind for finding in done.findings} <= {"assert"}


# ----------------------------------------------------------------------------------------------------------- dots


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_dot(dtype: Any) -> None:
    a, b = (floats(*shape) * 4 for shape in ((32, 64), (64, 16)))
    a, b = a.astype(dtype), b.astype(dtype)
    wide = np.int32 if dtype == np.int8 else np.float32
    out = results("dot_kernel", a, b, np.zeros((32, 16), wide), M=32, N=16, K=64)["c_ptr"]
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_dot_of_operands_with_shared_scales() -> None:
    m, n, k = 32, 32, 64
    a = random.integers(0, 256, size=(m, k // 2), dtype=np.uint8)
    a_scale, b_scale = (random.integers(120, 135, size=(rows, k // 32), dtype=np.uint8) for rows in (m, n))
    b = floats(k, n).astype(ml_dtypes.float8_e5m2)
    out = results(
        "dot_scaled_kernel", a, a_scale, b.view(np.uint8), b_scale, np.zeros((m, n), np.float32), M=m, N=n, K=k
    )["c_ptr"]
    codes = np.stack([a & 15, a >> 4], axis=-1).reshape(m, k)
    left = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    left = left * np.repeat(2.0 ** (a_scale.astype(int) - 127), 32, axis=1)
    right = b.astype(np.float64) * np.repeat(2.0 ** (b_scale.astype(int) - 127), 32, axis=1).T
    np.testing.assert_allclose(out, left @ right, rtol=1e-5, atol=1e-4)


# ------------------------------------------------------------------------------------------------- block pointers


@pytest.mark.skipif(not hasattr(kernels.tl, "advance"), reason="this Triton has no block pointers")
@pytest.mark.parametrize(("padding", "outside"), [("zero", 0), ("nan", np.nan)])
def test_block_pointers(padding: str, outside: float) -> None:
    x = floats(6, 12)
    try:
        out = results("block_pointer_kernel", x, np.zeros((6, 16), np.float32), 6, 12, grid=(2,), PADDING=padding)
    except AssertionError as error:
        if "removed" not in str(error):
            raise
        pytest.skip("this Triton has no block pointers")
    np.testing.assert_array_equal(out["out_ptr"], np.pad(x, ((0, 0), (0, 4)), constant_values=outside))
