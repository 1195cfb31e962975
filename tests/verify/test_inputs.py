"""Arguments made for a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.verify.inputs import (
    PERIOD,
    Array,
    TensorData,
    UnknownInputsError,
    make_inputs,
    make_tensor,
    poisoned,
    unknown_inputs,
)


def launch(dtype: str = "float32", count: int = 64, **more: Any) -> Launch:
    tensor = TensorArg(dtype, (count,), (1,))
    return Launch(
        file="k.py",
        kernel="k",
        signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 64},
        divisible_by_16=("x", "y"),
        grid=(1,),
        args={"x": tensor, "y": tensor, "n": count, **more},
    )


def content(seed: int, name: str = "x") -> Array:
    return make_inputs(launch(), seed).tensors[name].elements


def tensor(arg: TensorArg, *, aligned: bool = True, positive: bool = False) -> TensorData:
    return make_tensor(arg, np.random.default_rng(0), positive=positive, aligned=aligned)


def test_the_same_seed_makes_the_same_inputs_and_another_does_not() -> None:
    assert np.array_equal(content(0), content(0))
    assert not np.array_equal(content(0), content(2))
    assert bool((content(1) > 0).all())
    assert not bool((content(0) > 0).all())


def test_tensors_of_one_launch_differ() -> None:
    assert not np.array_equal(content(0, "x"), content(0, "y"))


def test_integers_stay_in_their_range_and_unknown_ones_are_zero() -> None:
    ranged = tensor(TensorArg("int64", (1000,), (1,), (3, 7))).elements
    assert (int(ranged.min()), int(ranged.max())) == (3, 7)
    assert not tensor(TensorArg("int32", (10,), (1,))).elements.any()
    assert len(np.unique(tensor(TensorArg("uint8", (9999,), (1,))).elements)) == 256


@pytest.mark.parametrize("positive", [False, True])
def test_floats_stay_in_their_range_too(positive: bool) -> None:
    ranged = tensor(TensorArg("bfloat16", (1000,), (1,), (-2, -1)), positive=positive).elements.astype(np.float32)
    assert -2 <= ranged.min() < ranged.max() <= -1
    assert not tensor(TensorArg("float32", (9,), (1,), (0, 0)), positive=positive).elements.any()


def test_shape_stride_and_alignment_are_the_launch_s() -> None:
    strided = tensor(TensorArg("float16", (4, 3), (10, 2)))
    assert len(strided.elements) == 3 * 10 + 2 * 2 + 1
    assert strided.view()[3, 2] == strided.elements[34]
    assert strided.misalignment == 0
    assert tensor(TensorArg("float16", (4,), (1,)), aligned=False).misalignment == 2
    assert tensor(TensorArg("float32", (4, 8), (0, 1))).elements.size == 8
    assert tensor(TensorArg("float32", (0, 8), (8, 1))).elements.size == 0


def test_a_large_tensor_repeats_after_a_prime_number_of_elements() -> None:
    large = tensor(TensorArg("uint8", (PERIOD + 1000,), (1,))).elements
    assert np.array_equal(large[:1000], large[PERIOD:])
    assert all(PERIOD % divisor for divisor in range(2, 2048))


def test_a_descriptor_s_tensor_is_among_the_tensors() -> None:
    described = DescriptorArg("float16", (64, 32), (32, 1), (16, 16))
    made = make_inputs(Launch("k.py", "k", {"d": "tensordesc<fp16[16, 16]>"}, {}, args={"d": described}), 0)
    assert made.blocks == {"d": (16, 16)}
    assert made.tensors["d"].view().shape == (64, 32)
    assert made.tensors["d"].misalignment == 0


def test_poison_is_nan() -> None:
    made = poisoned(make_inputs(launch("bfloat16"), 0), ("y",))
    assert np.isnan(made.tensors["y"].elements.astype(np.float32)).all()
    assert not np.isnan(made.tensors["x"].elements.astype(np.float32)).any()


@pytest.mark.parametrize(
    "bad",
    [
        launch(n=None),
        Launch("k.py", "k", {"x": "*fp32"}, {}),
        launch(x=TensorArg("float3", (1,), (1,))),
        launch(x=TensorArg("complex64", (1,), (1,))),
        launch(x=TensorArg("float32", (2,), (-1,))),
    ],
    ids=["scalar", "no arguments", "no such type", "complex", "stride"],
)
def test_inputs_that_cannot_be_made(bad: Launch) -> None:
    with pytest.raises(UnknownInputsError):
        make_inputs(bad, 0)


def test_what_is_not_known_well_enough_is_not_run() -> None:
    assert not unknown_inputs(launch())
    assert "grid" in unknown_inputs(Launch("k.py", "k", {}, {}, args={}))
    assert "arguments" in unknown_inputs(Launch("k.py", "k", {}, {}, grid=(1,)))
    assert "guessed" in unknown_inputs(Launch("k.py", "k", {}, {}, grid=(1,), args={}, origin="guessed"))
