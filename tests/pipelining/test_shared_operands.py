"""What several products by `wgmma` read from shared memory is put there once; what may differ stays apart."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.shared_operands import with_shared_operands

HEAD = "def kernel(a, b, x, n, shared, other, layout, WIDE: gl.constexpr, BLOCK: gl.constexpr):\n"
FIRST = "b_smem = gl.allocate_shared_memory(b.dtype, [BLOCK, BLOCK], shared, b)\nx = warpgroup_mma(a, b_smem, x)\n"
SECOND = FIRST.replace("b_smem", "b_smem_2")
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
