"""Arguments made up for guessed launches."""

from __future__ import annotations

from dataclasses import replace

from tt2gl.launches import DescriptorArg, Launch, Options, TensorArg
from tt2gl.verify.made_up import is_shown, made_up, told

LAUNCH = Launch(
    file="k.py",
    kernel="k",
    signature={
        "q_ptr": "*bf16",
        "table_ptr": "*i64",
        "packed_ptr": "*u8",
        "stride_qb": "i64",
        "stride_qm": "i32",
        "in_stride": "i32",
        "n_heads": "i32",
        "M": "i32",
        "n": "i32",
        "scale": "fp32",
        "flag": "i1",
        "pair": "(*fp16, i32)",
        "tile": "tensordesc<fp16[64, 32]>",
        "pointers": "**fp16",
        "BLOCK": "constexpr",
    },
    constexprs={"BLOCK": 64},
    divisible_by_16=("q_ptr", "M", "n_heads"),
    options=Options(),
    origin="guessed",
)


def test_arguments_by_type_name_and_alignment() -> None:
    made = made_up(LAUNCH, axes=2, programs=2)
    assert made.grid == (2, 2)
    size = 1 << 21
    assert made.args == {
        "q_ptr": TensorArg("bfloat16", (size,), (1,)),
        "table_ptr": TensorArg("int64", (size,), (1,), (0.0, 3.0)),
        "packed_ptr": TensorArg("uint8", (size,), (1,)),
        "stride_qb": 1 << 16,
        "stride_qm": 256,
        "in_stride": 256,
        "n_heads": 16,
        "M": 176,
        "n": 101,
        "scale": 0.5,
        "flag": True,
        "pair": (TensorArg("float16", (size,), (1,)), 101),
        "tile": DescriptorArg("float16", (128, 64), (64, 1), (64, 32)),
        "pointers": None,
    }


def test_what_was_made_up_is_told() -> None:
    few = replace(LAUNCH, signature={"q_ptr": "*bf16", "M": "i32", "scale": "fp32"})
    assert told(made_up(few, axes=1, programs=1)) == "a grid of 1, M=176, scale=0.5"


def test_launches_that_lack_what_it_takes_to_run_them() -> None:
    assert is_shown(LAUNCH)
    assert is_shown(replace(LAUNCH, origin="found"))
    assert not is_shown(replace(LAUNCH, origin="found", grid=(1,), args={}))
    assert not is_shown(replace(LAUNCH, origin="given"))
