"""Matrix products in the analysis of whole kernels: what Triton does with them where the source says more or less."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tt2gl.launches import Launch

pytestmark = pytest.mark.once

TILES = """
    @triton.jit
    def kernel(a, b, c, d, M: tl.constexpr):
        i = tl.arange(0, M)
        o = i[:, None] * M + i[None, :]
        x = tl.load(a + o)
        y = tl.load(b + o)
        {}
"""
Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

POINTERS = "a=*fp16 b=*fp16 c=*fp32 d=*fp32"


@pytest.fixture
def made(port: Callable[..., str], launch: Callable[..., Launch]) -> Callable[[str], str]:
    """The lines of a kernel on two tiles, converted and compiled."""

    def apply(*lines: str, target: str = "sm90") -> str:
        return port(TILES.format("\n        ".join(lines)), launch(POINTERS, M=64), target=target)

    return apply


@pytest.mark.parametrize(
    ("target", "product"), [("sm90", "warpgroup_mma(x_smem, y_smem"), ("gfx1201", "gl.amd.rdna4.wmma(")]
)
def test_products_that_triton_computes_once_stay_two(made: Callable[..., str], target: str, product: str) -> None:
    lines = ["tl.store(c + o, tl.dot(x, y) * y)", "tl.store(d + i, tl.sum(tl.dot(x, y) * x, axis=1))"]
    assert made(*lines, target=target).count(product) == 2


def test_a_pair_alone_is_no_pairs(made: Callable[..., str]) -> None:
    lines = ["z = tl.reshape(tl.load(a + tl.arange(0, 2)), (1, 2))", "tl.store(d + tl.arange(0, 2)[None, :], z)"]
    assert "gl.reshape(" in made(*lines, "tl.store(c + o, tl.dot(x, y))")


def test_a_product_is_added_to_what_was_loaded(made: Callable[..., str]) -> None:
    text = made("s = tl.load(c + o)", "s += tl.dot(x, y)", "tl.store(c + o, s)")
    assert "s_before = gl.convert_layout(s, mma_layout)\n" in text
    assert "warpgroup_mma(x_smem, y_smem, s_before)" in text


@pytest.mark.parametrize(
    ("lines", "start"),
    [
        # What Triton's compiler does not add into the product: of fewer dimensions, and read elsewhere.
        (["s = tl.load(d + i) + tl.dot(x, y)"], "gl.zeros([M, M], gl.float32, mma_layout)"),
        (["p = tl.dot(x, y)", "s = p + 1.0", "tl.store(d + o, p)"], "gl.zeros([M, M], gl.float32, mma_layout)"),
        (["s = tl.load(a + o)", "s += tl.dot(x, y)"], "gl.convert_layout(s, mma_layout).to(gl.float32)"),
        (["s = tl.dot(x, y) + tl.load(d + i)[None, :]"], "gl.load(d + i_mma)[None, :].broadcast_to([M, M])"),
        (
            ["s = tl.load(a + i)[:, None] + tl.dot(x, y)"],
            "gl.load(a + i_mma)[:, None].to(gl.float32).broadcast_to([M, M])",
        ),
        (["s = tl.dot(x, y)", "s += 1.5"], "gl.full([M, M], 1.5, gl.float32, mma_layout)"),
        (["s = tl.dot(x, y) + tl.load(d)"], "gl.full([M, M], gl.load(d), gl.float32, mma_layout)"),
    ],
)
def test_a_product_starts_from_what_triton_makes_of_what_it_is_added_to(
    made: Callable[..., str], lines: list[str], start: str
) -> None:
    text = made(*lines, "tl.store(c + o, s)")
    # What is loaded or converted is so above the product's fence.
    above = "load" in start or "convert_layout" in start
    assert not above or f"_before = {start}\n" in text
    assert re.search(rf"warpgroup_mma\(x_smem, y_smem, {r'[sp]_before' if above else re.escape(start)}\)", text)
    assert "+ 1.5" not in text


@pytest.mark.parametrize("target", ["sm80", "sm100", "gfx942", "gfx1250"])
def test_a_product_starts_from_a_row_on_every_target(made: Callable[..., str], target: str) -> None:
    text = made("s = tl.dot(x, y) + tl.load(a + i)[None, :]", "tl.store(c + o, s)", target=target)
    assert ".to(gl.float32).broadcast_to([M, M])" in text


@pytest.mark.parametrize("scanned", ["tl.dot(x, y)", "tl.sum(x, axis=1)"])
def test_only_blocked_layouts_are_scanned(made: Callable[..., str], scanned: str) -> None:
    place = "o" if "dot" in scanned else "i"
    text = made(f"s = {scanned}", f"tl.store(c + {place}, tl.cumsum(s, axis=0))")
    assert "tl.cumsum(gl.convert_layout(s, " in text


BOTH = """
    @triton.jit
    def both(a, b, c, d):
        return a + b + c, d
