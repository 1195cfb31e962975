"""Names that branches bind under flags of the compilation, and the last iterations of loops with rings under such."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.pipelining.flags import bound_in_any_case, flags_over, lasting_under_flags
from tt2gl.results import CompileResult
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, z_ptr, o_ptr, K, GROUPED: tl.constexpr, B: tl.constexpr, N: tl.constexpr):
    rows, columns, depth = tl.arange(0, B), tl.arange(0, N), tl.arange(0, B)
    a_ptrs = a_ptr + rows[:, None] * K + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * N + columns[None, :]
    {before}
    acc = tl.zeros((B, N), tl.float32)
    for k in range(0, tl.cdiv(K, B)):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        if GROUPED:
            scale = tl.load(s_ptr + k * N + columns)
            zero = tl.load(z_ptr + k * N + columns)
            zero = (zero & 15) * scale
        b = ((b & 15) * scale[None, :] - zero[None, :]).to(a.dtype)
        acc += tl.dot(a, b)
        a_ptrs += B
        b_ptrs += B * N
    tl.store(o_ptr + rows[:, None] * N + columns[None, :], acc)
"""
FIRST = """if not GROUPED:
        scale = tl.load(s_ptr + columns)
        zero = tl.load(z_ptr + columns) * scale"""


def loop_of(body: str, above: str = "") -> tuple[ast.FunctionDef, ast.For]:
    text = f"def kernel(n, x):\n{above}    for k in range(n):\n" + "".join(
        f"        {each}\n" for each in body.split("; ")
    )
    (function,) = ast.parse(text.replace(" >> ", "\n            ")).body
    assert isinstance(function, ast.FunctionDef)
    return function, next(each for each in function.body if isinstance(each, ast.For))


def is_flag(test: ast.expr) -> bool:
    return ast.unparse(test).removeprefix("not ").isupper()


@pytest.mark.parametrize(
    "body",
    [
        "x = x + k",
        "if FLAG: >> x = x + k",
        "if other: >> x = k; y = x",
        "y = x; if FLAG: >> x = k",
        "if FLAG: >> x = k; x = x + 1",
    ],
)
def test_what_a_turn_reads_before_it_binds_it_lasts(body: str) -> None:
    assert lasting_under_flags(loop_of(body)[1], frozenset("x"), frozenset(), is_flag) == {"x"}


def test_what_is_read_after_the_loop_lasts() -> None:
    _, loop = loop_of("if FLAG: >> x = k; y = x")
    assert lasting_under_flags(loop, frozenset("x"), frozenset("x"), is_flag) == {"x"}


@pytest.mark.parametrize("body", ["if FLAG: >> x = k; y = x", "if FLAG: >> x = k; if FLAG: >> y = x"])
def test_what_each_turn_binds_under_a_flag_lasts_under_none(body: str) -> None:
    assert not lasting_under_flags(loop_of(body)[1], frozenset("x"), frozenset(), is_flag)


def test_names_that_branches_alone_bind_have_no_value_in_any_case() -> None:
    function, loop = loop_of("y = x", "    if FLAG:\n        z = 1\n    w = 2\n")
    assert bound_in_any_case(function, loop) == {"n", "x", "w"}


@pytest.mark.parametrize(
    ("body", "flags"),
    [
        ("if FLAG: >> x = x + k", ("FLAG",)),
        ("if FLAG: >> x = x + k; else: >> y = k", ("FLAG",)),
        ("if FLAG: >> y = k; else: >> x = x + k", ("not FLAG",)),
        ("if FLAG: >> x = x + k; x = x + 1", ()),
        ("if FLAG: >> x = x + k; else: >> x = x - k", ()),
        ("if other: >> x = x + k", ()),
    ],
)
def test_flags_that_all_assignments_stand_under(body: str, flags: tuple[str, ...]) -> None:
    assert flags_over(loop_of(body)[1], "x", is_flag) == flags


def launch(*, grouped: bool) -> Launch:
    shapes = {"a_ptr": (64, 128), "b_ptr": (128, 64), "s_ptr": (4, 64), "z_ptr": (4, 64), "o_ptr": (64, 64)}
    kinds = {"a_ptr": "fp16", "b_ptr": "i32", "s_ptr": "fp16", "z_ptr": "i32", "o_ptr": "fp32"}
    names = {"fp16": "float16", "i32": "int32", "fp32": "float32"}
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **{name: f"*{kind}" for name, kind in kinds.items()},
            "K": "i32",
            **dict.fromkeys(("GROUPED", "B", "N"), "constexpr"),
        },
        constexprs={"GROUPED": grouped, "B": 32, "N": 64},
        divisible_by_16=(*shapes, "K"),
        options=Options(4, 3),
        grid=(1,),
        args={name: TensorArg(names[kinds[name]], shape, (shape[1], 1)) for name, shape in shapes.items()} | {"K": 128},
    )


def write(folder: Path, before: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(before=before))
    return path


@pytest.mark.slow
def test_last_iterations_are_apart_where_a_flag_takes_some_rings_away(tmp_path: Path) -> None:
    path = write(tmp_path, FIRST)
    launches = [launch(grouped=True), launch(grouped=False)]
    made = convert(path, target="gfx942", launches=launches[:1], root=tmp_path, compile=False).text
    last = made[made.index("# the last iterations") :]
    assert "static_range" in last
    assert "scale_before" not in made
    _, triton, gluon = compared(path, launches[0], "gfx942")
    assert (gluon.registers or 0) <= (triton.registers or 0)
    assert gluon.mma == triton.mma


