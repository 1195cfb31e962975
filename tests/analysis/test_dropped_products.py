"""Products of a loop that has no turn under some of a kernel's launches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, v_ptr, o_ptr, H: tl.constexpr, T: tl.constexpr, M: tl.constexpr, FEED: tl.constexpr):
    rows = tl.arange(0, M)
    at = rows[:, None] * M + rows[None, :]
    given = tl.load(x_ptr + at)
    total = tl.dot(given, given)
    x = total.to(tl.float16)
    for start in range(0, H if FEED else 0, T):
        hidden = start + tl.arange(0, T)
        inner = tl.dot(x, tl.load(w_ptr + rows[:, None] * H + hidden[None, :]))
        total += tl.dot(inner.to(tl.float16), tl.load(v_ptr + hidden[:, None] * M + rows[None, :]))
    tl.store(o_ptr + at, total)
"""


def test_operands_that_no_turn_takes_say_nothing_of_their_width(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    tensors = {
        "x_ptr": TensorArg("float16", (64, 64), (64, 1), None),
        "w_ptr": TensorArg("float16", (64, 128), (128, 1), None),
        "v_ptr": TensorArg("float16", (128, 64), (64, 1), None),
        "o_ptr": TensorArg("float32", (64, 64), (64, 1), None),
    }
    feeding = {"H": 128, "T": 64, "M": 64, "FEED": True}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(tensors, "*fp16"), "o_ptr": "*fp32", **dict.fromkeys(feeding, "constexpr")},
        constexprs=feeding,
        divisible_by_16=tuple(tensors),
        options=Options(4, 3),
        grid=(1,),
        args=tensors,
    )
    launches = [replace(launch, constexprs={**feeding, "FEED": False}), launch]
    reports = verify(path, targets=["sm90"], launches=launches, root=path.parent, run="simulate")
    assert [report.status for report in reports] == ["converted"] * 2
    assert [report.simulate is not None and report.simulate.equal for report in reports] == [True] * 2
