"""Operands that a product has from memory under some launches, and by a conversion under others: a body for each."""

from __future__ import annotations

from pathlib import Path

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, x_ptr, y_ptr, n, B: tl.constexpr, GIVEN: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    if GIVEN:
        a = tl.load(a_ptr + rows * B + columns)
    else:
        x = tl.load(x_ptr + rows * B + columns)
        a = tl.dot(x, x)
    a = tl.where(rows <= columns, a, 0).to(tl.float16)
    for i in range(n):
        x = tl.load(x_ptr + i * B * B + rows * B + columns)
        tl.store(y_ptr + i * B * B + rows * B + columns, tl.dot(a.to(x.dtype), x))
"""


def test_launches_that_bring_an_operand_in_two_ways_get_a_body_each(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    types = {"a_ptr": ("*fp32", "float32"), "x_ptr": ("*fp16", "float16"), "y_ptr": ("*fp32", "float32")}
    tensors = {name: TensorArg(each, (128, 64), (64, 1), None) for name, (_, each) in types.items()}
    launches = [
        Launch(
            file="kernel.py",
            kernel="kernel",
            signature={**{n: t for n, (t, _) in types.items()}, "n": "i32", "B": "constexpr", "GIVEN": "constexpr"},
            constexprs={"B": 64, "GIVEN": given},
            divisible_by_16=tuple(types),
            options=Options(4, 3),
            grid=(1,),
            args={**tensors, "n": 2},
        )
        for given in (False, True)
    ]
    made = convert(path, target="sm90", launches=launches, root=tmp_path)
    assert [report.status for report in made.kernels] == ["converted"] * 2
    assert "if GIVEN:" in made.text
    for launch in launches:
        equal(path, KERNEL, made.text, launch, "sm90")
