"""Loops that write what their loads read: nothing is loaded before it is written, whole kernels compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import HEADER, converted, equal
from tt2gl.launches import Launch, Options, TensorArg

POINTERS = """
    rows, columns, depth = tl.arange(0, B), tl.arange(0, B), tl.arange(0, BK)
    for turn in tl.range(0, turns, flatten=True):
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, BK):
            x = tl.load(x_ptr + (turn * B + rows)[:, None] * 64 + k + depth[None, :])
            acc = tl.dot(x, tl.load(w_ptr + (k + depth)[:, None] * 64 + columns[None, :]), acc)
        tl.store(x_ptr + (turn * B + B + rows)[:, None] * 64 + columns[None, :], (acc * 0.1).to(tl.float16))
"""
TILES = """
    x = tl.make_tensor_descriptor(x_ptr, (256, 64), (64, 1), (B, BK))
    w = tl.make_tensor_descriptor(w_ptr, (64, 64), (64, 1), (BK, B))
    y = tl.make_tensor_descriptor(x_ptr, (256, 64), (64, 1), (B, B))
    for turn in tl.range(0, turns, flatten=True):
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(x.load([turn * B, k]), w.load([k, 0]), acc)
        y.store([turn * B + B, 0], (acc * 0.1).to(tl.float16))
"""
WITHIN = """
    x = tl.make_tensor_descriptor(x_ptr, (256, 64), (64, 1), (B, BK))
    w = tl.make_tensor_descriptor(w_ptr, (64, 64), (64, 1), (BK, B))
    y = tl.make_tensor_descriptor(x_ptr, (256, 64), (64, 1), (B, B))
    acc = tl.zeros((B, B), tl.float32)
    for turn in range(turns):
        acc = tl.dot(x.load([turn * B, K - BK]), w.load([K - BK, 0]), acc)
        y.store([turn * B + B, 0], (acc * 0.1).to(tl.float16))
"""


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.parametrize(
    ("body", "target", "codes"),
    [
        pytest.param(POINTERS, "sm90", [], id="pointers, from turn to turn"),
        pytest.param(TILES, "sm90", [], id="tiles, from turn to turn"),
        pytest.param(TILES.replace("flatten=", "warp_specialize=True, flatten="), "sm100", ["TTG332"], id="warps"),
        pytest.param(WITHIN, "sm90", ["TTG331"], id="tiles, in one loop"),
    ],
)
def test_what_a_loop_writes_is_loaded_after_it(body: str, target: str, codes: list[str], tmp_path: Path) -> None:
    text = f"{HEADER}def kernel(x_ptr, w_ptr, turns, K, B: tl.constexpr, BK: tl.constexpr):{body}"
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "w_ptr": "*fp16", "turns": "i32", "K": "i32", "B": "constexpr", "BK": "constexpr"},
        constexprs={"B": 64, "BK": 32},
        divisible_by_16=("x_ptr", "w_ptr", "K"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "x_ptr": TensorArg("float16", (256, 64), (64, 1), None),
            "w_ptr": TensorArg("float16", (64, 64), (64, 1), None),
            "turns": 3,
            "K": 64,
        },
    )
    path = tmp_path / "kernel.py"
    port, said = converted(path, text, launch, target)
    assert said == codes
    equal(path, text, port, launch, target)
