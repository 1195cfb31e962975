"""Computed first operands are read where they are made, as Triton's compiler converts them there."""

import textwrap

import pytest

from tt2gl.pipelining.early_firsts import with_early_firsts

HEAD = """\
def kernel(q_ptrs, g_ptrs, h_ptrs, scale, n, acc, sums, FIRST: gl.constexpr):
    lhs: gl.constexpr = DOT_OPERAND
    rhs: gl.constexpr = DOT_OPERAND
    other: gl.constexpr = DOT_OPERAND
    rows = gl.arange(0, 64)
    for k in range(n):
"""


def _converted(body: str) -> str:
    made = with_early_firsts(HEAD + textwrap.indent(textwrap.dedent(body), " " * 8), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


def test_what_a_branch_multiplies_is_read_above_it() -> None:
    """A branch of the kernel's run does not keep the conversion; both arms of one of the compilation share it."""
    made = _converted("""\
        q = gl.load(q_ptrs)
        g = gl.load(g_ptrs).to(gl.float32)
        qg = (q * gl.exp2(g)).to(q.dtype)
        h = gl.load(h_ptrs)
        if k >= 0:
            if FIRST:
                qg_smem = gl.allocate_shared_memory(qg.dtype, [64, 64], SHARED, qg)
                acc = mma_v2(qg_smem.load(lhs), turned(h), acc)
            else:
                qg_smem_2 = gl.allocate_shared_memory(qg.dtype, [64, 64], SHARED, qg)
                acc = mma_v2(qg_smem_2.load(other), h, acc)
        """)
    assert made == textwrap.dedent("""\
        q = gl.load(q_ptrs)
        g = gl.load(g_ptrs).to(gl.float32)
        qg = (q * gl.exp2(g)).to(q.dtype)
        qg_smem = gl.allocate_shared_memory(qg.dtype, [64, 64], SHARED, qg)
        qg_lhs = qg_smem.load(lhs)
        h = gl.load(h_ptrs)
        if k >= 0:
            if FIRST:
                acc = mma_v2(qg_lhs, turned(h), acc)
            else:
                acc = mma_v2(qg_smem.load(other), h, acc)
        """)


def test_second_operands_of_its_products_are_read_behind_it() -> None:
    """Of two products that take one first operand, the latter's tile is read above the former."""
    made = _converted("""\
        h = _tt2gl_ring_h(h_ptrs)
        q = _tt2gl_ring_q(q_ptrs).load(layout)
        q = (q * scale).to(q.dtype)
        q_smem = gl.allocate_shared_memory(q.dtype, [64, 64], SHARED, q)
        g = _tt2gl_ring_g(g_ptrs)
        acc = mma_v2(q_smem.load(lhs), g.load(rhs), acc)
        sums = mma_v2(q_smem.load(other), h.load(rhs), sums)
        """)
    assert made == textwrap.dedent("""\
        h = _tt2gl_ring_h(h_ptrs)
        q = _tt2gl_ring_q(q_ptrs).load(layout)
        q = (q * scale).to(q.dtype)
        q_smem = gl.allocate_shared_memory(q.dtype, [64, 64], SHARED, q)
        q_lhs = q_smem.load(lhs)
        h_rhs = h.load(rhs)
        g = _tt2gl_ring_g(g_ptrs)
        g_rhs = g.load(rhs)
        acc = mma_v2(q_lhs, g_rhs, acc)
        sums = mma_v2(q_smem.load(other), h_rhs, sums)
        """)


@pytest.mark.parametrize(
    ("made", "below"),
    [
        ("gl.load(q_ptrs)", "if k >= 0:"),  # converted where it is taken
        ("(gl.load(q_ptrs) * rows).to(gl.float16)", "if k >= 0:"),  # numbers are no loaded tile
        ("gl.sum(gl.load(q_ptrs), 0)", "if k >= 0:"),
        ("(sums * scale).to(gl.float16)", "if k >= 0:"),  # carried by the loop
        ("(gl.load(q_ptrs) * scale).to(gl.float16)", "if FIRST:"),  # one arm of the compilation alone
        ("(gl.load(q_ptrs) * scale).to(gl.float16)", "for each in range(n):"),
    ],
)
def test_others_stay(made: str, below: str) -> None:
    """What Triton's compiler leaves where the product is."""
    body = f"""\
        x = {made}
        {below}
            x_smem = gl.allocate_shared_memory(x.dtype, [64, 64], SHARED, x)
            acc = mma_v2(x_smem.load(lhs), h_ptrs, acc)
        sums = acc
        """
    assert _converted(body) == textwrap.dedent(body)


def test_what_its_product_follows_on_stays() -> None:
    """Where nothing but memory stands between, the product reads it."""
    body = """\
        x = (gl.load(q_ptrs) * scale).to(gl.float16)
        x_smem = gl.allocate_shared_memory(x.dtype, [64, 64], SHARED, x)
        h_smem = gl.allocate_shared_memory(h.dtype, [64, 64], SHARED, h)
        acc = mma_v2(x_smem.load(lhs), h_smem.load(rhs), acc)
        """
    assert _converted(body) == textwrap.dedent(body)


@pytest.mark.parametrize("between", ["", "if k >= 0:\n    "])
def test_what_a_loop_below_takes_stays(between: str) -> None:
    """Held in registers for all of a loop, a query of lightning attention took 226 for 98."""
    loop = "for each in range(n):\n    acc = mma_v2(x_smem.load(lhs), h_ptrs, acc)\n"
    body = (
        "x = (gl.load(q_ptrs) * scale).to(gl.float16)\n"
        "x_smem = gl.allocate_shared_memory(x.dtype, [64, 64], SHARED, x)\n"
        "y = gl.load(g_ptrs)\n"
    ) + (textwrap.indent(loop, "    ").replace("    for", f"{between}for", 1) if between else loop)
    assert _converted(body) == body
