"""Helpers whose operands have fewer dimensions under one caller than under another, or are numbers there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

HEAD = """import triton
import triton.language as tl


@triton.jit
def scaled(x, w):
    return x * w
"""
KERNEL = """

@triton.jit
def {name}(x_ptr, w_ptr, o_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    w = tl.load(w_ptr + columns)
    tl.store(o_ptr + rows[:, None] * N + columns[None, :], {value})
"""
ROW, WHOLE, NUMBER = "scaled(x, w)", "scaled(x, x)", "scaled(x, 0.5)"


def converted(folder: Path, **values: str) -> str:
    """The text of a file with a kernel for each of `values`, all of which are converted."""
    path = folder / "kernels.py"
    path.write_text(HEAD + "".join(KERNEL.format(name=name, value=value) for name, value in values.items()))
    kinds = {**dict.fromkeys(("x_ptr", "w_ptr", "o_ptr"), "*fp32"), "M": "constexpr", "N": "constexpr"}
    launches = [Launch(path.name, name, kinds, {"M": 16, "N": 64}, options=Options(4, 3)) for name in values]
    made = convert(path, target="sm80", launches=launches, root=folder, compile=True)
    assert [report.status for report in made.kernels] == ["converted"] * len(values)
    return made.text


def test_callers_that_agree_share_one(tmp_path: Path) -> None:
    text = converted(tmp_path, first=ROW, second=ROW)
    assert text.count("def scaled") == 1
    assert text.count("x * w[None, :]") == 1


@pytest.mark.parametrize("other", [WHOLE, NUMBER])
def test_kernels_that_differ_have_one_each(other: str, tmp_path: Path) -> None:
    text = converted(tmp_path, first=ROW, second=other)
    assert text.count("def scaled") == 2
    assert text.count("return x * w[None, :]") == 1
    assert text.count("return x * w\n") == 1


@pytest.mark.parametrize(("other", "text"), [(WHOLE, "(x * x)"), (NUMBER, "(x * 0.5)")])
def test_calls_of_one_kernel_that_differ_are_written_out(other: str, text: str, tmp_path: Path) -> None:
    made = converted(tmp_path, kernel=f"{ROW} + {other}")
    assert f"(x * w[None, :]) + {text})" in made


SCALED = """import triton
import triton.language as tl


@triton.jit
def k(a_ptr, s_ptr, o_ptr):
    rows, bytes, scales = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 2)
    for at in range(0, 128, 32):
        a = tl.load(a_ptr + rows[:, None] * 128 + (at + bytes)[None, :])
        s = tl.load(s_ptr + rows[:, None] * 8 + (at // 16 + scales)[None, :])
        acc = tl.dot_scaled(a, s, "e2m1", a.T, s, "e2m1")
        tl.store(o_ptr + rows[:, None] * 64 + rows[None, :], acc)
"""


def test_the_format_of_an_operand_is_no_number(tmp_path: Path) -> None:
    """Its place stands for the operand in 16 bits, which is converted."""
    file = tmp_path / "k.py"
    file.write_text(SCALED)
    launch = Launch("k.py", "k", {"a_ptr": "*u8", "s_ptr": "*u8", "o_ptr": "*fp32"}, {}, options=Options(4, 3))
    (report,) = convert(file, target="sm80", launches=[launch], root=tmp_path, compile=False).kernels
    assert report.status == "converted", report.diagnostics


def test_a_helper_of_another_file_is_brought_along_to_be_written_out(tmp_path: Path) -> None:
    (tmp_path / "scaling.py").write_text(HEAD)
    text = HEAD.partition("\n\n")[0] + "\n\nfrom scaling import scaled\n"
    (tmp_path / "kernels.py").write_text(text + KERNEL.format(name="kernel", value=f"{ROW} + {NUMBER}"))
    kinds = {**dict.fromkeys(("x_ptr", "w_ptr", "o_ptr"), "*fp32"), "M": "constexpr", "N": "constexpr"}
    launch = Launch("kernels.py", "kernel", kinds, {"M": 16, "N": 64}, options=Options(4, 3))
    made = convert(tmp_path / "kernels.py", target="sm80", launches=[launch], root=tmp_path, compile=True)
    assert [report.status for report in made.kernels] == ["converted"]
    assert "(x * 0.5)" in made.text