NONE_BUT_UNDER_A_FLAG = (
    KERNEL.replace("    {before}\n", "    bias_ptrs = z_ptr + columns if BIASED else None\n")
    .replace("            zero = tl.load(z_ptr + k * N + columns)\n            zero = (zero & 15) * scale\n", "")
    .replace(
        "        b = ((b & 15) * scale[None, :] - zero[None, :]).to(a.dtype)\n        acc += tl.dot(a, b)\n",
        "            b = (b & 15) * scale[None, :]\n        acc += tl.dot(a, b.to(a.dtype))\n"
        "        if BIASED:\n            acc += tl.load(bias_ptrs)[None, :]\n            bias_ptrs += N\n",
    )
)


@pytest.mark.slow
def test_what_is_none_without_a_flag_is_kept_under_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        NONE_BUT_UNDER_A_FLAG.replace("GROUPED: tl.constexpr", "GROUPED: tl.constexpr, BIASED: tl.constexpr")
    )
    asked = launch(grouped=True)
    asked = replace(
        asked,
        signature={**asked.signature, "BIASED": "constexpr"},
        constexprs={**asked.constexprs, "BIASED": False},
    )
    made = convert(path, target="gfx942", launches=[asked], root=tmp_path)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    last = made.text[made.text.index("# the last iterations") :]
    assert "if BIASED:\n            bias_offsets = gl.where(exists, bias_offsets, bias_offsets_before)" in last


EITHER_KIND = (
    KERNEL[: KERNEL.index("    a_ptrs = ")]
    + """    if not GROUPED:
        a_ptrs = a_ptr + rows[:, None] * K + depth[None, :]
    acc = tl.zeros((B, N), tl.float32)
    for k in range(0, tl.cdiv(K, B)):
        if GROUPED:
            a = tl.load(a_ptr + rows[:, None] * K + k * B + depth[None, :])
        else:
            a = tl.load(a_ptrs)
            a_ptrs += B
        b = tl.load(b_ptr + (k * B + depth)[:, None] * N + columns[None, :])
        acc += tl.dot(a, b.to(a.dtype))
    if not GROUPED:
        acc += tl.sum(tl.load(a_ptrs - K))
    tl.store(o_ptr + rows[:, None] * N + columns[None, :], acc)
"""
)


def test_what_a_flag_alone_gives_a_value_runs_ahead_under_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(EITHER_KIND)
    made = convert(path, target="gfx1100", launches=[launch(grouped=True)], root=tmp_path)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "if not GROUPED:\n        a_offsets_ahead = a_offsets" in made.text


TURNED = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, K, TURNED: tl.constexpr, B: tl.constexpr):
    rows, columns, depth = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    a_ptrs = a_ptr + rows[:, None] * K + depth[None, :]
    if TURNED:
        b_ptrs = b_ptr + columns[None, :] * K + depth[:, None]
        step = B
    else:
        b_ptrs = b_ptr + depth[:, None] * K + columns[None, :]
        step = B * K
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, tl.cdiv(K, B)):
        a = tl.load(a_ptrs, mask=depth[None, :] < K - k * B, other=0.0)
        if TURNED:
            b = tl.load(b_ptrs, mask=depth[:, None] < K - k * B, other=0.0)
        else:
            b = tl.load(b_ptrs, mask=depth[:, None] < K - k * B, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += B
        b_ptrs += step
    tl.store(o_ptr + rows[:, None] * B + columns[None, :], acc)
"""


def test_a_ring_that_a_flag_fills_in_another_order_has_the_layout_of_each(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(TURNED)
    shapes = {"a_ptr": (64, 128), "b_ptr": (128, 128), "o_ptr": (64, 64)}
    kinds = {"a_ptr": "fp16", "b_ptr": "fp16", "o_ptr": "fp32"}
    args = {name: TensorArg(f"float{kinds[name][2:]}", shape, (shape[1], 1)) for name, shape in shapes.items()}
    launches = [
        Launch(
            file="kernel.py",
            kernel="kernel",
            signature={**{n: f"*{k}" for n, k in kinds.items()}, "K": "i32", "TURNED": "constexpr", "B": "constexpr"},
            constexprs={"TURNED": turned, "B": 64},
            divisible_by_16=(*shapes, "K"),
            options=Options(4, 3),
            grid=(1,),
            args={**args, "K": 128},
        )
        for turned in (False, True)
    ]
    for report in verify(path, targets=["sm90"], launches=launches, root=tmp_path, run="simulate"):
        assert report.status == "converted", report.diagnostics
        assert report.simulate is not None
        assert (report.simulate.equal, report.simulate.findings) == (True, ())
        assert shared_figures(report.gluon) == shared_figures(report.triton)


def shared_figures(compiled: CompileResult | None) -> list[object]:
    """What a port is to share with Triton's own kernel."""
    assert compiled is not None
    assert compiled.metrics is not None
    return [getattr(compiled.metrics, name) for name in ("mma", "step_copies", "rings", "shared_bytes")]
