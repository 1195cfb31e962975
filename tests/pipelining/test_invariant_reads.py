"""AMD's products read before a loop what is the same on every turn, and both parts of a loop have such a tile once."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.invariant_tiles import without_invariant_tiles

HEAD = """from triton.experimental import gluon
from triton.experimental.gluon.language.nvidia.ampere import mma_v2

@gluon.constexpr_function
def turned_layout(layout):
    return layout if hasattr(layout, "order") else None

@gluon.jit
def turned(tile):
    layout: gl.constexpr = turned_layout(tile.type.layout)
    return gl.convert_layout(tile, layout, assert_trivial=True)

def kernel(a_ptr, o_ptr, x, k, n, m, b, ring, shared, layout: gl.constexpr):
"""
LOAD = "k = gl.amd.cdna3.buffer_load(a_ptr, offs, mask={turns}m)"
FILLED = "k_smem = gl.allocate_shared_memory(k.dtype, [32, 32], shared, k)"
PRODUCT = "x = gl.amd.cdna3.mfma({read}, b, x)"
READ = "k_smem.load(layout)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = without_invariant_tiles(HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n", {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


def body(loop: str, product: str, more: str = "ring.store(turned(b))") -> str:
    return "\n    ".join([loop, LOAD.format(turns=""), FILLED, product, more])


@pytest.mark.parametrize(
    ("product", "read"),
    [
        pytest.param("x += k_smem.load(layout)", "k_smem.load(layout)", id="no product"),
        pytest.param("x = mma_v2(k_smem.load(layout), b, x)", "k_smem.load(layout)", id="NVIDIA's"),
        pytest.param("if m:\n        " + PRODUCT.format(read=READ), READ, id="a branch"),
        pytest.param(PRODUCT.format(read="k_smem.load(layout[i])"), "k_smem.load(layout[i])", id="another layout"),
    ],
)
def test_other_reads_stay(product: str, read: str) -> None:
    made = moved(body("for i in range(n):", product))
    assert made.index(FILLED) < made.index("for i in range(n):") < made.index(read)


def test_a_product_takes_what_was_read_before_the_loop() -> None:
    made = moved(body("for i in range(n):", PRODUCT.format(read=READ)))
    assert made.splitlines() == [
        LOAD.format(turns="(n > 0) & "),
        FILLED,
        f"k_smem_lhs = {READ}",
        "for i in range(n):",
        "    " + PRODUCT.format(read="k_smem_lhs"),
        "    ring.store(turned(b))",
    ]


def test_what_the_compiler_calls_writes_nothing() -> None:
    made = moved(body("for i in range(n):", "x += b", "ring.store(turned(b))"))
    assert made.startswith(LOAD.format(turns="(n > 0) & "))


FIRST, LAST = "for i in range(0, drain):", "for i in range(drain, n):"


def test_both_parts_of_a_loop_have_a_tile_once() -> None:
    parts = [body(FIRST, PRODUCT.format(read=READ)), body(LAST, PRODUCT.format(read=READ), "b = b + 1")]
    made = moved("\n# the last\n".join(parts))
    assert made.splitlines() == [
        LOAD.format(turns="((drain > 0) | (drain < n)) & "),
        FILLED,
        f"k_smem_lhs = {READ}",
        FIRST,
        "    " + PRODUCT.format(read="k_smem_lhs"),
        "    ring.store(turned(b))",
        "# the last",
        LAST,
        "    " + PRODUCT.format(read="k_smem_lhs"),
        "    b = b + 1",
    ]


@pytest.mark.parametrize(
    ("between", "last"),
    [
        pytest.param("offs = offs + n", LAST, id="something between"),
        pytest.param("", "while x < n:", id="turns not known before"),
        pytest.param("", "for i in range(drain, n):\n    offs = offs + n", id="another tile"),
    ],
)
def test_loops_that_differ_have_tiles_of_their_own(between: str, last: str) -> None:
    parts = [body(FIRST, PRODUCT.format(read=READ)), between, body(last, PRODUCT.format(read=READ))]
    made = moved("\n".join(parts))
    assert made.count("buffer_load") == 2
    assert "|" not in made
