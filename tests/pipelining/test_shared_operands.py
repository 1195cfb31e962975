"""What several products read from shared memory is put there, and read, once; what may differ stays apart."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.shared_operands import with_shared_operands

HEAD = "def kernel(a, b, x, n, shared, other, layout, WIDE: gl.constexpr, BLOCK: gl.constexpr):\n"
FIRST = "b_smem = gl.allocate_shared_memory(b.dtype, [BLOCK, BLOCK], shared, b)\nx = warpgroup_mma(a, b_smem, x)\n"
SECOND = FIRST.replace("b_smem", "b_smem_2")
LOADED = FIRST.replace("warpgroup_mma(a, b_smem", "mma_v2(a, b_smem.load(layout)")
LOADED_AGAIN = LOADED.replace("b_smem", "b_smem_2").replace("a, ", "c, ")
TURNED = "{0} = tl.trans(b)\n" + FIRST.replace("b.dtype", "{0}.dtype").replace(", b)", ", {0})")
CAST = "{0} = b.to(a.dtype)\n" + FIRST.replace("b.dtype", "{0}.dtype").replace(", b)", ", {0})")


def indented(text: str) -> str:
    """Some lines in a block."""
    return textwrap.indent(text, "    ")


def shared(body: str) -> str:
    """The text of a kernel's body after the rule."""
    return textwrap.dedent(with_shared_operands(HEAD + indented(body), {"kernel"}).removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{FIRST}b = b + 1\n{SECOND}", id="another value"),
        pytest.param(FIRST + SECOND.replace(", shared", ", other"), id="another layout"),
        pytest.param(f"if n:\n{indented(FIRST)}{SECOND}", id="a branch"),
        pytest.param(f"if WIDE:\n{indented(FIRST)}{SECOND}", id="a branch of the compilation"),
        pytest.param(f"if WIDE:\n{indented(FIRST)}else:\n{indented(SECOND)}", id="its other branch"),
        pytest.param(f"for i in range(n):\n{indented(FIRST)}{SECOND}", id="a loop"),
        pytest.param(f"{FIRST}for i in range(n):\n{indented(SECOND)}", id="into a loop"),
        pytest.param(FIRST + SECOND.replace("b_smem_2, x", "b_smem_2.load(layout), x"), id="read into registers"),
        pytest.param(f"{LOADED}b = b + 1\n{LOADED_AGAIN}", id="another value in registers"),
        pytest.param(LOADED + LOADED_AGAIN.replace("c, ", "c_smem.load(other), "), id="read after the other operand"),
        pytest.param(f"if n:\n{indented(LOADED)}{LOADED_AGAIN}", id="registers of a branch"),
        pytest.param(f"{LOADED}for i in range(n):\n{indented(LOADED_AGAIN)}", id="registers into a loop"),
        pytest.param("".join((LOADED + LOADED_AGAIN).splitlines(True)[i] for i in (0, 2, 3, 1)), id="read earlier"),
        pytest.param(
            (TURNED.format("o") + TURNED.format("o_2").replace("b_smem", "b_smem_2")), id="turned where it lies"
        ),
        pytest.param(f"{FIRST}{SECOND}b_smem_2.store(x)", id="written to"),
        pytest.param(FIRST + CAST.format("b_operand").replace("b_smem", "b_smem_2"), id="cast"),
    ],
)
def test_tiles_stay_apart(body: str) -> None:
    assert shared(body) == body


def test_the_second_product_reads_the_first_ones_tile() -> None:
    assert shared(FIRST + SECOND) == FIRST + "x = warpgroup_mma(a, b_smem, x)\n"


def test_branches_of_the_compilation_that_both_are_in_are_no_obstacle() -> None:
    branch = "if WIDE:\n"
    nested = f"if BLOCK > 64:\n{indented(branch + indented(SECOND))}"
    kept = f"if BLOCK > 64:\n{indented(branch + indented('x = warpgroup_mma(a, b_smem, x)'))}"
    assert shared(branch + indented(FIRST) + nested) == branch + indented(FIRST) + kept + "\n"


def test_a_type_of_what_has_changed_is_asserted_to_be_the_same() -> None:
    first, second = CAST.format("b_operand"), CAST.format("b_operand_2").replace("b_smem", "b_smem_2")
    said = 'gl.static_assert(b_smem.dtype == a.dtype, "both products are taken to read the same tile")\n'
    read = "x = warpgroup_mma(a, b_smem, x)\n"
    assert shared(f"{first}{second}") == first + read
    assert shared(f"{first}a = a + 1\n{second}") == f"{first}a = a + 1\n{said}{read}"


