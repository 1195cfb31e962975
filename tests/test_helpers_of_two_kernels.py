"""A helper of products that two kernels call whose extents have other names: each gets what it knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

HELPER = """import triton
import triton.language as tl


@triton.jit
def product(a, b, acc):
    return tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
"""
KERNEL = """

@triton.jit
def {name}(x_ptr, y_ptr, {m}: tl.constexpr, {k}: tl.constexpr):
    rows = tl.arange(0, {m})
    places = rows[:, None] * {k} + tl.arange(0, {k})[None, :]
    x = tl.load(x_ptr + places).to(tl.float32)
    acc = product(x, tl.trans(x), tl.zeros(({m}, {m}), tl.float32))
    tl.store(y_ptr + rows[:, None] * {m} + rows[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "k", "helpers"), [("BLOCK_M", "BLOCK_K", 1), ("ROWS", "WIDTH", 2)], ids=["same names", "other names"]
)
def test_each_has_one_that_it_can_tell_its_extents(m: str, k: str, helpers: int, tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    names = {"first": ("BLOCK_M", "BLOCK_K"), "second": (m, k)}
    path.write_text(HELPER + "".join(KERNEL.format(name=name, m=m, k=k) for name, (m, k) in names.items()))
    args = {"x_ptr": TensorArg("float16", (64, 32), (32, 1)), "y_ptr": TensorArg("float32", (64, 64), (64, 1))}
    kinds = {"x_ptr": "*fp16", "y_ptr": "*fp32"}
    launches = [
        Launch(
            path.name, name, kinds | {m: "constexpr", k: "constexpr"}, {m: 64, k: 32}, tuple(args), Options(4, 3),
            (1, 1, 1), args,
        )
        for name, (m, k) in names.items()
    ]  # fmt: skip
    port = tmp_path / "port.py"
    port.write_text(convert(path, target="sm90", launches=launches, root=tmp_path, compile=False).text)
    reports = verify(path, port, targets=["sm90"], launches=launches, root=tmp_path, run="simulate")
    assert [report.status for report in reports] == ["converted", "converted"]
    assert all(report.simulate is not None and report.simulate.bitwise for report in reports)
    assert port.read_text().count("def product") == helpers


LOOP = """import triton
import triton.language as tl


@triton.jit
def products(a_ptrs, b_ptrs, acc, n, step, K: tl.constexpr, EARLY: tl.constexpr):
    for k in range(0, n, K):
        if EARLY:
            b = tl.load(b_ptrs)
        a = tl.load(a_ptrs)
        if not EARLY:
            b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += K
        b_ptrs += K * step
    return acc
"""
CALLER = """

@triton.jit
def {name}(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, K: tl.constexpr):
    rows, ks = tl.arange(0, M), tl.arange(0, K)
    a_ptrs, b_ptrs = a_ptr + rows[:, None] * n + ks[None, :], b_ptr + ks[:, None] * M + rows[None, :]
    weights = {weights}
    acc = products(a_ptrs, b_ptrs, tl.zeros((M, M), tl.float32), n, M, K, {early}) * weights
    tl.store(c_ptr + rows[:, None] * M + rows[None, :], acc)
"""


@pytest.mark.slow
def test_a_ring_that_each_fills_by_another_load_has_one_layout(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    callers = {"first": (True, 1.0), "second": (False, "tl.load(a_ptr + rows * n)[:, None]")}
    texts = [CALLER.format(name=name, early=early, weights=weights) for name, (early, weights) in callers.items()]
    path.write_text(LOOP + "".join(texts))
    kinds = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "n": "i32", "M": "constexpr", "K": "constexpr"}
    shapes = {"a_ptr": (64, 128), "b_ptr": (128, 64), "c_ptr": (64, 64)}
    types = {"a_ptr": "float16", "b_ptr": "float16", "c_ptr": "float32"}
    args = {name: TensorArg(types[name], shape, (shape[1], 1)) for name, shape in shapes.items()} | {"n": 128}
    launches = [
        Launch(path.name, name, kinds, {"M": 64, "K": 32}, tuple(args), Options(4, 3), (1, 1, 1), args)
        for name in callers
    ]
    port = tmp_path / "port.py"
    port.write_text(convert(path, target="sm90", launches=launches, root=tmp_path, compile=False).text)
    reports = verify(path, port, targets=["sm90"], launches=launches, root=tmp_path, run="simulate")
    assert [report.status for report in reports] == ["converted", "converted"]
    assert all(report.simulate is not None and report.simulate.bitwise for report in reports)
