"""Tiles are read where products take them: first the reads that stay where the author has them."""

from __future__ import annotations

import ast
import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.flow import NONE, Names
from tt2gl.pipelining.late_reads import late_reads, with_late_reads
from tt2gl.pipelining.trees import code

pytestmark = pytest.mark.once

READ = "v = _tt2gl_ring_v(v_ptrs).load(v_layout)\n"


def written(body: str, live_after: Names = NONE) -> str:
    """The body of a loop with its late reads moved, all of it kept."""
    text = "for k in range(n):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    loop, node = ast.parse(text).body[0], cst.parse_module(text).body[0]
    assert isinstance(loop, ast.For)
    assert isinstance(node, cst.For)
    late = late_reads(loop, frozenset(loop.body), live_after)
    return "".join(code(line) for line, _, _ in with_late_reads(loop, node, late, {"v": "v_buf", "k": "k_buf"}))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "k = _tt2gl_ring_k(k_ptrs).load(k_layout)\n" + READ + "acc = mma_v2(k, v, acc)\n", id="read side by side"
        ),
        pytest.param(READ + "p = f(q)\nacc = mma_v2(p, v, acc)\n", id="beside an operand in registers"),
        pytest.param(READ + "p = q.load(x)\np = f(p)\nacc = mma_v2(f(p), v, acc)\n", id="beside a computed operand"),
        pytest.param("p = q.load(x)\n" + READ + "s = f(q)\nacc = mma_v2(p, v, acc)\n", id="beside one read before"),
        pytest.param(READ + "p = f(q)\nacc = mma_v2(v, s.load(x), acc)\n", id="the first operand"),
        pytest.param(READ + "p = f(q)\nacc = warpgroup_mma(s.load(x), v, acc)\n", id="another product"),
        pytest.param(READ + "p = f(q)\nacc = mma_v2(s.load(x), v.to(gl.float16), acc)\n", id="cast"),
        pytest.param(READ + "p = f(v)\nacc = mma_v2(s.load(x), v, acc)\n", id="taken twice"),
        pytest.param(READ + "p = f(q)\nv = v * 2\nacc = mma_v2(s.load(x), v, acc)\n", id="assigned again"),
        pytest.param("p = f(q)\nacc = mma_v2(s.load(x), v, acc)\n" + READ, id="of the iteration before"),
        pytest.param(READ + "p = f(q)\nif FLAG:\n    acc = mma_v2(s.load(x), v, acc)\n", id="in a branch"),
        pytest.param(
            "v = _tt2gl_ring_v(v_ptrs).load(x)\nx = f(q)\nacc = mma_v2(q.load(x), v, acc)\n", id="its layout changes"
        ),
        pytest.param("v = _tt2gl_ring_v(v_ptrs)\np = f(q)\nacc = mma_v2(s.load(x), v, acc)\n", id="taken in place"),
    ],
)
def test_a_read_stays(body: str) -> None:
    assert written(body) == body


def test_a_read_stays_where_it_is_needed_after_the_loop() -> None:
    body = READ + "p = f(q)\nacc = mma_v2(s.load(x), v, acc)\n"
    assert written(body, frozenset({"v"})) == body


def test_a_read_goes_to_its_product_with_its_comment_and_its_type_to_the_ring() -> None:
    made = written(
        """
        # the values
        v = _tt2gl_ring_v(v_ptrs, mask=rows < n).permute([1, 0]).load(v_layout)  # of this tile
        p = f(q).to(v.dtype)
        # and their sum
        acc = mma_v2(s.load(x), v, acc)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        p = f(q).to(v_buf.dtype)
        # the values
        # of this tile
        # and their sum
        acc = mma_v2(s.load(x), _tt2gl_ring_v(v_ptrs, mask=rows < n).permute([1, 0]).load(v_layout), acc)
        """
        ).lstrip()
    )


def test_a_read_goes_behind_that_of_the_first_operand() -> None:
    made = written(READ + "p = f(q)\na = s.load(x)\nacc = mma_v2(a, v, acc)")
    assert made == "p = f(q)\na = s.load(x)\nacc = mma_v2(a, _tt2gl_ring_v(v_ptrs).load(v_layout), acc)\n"


@pytest.mark.parametrize("read", [".load(k_layout)", ""])
def test_a_read_of_a_tile_that_another_product_takes_goes_above_its_product_that_casts_it(read: str) -> None:
    other = f"k = _tt2gl_ring_v(v_ptrs){read}\n"
    product = "acc = mma_v2(s.load(x), v.to(gl.float32), acc)\n"
    made = written("# the values\n" + READ + other + "p = mma_v2(q, k, zero).to(v.dtype)\n" + product)
    assert made == other + "p = mma_v2(q, k, zero).to(v_buf.dtype)\n# the values\n" + READ + product


def test_each_such_read_goes_above_its_own_product() -> None:
    other = "w = _tt2gl_ring_k(k_ptrs).load(v_layout)\n"
    used = "a = _tt2gl_ring_v(v_ptrs)\nb = _tt2gl_ring_k(k_ptrs)\np = mma_v2(a, b, zero)\n"
    first = "acc = mma_v2(s.load(x), v.to(gl.float32), acc)\n"
    second = "sum = mma_v2(t.load(x), w.to(gl.float32), sum)\n"
    assert written(READ + other + used + first + second) == used + READ + first + other + second


def test_a_read_among_other_statements_of_its_line() -> None:
    made = written("v = _tt2gl_ring_v(v_ptrs).load(v_layout); p = f(q)\nacc = mma_v2(s.load(x), v, acc)")
    assert made == "p = f(q)\nacc = mma_v2(s.load(x), _tt2gl_ring_v(v_ptrs).load(v_layout), acc)\n"
