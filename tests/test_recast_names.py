"""Names that are cast from a load and wanted in two layouts: the second version is cast from what was loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, y_ptr, m_ptr, STEPS, BIASED: tl.constexpr, M: tl.constexpr):
    rows = tl.arange(0, M)
    offs = rows[:, None] * M + rows[None, :]
    a = tl.load(a_ptr + offs)
    for step in range(STEPS):
        {made}
        tl.store(m_ptr + step * M + rows, tl.max(bias, axis=1))
        scores = {read}
        scores += tl.dot(a, tl.trans(a))
        tl.store(y_ptr + step * M * M + offs, scores)
"""
LOADED = "tl.load(b_ptr + step * M * M + offs)"
MADE = f"bias = {LOADED}.to(tl.float32)"
READ = "tl.where(bias >= 0.0, bias, 0.0)"
TORCH = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp8e5": "float8_e5m2", "i8": "int8"}


def launch(element: str = "bf16", *, biased: bool = True) -> Launch:
    tile = TensorArg("bfloat16", (64, 64), (64, 1), None)
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "a_ptr": "*bf16", "b_ptr": f"*{element}", "y_ptr": "*fp32", "m_ptr": "*fp32", "STEPS": "i32",
            "BIASED": "constexpr", "M": "constexpr",
        },
        constexprs={"BIASED": biased, "M": 64},
        divisible_by_16=("a_ptr", "b_ptr", "y_ptr", "m_ptr"),
        options=Options(4, 1),
        grid=(1,),
        args={
            "a_ptr": tile,
            "b_ptr": TensorArg(TORCH[element], (2, 64, 64), (4096, 64, 1), None),
            "y_ptr": TensorArg("float32", (2, 64, 64), (4096, 64, 1), None),
            "m_ptr": TensorArg("float32", (2, 64), (64, 1), None),
            "STEPS": 2,
        },
    )  # fmt: skip


def write(folder: Path, made: str = MADE, read: str = READ) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(made=made, read=read))
    return path


def port_of(path: Path, *launches: Launch, target: str = "sm90") -> str:
    converted = convert(path, target=target, launches=launches, root=path.parent, compile=False)
    assert {report.status for report in converted.kernels} == {"converted"}
    return converted.text


def test_what_has_as_many_bits_is_converted_where_it_is_read(tmp_path: Path) -> None:
    port = port_of(write(tmp_path), launch("fp32"))
    assert "bias = gl.load(b_ptr + step * M * M + offs).to(gl.float32)" in port
    assert "gl.convert_layout(scores, " in port


def test_a_name_that_is_read_in_its_own_layout_alone_has_no_other(tmp_path: Path) -> None:
    port = port_of(write(tmp_path, read="tl.zeros([M, M], tl.float32)"), launch())
    assert "bias = gl.load(b_ptr + step * M * M + offs).to(gl.float32)" in port


def test_what_is_made_of_two_casts_that_have_as_many_bits_together_is_converted_itself(tmp_path: Path) -> None:
    made = f"{MADE}\n        more = tl.load(b_ptr + 2 * M * M + offs).to(tl.float32)"
    made = f"{made}\n        tl.store(m_ptr + 2 * M + rows, tl.max(more, axis=1))"
    assert "gl.convert_layout(scores, " in port_of(write(tmp_path, made=made, read="bias * more"), launch())


def test_what_a_condition_may_leave_out_is_not_loaded_beside_it(tmp_path: Path) -> None:
    made = f"bias = {LOADED}.to(tl.float32) if STEPS > 1 else tl.zeros([M, M], tl.float32)"
    port = port_of(write(tmp_path, made=made), launch())
    assert "bias_narrow" not in port
    assert "gl.convert_layout(scores, " in port
    assert port.count("gl.load(b_ptr") == 1


def test_what_a_constant_chooses_is_loaded_in_its_branch(tmp_path: Path) -> None:
    made = f"bias = {LOADED}.to(tl.float32) if BIASED else tl.zeros([M, M], tl.float32)"
    port = port_of(write(tmp_path, made=made), launch())
    assert "if BIASED:\n            bias_narrow = gl.load(b_ptr + step * M * M + offs)\n" in port


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm80", "gfx942"])
@pytest.mark.parametrize("element", ["bf16", "fp8e5"])
def test_another_version_is_cast_from_what_was_loaded(tmp_path: Path, element: str, target: str) -> None:
    path = write(tmp_path)
    port = port_of(path, launch(element), target=target)
    assert "bias = bias_narrow.to(gl.float32)" in port
    assert "= gl.convert_layout(bias_narrow, " in port
    _, triton, gluon = compared(path, launch(element), target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes


@pytest.mark.slow
def test_a_name_that_is_cast_to_itself_is_converted_before_that(tmp_path: Path) -> None:
    path = write(tmp_path, made=f"bias = {LOADED}\n        bias = bias.to(tl.float32)")
    lines = [line.strip() for line in port_of(path, launch()).splitlines()]
    at = lines.index("bias = bias.to(gl.float32)")
    assert "= gl.convert_layout(bias, " in lines[at - 1]
    assert lines[at - 1].endswith(".to(gl.float32)")
    compared(path, launch(), "sm90")


def test_launches_of_which_one_casts_to_more_bits_share_a_text(tmp_path: Path) -> None:
    path = write(tmp_path)
    launches = launch(), replace(launch("fp32"), constexprs={"BIASED": True, "M": 64})
    port = port_of(path, *launches)
    assert port.count("= gl.convert_layout(bias_narrow, ") == 1
    assert port.count("@gluon.jit\ndef ") == 1
