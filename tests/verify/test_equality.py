"""Comparison of memory after two kernels, with Python functions on CPU tensors in their place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.verify.equality import Equality, check_equality, combine, compare_buffers, written
from tt2gl.verify.inputs import make_inputs, make_tensor
from tt2gl.verify.tensors import GUARD_BYTES, Buffer, DeviceInputs, to_buffer, to_device

torch = pytest.importorskip("torch")

Edit = Callable[[DeviceInputs], None]


def launch(dtype: str = "float32", count: int = 64, **more: Any) -> Launch:
    tensor = TensorArg(dtype, (count,), (1,))
    return Launch(
        file="k.py",
        kernel="k",
        signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 64},
        divisible_by_16=("x", "y"),
        args={"x": tensor, "y": tensor, "n": count, **more},
    )


def inputs(seed: int) -> DeviceInputs:
    return to_device(make_inputs(launch(), seed), "cpu")


def buffer(arg: TensorArg, *, aligned: bool = True) -> Buffer:
    return to_buffer(make_tensor(arg, np.random.default_rng(0), positive=True, aligned=aligned), "cpu")


def double(given: DeviceInputs) -> None:
    given.buffers["y"].view.copy_(2 * given.buffers["x"].view)


def changed(edit: Edit) -> Edit:
    def run(given: DeviceInputs) -> None:
        double(given)
        edit(given)

    return run


def check(port: Edit, original: Edit = double) -> Equality:
    return check_equality(original, port, inputs, (0, 1))


# -------------------------------------------------------------------------------------------------- equal


def test_the_same_kernel_is_equal_bit_for_bit() -> None:
    assert check(double) == Equality(True, True, 0.0)


def test_another_order_of_summation_is_equal_but_not_bitwise() -> None:
    found = check(changed(lambda given: given.buffers["y"].view.mul_(1 + 2e-7)))
    assert found.equal
    assert not found.bitwise
    assert 0 < found.max_error < 1e-6


def test_the_sign_of_zero_and_the_bits_of_nan_do_not_matter() -> None:
    def zero(given: DeviceInputs) -> None:
        given.buffers["y"].view.fill_(0.0)[::2].fill_(math.nan)

    def other_zero(given: DeviceInputs) -> None:
        given.buffers["y"].view.fill_(-0.0)[::2].fill_(-math.nan)

    found = check(other_zero, zero)
    assert (found.equal, found.bitwise, found.max_error) == (True, False, 0.0)


def test_a_kernel_that_updates_in_place_is_not_poisoned() -> None:
    def increment(given: DeviceInputs) -> None:
        given.buffers["y"].view.add_(1.0)

    assert check(increment, increment) == Equality(True, True, 0.0)


def test_noise_of_the_original_excuses_as_much_of_the_port() -> None:
    generator = torch.Generator().manual_seed(7)

    def noisy(given: DeviceInputs) -> None:
        double(given)
        view = given.buffers["y"].view
        view.mul_(1 + 2e-5 * torch.rand(view.shape, generator=generator))

    found = check(noisy, noisy)
    assert found.equal
    assert found.max_error > 1e-5


# ---------------------------------------------------------------------------------------------- not equal


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda given: given.buffers["y"].view[3].mul_(1.001), "y: element 3"),
        (lambda given: given.buffers["x"].view[0].add_(1.0), "x: element 0"),
        (lambda given: given.buffers["y"].view[5].fill_(math.nan), "is nan"),
        (lambda given: given.buffers["y"].view[5].fill_(math.inf), "is inf"),
        (lambda given: given.buffers["y"].storage[-GUARD_BYTES].fill_(0), "y: written outside"),
        (lambda given: given.buffers["x"].storage[0].fill_(0), "x: written outside"),
    ],
    ids=["wrong value", "input changed", "nan", "infinity", "past the end", "before the start"],
)
def test_a_wrong_store_is_found(edit: Edit, reason: str) -> None:
    found = check(changed(edit))
    assert not found.equal
    assert not found.bitwise
    assert reason in found.reason


def test_an_original_that_writes_outside_itself_puts_the_launch_in_doubt() -> None:
    def past_the_end(value: int) -> Edit:
        return changed(lambda given: given.buffers["y"].storage[-GUARD_BYTES].fill_(value))

    assert "launch" not in check(past_the_end(1)).reason
    assert check(past_the_end(1), past_the_end(2)).reason == (
        "y: written outside the tensor; the original itself writes there: does the launch give each tensor its shape?"
    )


def test_a_missing_store_is_found() -> None:
    def most(given: DeviceInputs) -> None:
        given.buffers["y"].view[:-1].copy_(2 * given.buffers["x"].view[:-1])

    assert "y: element 63" in check(most).reason


def test_reading_an_output_is_found_by_its_poison() -> None:
    def reads(given: DeviceInputs) -> None:
        old = given.buffers["y"].view.clone()
        double(given)
        # Nothing in the random trials: only NaN survives the multiplication by zero.
        given.buffers["y"].view.add_(old * 0.0)

    found = check(reads)
    assert not found.equal
    assert found.reason.startswith("with outputs that held NaN before: y: element 0")


def test_noise_past_all_measure_is_not_equal_and_says_so() -> None:
    generator = torch.Generator().manual_seed(7)

    def wild(given: DeviceInputs) -> None:
        view = given.buffers["y"].view
        view.copy_(torch.rand(view.shape, generator=generator))

    found = check(wild, wild)
    assert not found.equal
    assert "from run to run" in found.reason


def test_large_integers_one_apart_differ() -> None:
    arg = TensorArg("int64", (4,), (1,), (2**62, 2**62))
    one = buffer(arg)
    two = one.clone()
    two.view[2] += 1
    found = compare_buffers("i", one, one, two)
    assert not found.equal
    assert "i: element 2" in found.reason


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "bfloat16", "float64", "float8_e5m2"])
def test_every_type_compares(dtype: str) -> None:
    one = buffer(TensorArg(dtype, (8,), (1,)))
    assert compare_buffers("t", one, one, one.clone()) == Equality(True, True, 0.0)
    two = one.clone()
    two.storage[two.first] ^= 1 if dtype == "bool" else 0x40
    two.storage[two.last - 1] ^= 1 if dtype == "bool" else 0x40
    assert not compare_buffers("t", one, one, two).equal


def test_combining_keeps_the_worst() -> None:
    parts = [Equality(True, True, 0.0), Equality(True, False, 0.5), Equality(False, False, 0.1, "here")]
    assert combine(parts) == Equality(False, False, 0.5, "here")
    assert combine([]) == Equality(True, True, 0.0)


def test_written_names_what_a_run_changed() -> None:
    before = inputs(0)
    after = before.clone()
    double(after)
    assert written(before, after) == ("y",)


# -------------------------------------------------------------------------------------------- tensors on a device


def test_shape_stride_and_alignment_are_the_launch_s() -> None:
    strided = buffer(TensorArg("float16", (4, 3), (10, 2)))
    assert strided.view.shape == (4, 3)
    assert strided.view.stride() == (10, 2)
    assert strided.view.data_ptr() % 16 == 0
    assert strided.last - strided.first == 2 * (3 * 10 + 2 * 2 + 1)
    assert buffer(TensorArg("float16", (4,), (1,)), aligned=False).view.data_ptr() % 16 == 2


def test_an_expanded_and_an_empty_tensor() -> None:
    assert buffer(TensorArg("float32", (4, 8), (0, 1))).elements().numel() == 8
    assert buffer(TensorArg("float32", (0, 8), (8, 1))).view.numel() == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "float8_e4m3fnuz"])
def test_the_device_gets_the_numbers_that_numpy_made(dtype: str) -> None:
    made = make_tensor(TensorArg(dtype, (5, 3), (4, 1)), np.random.default_rng(1), positive=False, aligned=False)
    there = to_buffer(made, "cpu")
    assert there.elements().view(torch.uint8).numpy().tobytes() == made.elements.tobytes()
    assert there.view[3, 2].item() == made.view()[3, 2].item()
