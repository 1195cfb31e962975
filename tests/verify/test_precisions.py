"""Products of float32 that Triton's compiler rounds to TF32 on Blackwell, whatever they ask: so are those simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(x_ptr + places).to(tl.float32), tl.load(y_ptr + places).to(tl.float32)
    tl.store(o_ptr + places, tl.dot(x * 3, y, input_precision="PRECISION"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("target", "instruction"), [("sm100", "tcgen05.mma.tf32"), ("sm90", "")])
@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_a_port_computes_what_the_compiled_kernel_does(
    target: str, instruction: str, element: str, precision: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("PRECISION", precision))
    name = {"float16": "*fp16", "float32": "*fp32"}[element]
    args = {each: TensorArg(element, (64, 64), (64, 1)) for each in ("x_ptr", "y_ptr")}
    args["o_ptr"] = TensorArg("float32", (64, 64), (64, 1))
    kinds = {"x_ptr": name, "y_ptr": name, "o_ptr": "*fp32", "N": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"N": 64}, tuple(args), Options(4, 3), (1, 1, 1), args)
    report, theirs, ours = compared(path, launch, target)
    assert theirs.mma.keys() == ours.mma.keys()
    assert report.simulate is not None
    assert report.simulate.bitwise
    if instruction and precision == "ieee" and element == "float16":
        assert instruction in theirs.mma