"""


def test_pairs_of_which_one_is_made_from_nothing_are_scanned(port: Port, launch: MakeLaunch) -> None:
    lines = (
        "s = tl.dot(x, y)",
        "before, last = tl.associative_scan((tl.zeros_like(s), s), axis=1, combine_fn=both)",
        "tl.store(c + o, before)",
    )
    text = port(BOTH + TILES.format("\n        ".join(lines)), launch(POINTERS, M=64))
    assert "gl.associative_scan(" in text
    assert "gl.convert_layout(s, a_layout)), axis=1" in text


def test_a_product_that_another_takes_from_memory(port: Port, launch: MakeLaunch) -> None:
    inner = 'tl.dot(x, y, input_precision="ieee")'
    text = port(
        TILES.format(f'tl.store(c + o, tl.dot({inner}, y, input_precision="ieee"))'),
        launch("a=*fp32 b=*fp32 c=*fp32 d=*fp32", M=16),
    )
    assert text.count("gl.dot_fma(") == 2
    assert re.search(r"gl\.dot_fma\(\s*\w+_smem\.load\(", text)


def test_a_tile_too_narrow_to_be_copied_ahead_is_loaded_where_it_is_read(made: Callable[..., str]) -> None:
    text = made(
        "s = tl.zeros([M, M], tl.float32)",
        "for j in range(0, 8):",
        "    z = tl.load(b + j * M * M + o)",
        "    g = tl.load(a + j * M + i)",
        "    s += tl.dot(x * g[:, None], z)",
        "tl.store(c + o, s)",
    )
    assert "z_buf" in text
    assert "g_buf" not in text


def test_two_tiles_of_one_name_in_one_turn_of_a_loop_have_rings_of_their_own(made: Callable[..., str]) -> None:
    text = made(
        "s = tl.zeros([M, M], tl.float32)",
        "for j in range(0, 8):",
        "    z = tl.load(b + j * M * M + o)",
        "    s = tl.dot(x, z, s)",
        "    z = tl.load(a + j * M * M + o)",
        "    s = tl.dot(x, z, s)",
        "tl.store(c + o, s)",
    )
    assert "z_buf = " in text
    assert "z_2_buf = " in text


@pytest.mark.parametrize(("kind", "rings"), [("*fp16", 1), ("*bf16", 2)])
def test_tiles_of_one_name_in_two_loops_share_a_ring_where_their_elements_are_of_one_type(
    port: Port, launch: MakeLaunch, kind: str, rings: int
) -> None:
    lines = ["s = tl.zeros([M, M], tl.float32)"]
    for pointer in "bd":
        lines += ["for j in range(0, 8):", f"    z = tl.load({pointer} + j * M * M + o)"]
        lines += ["    s = tl.dot(x.to(z.dtype), z, s)"]
    text = port(TILES.format("\n        ".join([*lines, "tl.store(c + o, s)"])), launch(f"{POINTERS[:-5]}{kind}", M=64))
    assert len(set(re.findall(r"\bz\w*_buf(?= = )", text))) == rings


SIDES = """
    @triton.jit
    def kernel(a, b, c, n, R: tl.constexpr, W: tl.constexpr, WIDE_LAST: tl.constexpr):
        k = tl.arange(0, 64)
        r = tl.arange(0, R)
        w = tl.arange(0, W)
        if WIDE_LAST:
            s = tl.zeros([R, W], tl.float32)
        else:
            s = tl.zeros([W, R], tl.float32)
        for j in range(0, n):
            if WIDE_LAST:
                x = tl.load(a + (j * 64 + k)[:, None] * R + r[None, :])
                y = tl.load(b + (j * 64 + k)[:, None] * W + w[None, :])
                s += tl.dot(tl.trans(x), y)
            else:
                x = tl.load(b + (j * 64 + k)[:, None] * W + w[None, :])
                y = tl.load(a + (j * 64 + k)[:, None] * R + r[None, :])
                s += tl.dot(tl.trans(x), y)
        if WIDE_LAST:
            tl.store(c + r[:, None] * W + w[None, :], s)
        else:
            tl.store(c + w[:, None] * R + r[None, :], s)
"""


@pytest.mark.slow
def test_tiles_of_one_name_that_no_launch_has_both_of_share_no_ring_where_they_are_of_other_extents(
    port: Port, launch: MakeLaunch
) -> None:
    launches = [launch("a=*fp16 b=*fp16 c=*fp32 n=i32", R=64, W=128, WIDE_LAST=last) for last in (True, False)]
    text = port(SIDES, *launches)
    shapes = re.findall(r"\b(\w+)_buf = gl.allocate_shared_memory\([^\[]*\[\w+, (\w+), (\w+)\]", text)
    assert sorted(shapes) == [("x", "64", "R"), ("x_2", "64", "W"), ("y", "64", "W"), ("y_2", "64", "R")]


OPTIONAL = """
    @triton.jit
    def kernel(a, b, c, n, M: tl.constexpr, BOTH: tl.constexpr):
        i = tl.arange(0, M)
        o = i[:, None] * M + i[None, :]
        s = tl.zeros([M, M], tl.float32)
        e = tl.zeros([M, M], tl.float32) if BOTH else None
        for j in range(0, n):
            x = tl.load(a + j * M * M + o)
            y = tl.load(b + j * M * M + o)
            s = tl.dot(x, y, s)
            if BOTH:
                e = tl.dot(y, x, e)
        tl.store(c + o, s)
        if BOTH:
            tl.store(c + M * M + o, e)