def test_a_turned_view_is_the_same_tile() -> None:
    turned = SECOND.replace("b_smem_2, x", "b_smem_2.permute((1, 0)), x")
    assert shared(FIRST + turned) == FIRST + "x = warpgroup_mma(a, b_smem.permute((1, 0)), x)\n"


def test_registers_of_one_product_are_those_of_the_next() -> None:
    read = "b_rhs = b_smem.load(layout)\nx = mma_v2(a, b_rhs, x)\n"
    assert shared(LOADED + LOADED_AGAIN) == LOADED.splitlines(True)[0] + read + "x = mma_v2(c, b_rhs, x)\n"


def test_what_is_read_into_other_registers_is_in_memory_once() -> None:
    other = LOADED_AGAIN.replace("load(layout)", "load(other)")
    assert shared(LOADED + other) == LOADED + "x = mma_v2(c, b_smem.load(other), x)\n"


def test_what_is_cast_on_its_way_is_read_once() -> None:
    first = LOADED.replace("mma_v2(a, b_smem.load(layout), x)", "warpgroup_mma(b_smem.load(layout), a, x)")
    second = first.replace("b_smem", "b_smem_2").replace("(layout), a", "(layout).to(c.dtype), c")
    read = f"{first.splitlines(True)[0]}b_lhs = b_smem.load(layout)\nx = warpgroup_mma(b_lhs, a, x)\n"
    assert shared(first + second) == read + "x = warpgroup_mma(b_lhs.to(c.dtype), c, x)\n"


def test_registers_have_a_name_that_nothing_has() -> None:
    put, first, *_ = LOADED.splitlines(True)
    read = f"b_rhs = 0\n{put}b_rhs_2 = b_smem.load(layout)\nx = mma_v2(a, b_rhs_2, x)\n"
    assert shared(f"b_rhs = 0\n{put}{first}{LOADED_AGAIN}") == read + "x = mma_v2(c, b_rhs_2, x)\n"


def test_branches_of_the_compilation_are_no_obstacle_to_registers() -> None:
    branch = f"if WIDE:\n{indented(LOADED_AGAIN)}"
    read = "b_rhs = b_smem.load(layout)\nx = mma_v2(a, b_rhs, x)\n"
    kept = "if WIDE:\n    x = mma_v2(c, b_rhs, x)\n"
    assert shared(LOADED + branch) == LOADED.splitlines(True)[0] + read + kept


def test_first_operands_are_read_once_too() -> None:
    first = LOADED.replace("mma_v2(a, b_smem.load(layout), x)", "mma_v2(b_smem.load(layout), a_smem.load(other), x)")
    second = first.replace("b_smem", "b_smem_2").replace("a_smem", "c_smem")
    put, product, *_ = first.splitlines(True)
    read = f"b_lhs = b_smem.load(layout)\n{product.replace('b_smem.load(layout)', 'b_lhs')}"
    kept = second.splitlines(True)[1].replace("b_smem_2.load(layout)", "b_lhs")
    assert shared(first + second) == put + read + kept


@pytest.mark.parametrize("made", ["tl.trans(b)", "tl.trans(b).to(gl.float16)", "gl.permute(b, (1, 0))"])
def test_what_is_turned_for_products_of_amd_is_read_once(made: str) -> None:
    first = TURNED.format("o").replace("tl.trans(b)", made)
    first = first.replace("warpgroup_mma(a, b_smem", "gl.amd.cdna3.mfma(a, b_smem.load(layout)")
    second = first.replace("b_smem", "b_smem_2").replace("o = ", "o_2 = ").replace("o.", "o_2.").replace("o)", "o_2)")
    put = "".join(first.splitlines(True)[:2])
    read = "b_rhs = b_smem.load(layout)\nx = gl.amd.cdna3.mfma(a, b_rhs, x)\n"
    assert shared(first + second) == f"{put}{read}x = gl.amd.cdna3.mfma(a, b_rhs, x)\n"
    assert shared(f"{first}b = b + 1\n{second}") == f"{first}b = b + 1\n{second}"


def test_first_operands_of_wgmma_in_registers_are_read_once() -> None:
    first = LOADED.replace("mma_v2(a, b_smem.load(layout), x)", "warpgroup_mma(b_smem.load(layout), a, x)")
    put, product = first.splitlines(True)
    read = f"b_lhs = b_smem.load(layout)\n{product.replace('b_smem.load(layout)', 'b_lhs')}"
    second = first.replace("b_smem", "b_smem_2").replace("a, ", "c, ")
    assert shared(first + second) == put + read + "x = warpgroup_mma(b_lhs, c, x)\n"
