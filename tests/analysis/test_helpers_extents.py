"""Extents that a helper's text says: in its own words, else by a parameter that it is given for them."""

from __future__ import annotations

from pathlib import Path

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

COUNTED = """import triton
import triton.language as tl


@triton.jit
def claimed(count_ptr, bins, mask):
    return tl.atomic_add(count_ptr + bins, 1, mask=mask)


@triton.jit
def kernel(x_ptr, count_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    claimed(count_ptr, tl.load(x_ptr + at, mask=at < n, other=0), at < n)
"""

FOLDED = """import triton
import triton.language as tl


@triton.jit
def folded(x, rows: tl.constexpr, width: tl.constexpr):
    one, other = tl.split(tl.permute(tl.reshape(x, (rows, 2, width)), (0, 2, 1)))
    return one + other


@triton.jit
def scaled(x, rows: tl.constexpr):
    one, other = tl.split(tl.reshape(x, (rows, 4, 2)))
    total = folded(folded(one * one + other * other, rows, 2), rows, 1)
    return x * total


@triton.jit
def kernel(x_ptr, y_ptr, ROWS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(y_ptr + at, scaled(tl.load(x_ptr + at), ROWS))
"""


def launch(kinds: dict[str, str], tensors: dict[str, TensorArg], numbers: dict[str, int]) -> Launch:
    constexprs = {name: value for name, value in numbers.items() if name.isupper()}
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature=kinds | dict.fromkeys(constexprs, "constexpr"),
        constexprs=constexprs,
        divisible_by_16=tuple(tensors),
        options=Options(4, 3),
        grid=(1,),
        args={**tensors, **{name: value for name, value in numbers.items() if not name.isupper()}},
    )


def test_a_count_that_a_helper_makes_a_tile_of_is_of_a_size_that_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(COUNTED)
    tensors = {name: TensorArg("int32", (256,), (1,), None) for name in ("x_ptr", "count_ptr")}
    tensors["x_ptr"] = TensorArg("int32", (256,), (1,), (0, 255))
    compared(path, launch({"x_ptr": "*i32", "count_ptr": "*i32", "n": "i32"}, tensors, {"n": 200, "B": 256}), "sm90")


def test_what_a_helper_hands_on_is_not_made_of_names_that_it_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(FOLDED)
    tensor = TensorArg("float32", (32, 8), (8, 1), None)
    tensors = {"x_ptr": tensor, "y_ptr": tensor}
    compared(path, launch(dict.fromkeys(tensors, "*fp32"), tensors, {"ROWS": 32}), "sm90")