"""


@pytest.mark.slow
def test_a_sum_that_a_flag_leaves_out_compiles_with_and_without_it(port: Port, launch: MakeLaunch) -> None:
    launches = [launch("a=*fp16 b=*fp16 c=*fp32 n=i32", M=64, BOTH=both) for both in (True, False)]
    assert "    if BOTH:\n        e_tmem = " in port(OPTIONAL, *launches, target="sm100")


CALLED = """
    @triton.jit
    def add(s, x, b, o, start, M: tl.constexpr, SHIFT: tl.constexpr):
        for j in range(start, start + 4):
            s = tl.dot({}, tl.load(b + j * M * M + o).to({}.dtype), s)
        return s


    @triton.jit
    def kernel(a, b, c, d, M: tl.constexpr):
        i = tl.arange(0, M)
        o = i[:, None] * M + i[None, :]
        x = tl.load(a + o)
        s = add(tl.zeros([M, M], tl.float32), x, b, o, 0, M, 0)
        s = add(s, {}, b, o, 4, M, 1)
        tl.store(c + o, s)
"""


@pytest.mark.slow
def test_an_argument_that_is_more_than_an_operand_stays_in_registers(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    text = port(CALLED.format("x + SHIFT", "x", "x"), launch(POINTERS, M=64))
    assert "x_smem" not in text


@pytest.mark.slow
def test_an_argument_that_a_product_reads_is_in_shared_memory_once_for_all_calls(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    text = " ".join(port(CALLED.format("x", "x", "x"), launch(POINTERS, M=64)).split())
    assert text.count("x_smem, b, ") == 2
    assert text.count("gl.allocate_shared_memory(x.dtype") == 1
    assert "warpgroup_mma(x, " in text


@pytest.mark.slow
def test_kernels_that_give_a_helper_different_things_have_texts_that_compile(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    """One has the argument in shared memory and the other in registers."""
    text = CALLED.format("x", "x", "x")
    other = (
        text[text.index("    @triton.jit\n    def kernel") :]
        .replace("def kernel", "def other")
        .replace("s, x", "s, x * 2")
    )
    both = [launch(POINTERS, M=64), replace(launch(POINTERS, M=64), kernel="other")]
    assert port(f"{text}\n\n{other}", *both)
    assert port(CALLED.format("x", "x", "x * 2"), both[0])


FLAGGED = """
    @triton.jit
    def kernel(a, b, c, d, n, SUMMED: tl.constexpr):
        i = tl.arange(0, 64)
        o = i[:, None] * 64 + i[None, :]
        s = tl.zeros([64, 64], tl.float32)
        t = tl.zeros([64, 64], tl.float32)
        for k in range(n):
            x = tl.load(a + k * 4096 + o)
            y = tl.load(b + k * 4096 + o)
            s += tl.dot(x, y)
            t += tl.dot(y, x)
        tl.store(c + o, t)
        if SUMMED:
            tl.store(d + o, s)
"""


@pytest.mark.slow
def test_a_product_that_some_launches_do_not_need(port: Port, launch: MakeLaunch) -> None:
    types = f"{POINTERS} n=i32"
    text = port(FLAGGED, launch(types, SUMMED=True), launch(types, SUMMED=False))
    assert "def kernel_" not in text
    assert text.count("warpgroup_mma(") == 2


def test_ordinary_instructions_read_both_operands_once_both_are_in_memory(port: Port, launch: MakeLaunch) -> None:
    product = 'tl.dot(tl.exp(x), tl.exp(y), input_precision="ieee")'
    text = port(TILES.format(f"tl.store(c + o, {product})"), launch("a=*fp32 b=*fp32 c=*fp32 d=*fp32", M=32))
    put, made = text[: text.index("gl.dot_fma(")], text[text.index("gl.dot_fma(") :]
    assert put.count("gl.allocate_shared_memory(") == 2
    assert re.match(r"gl\.dot_fma\(\s*\w+_smem\.load\(\w+\),\s*\w+_smem\.load\(\w+\)", made)


@pytest.mark.slow
def test_so_is_one_that_several_products_read_and_turned(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    loop = "s = tl.dot(x, tl.load(b + j * M * M + o).to(x.dtype), s)"
    twice = loop.replace("(x, ", "(tl.trans(x), ")
    called = CALLED.format("x", "x", "x").replace(loop, f"{loop}\n            {twice}")
    assert twice in called
    text = " ".join(port(called, launch(POINTERS, M=64)).split())
    assert text.count("x_smem, b, ") == 2
    assert text.count("gl.allocate_shared_memory(x.dtype") == 1
    assert "warpgroup_mma(x, " in text
    assert "warpgroup_mma(x.permute((1, 0)), " in text
