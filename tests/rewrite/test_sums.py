"""What products are added to, above the operands of those: first what must stay as it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.sums import summed_first

X = "x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)\n"
S = "s_operand = s.to(q.dtype)\ns_smem = gl.allocate_shared_memory(s_operand.dtype, [K, N], s_shared, s_operand)\n"
SUM = "gl.convert_layout(gl.amd.rdna4.wmma(q, s_smem.load(rhs), acc) * scale, out_layout)"
V = "v_operand = (v * s).to(x.dtype)\nv_smem = gl.allocate_shared_memory(x.dtype, [K, N], v_shared, v_operand)\n"
PLAIN = "acc = mma_v2(x, v_smem.load(rhs), s * acc)\n"
NESTED = "out = gl.dot_fma(x_smem.load(lhs), y_smem.load(rhs), gl.dot_fma(q_smem.load(lhs), s_smem.load(rhs), acc))\n"
PRODUCT = f"out = gl.amd.rdna4.wmma(x_smem.load(lhs), v, {SUM})\n"


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(x, s, q, v, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    return textwrap.dedent(cst.Module([summed_first(function)]).code.removeprefix("def kernel(x, s, q, v, acc):\n"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(X + PRODUCT.replace(SUM, "acc"), id="no product in the sum"),
        pytest.param(X + S + PRODUCT.replace("gl.amd.rdna4.wmma", "warpgroup_mma"), id="another's instruction"),
        pytest.param(NESTED.replace("dot_fma", "amd.rdna4.wmma"), id="AMD's, which reads them in its call"),
        pytest.param(NESTED.replace("x_smem.load(lhs), y_smem.load(rhs)", "x, y"), id="operands that are in registers"),
        pytest.param(S + PRODUCT.replace("x_smem.load(lhs)", "x"), id="operands that are there"),
        pytest.param(f"{X}{S}acc = s_smem.load(l)\n{PRODUCT}", id="what reads memory between"),
        pytest.param(V + PLAIN.replace("s * acc", "acc"), id="a sum that is there"),
        pytest.param(V + PLAIN.replace("s * acc", "gl.exp(s) * acc"), id="a call in it"),
        pytest.param(V + PLAIN.replace("s * acc", "mma_v2(x, y, z) * acc"), id="another product in it"),
        pytest.param(V + PLAIN.replace("mma_v2", "warpgroup_mma"), id="what reads shared memory itself"),
        pytest.param(f"{V}acc = v_smem.load(l)\n{PLAIN}", id="read between"),
        pytest.param(f"{X}y = made(x)\n{S}{PRODUCT}y = x_smem.load(l)\n", id="read again later"),
    ],
)
def test_products_that_stay_where_they_are(body: str) -> None:
    assert written(body) == body


def test_the_sum_comes_before_what_only_the_product_reads() -> None:
    summed, product = f"out_sum = {SUM}\n", PRODUCT.replace(SUM, "out_sum")
    assert written(f"# both\n{X}{S}{PRODUCT}") == f"# both\n{S}{summed}{X}{product}"
    assert written(f"y = gl.load(p)\n{X}{S}{PRODUCT}") == f"y = gl.load(p)\n{S}{summed}{X}{product}"
    held = "v_2 = gl.convert_layout(v, w)\n"
    assert written(f"{held}{X}{S}{PRODUCT.replace(' v,', ' v_2,')}") == (
        f"{S}{summed}{held}{X}{product.replace(' v,', ' v_2,')}"
    )


def test_what_is_converted_is_so_before_the_other_is_put_into_memory() -> None:
    summed, product = f"out_sum = {SUM}\n", PRODUCT.replace(SUM, "out_sum").replace(" v,", " v_operand,")
    converted = "v_operand = as_operand(v, w, [0, 1])\n"
    assert written(X + converted + S + product.replace("out_sum", SUM)) == f"{S}{summed}{converted}{X}{product}"


def test_a_name_that_is_taken() -> None:
    assert "out_sum_2 = gl.convert_layout(" in written(f"out_sum = q\n{X}{S}{PRODUCT}")


@pytest.mark.parametrize("function", ["gl.dot_fma", "mma_v2"])
def test_a_product_comes_before_what_another_reads_in_its_call(function: str) -> None:
    inner = f"{function}(q_smem.load(lhs), s_smem.load(rhs), acc)"
    assert written("# both\n" + NESTED.replace("gl.dot_fma", function)) == (
        f"# both\nout_sum = {inner}\nout = {function}(x_smem.load(lhs), y_smem.load(rhs), out_sum)\n"
    )


def test_what_is_computed_comes_before_the_operand_of_nvidias_product() -> None:
    summed, product = "acc_sum = s * acc\n", PLAIN.replace("s * acc", "acc_sum")
    assert written(V + PLAIN) == summed + V + product
    assert written(f"# the state\n{V}{PLAIN}") == f"# the state\n{summed}{V}{product}"
    held = "x_lhs = gl.convert_layout(x, lhs)\n"
    assert written(V + held + PLAIN.replace("(x,", "(x_lhs,")) == summed + V + held + product.replace("(x,", "(x_lhs,")
