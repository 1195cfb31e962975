"""Values that copies are started by and that their iteration reads, too: first those that are not carried."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

import pytest

from tests.pipelining.test_pipeline import looked_up, rings, written
from tt2gl.pipelining.carried import carried_values
from tt2gl.pipelining.loads import needs
from tt2gl.pipelining.loops import markers_of
from tt2gl.pipelining.slices import slice_loop

pytestmark = pytest.mark.once

COPIED = "    a = _tt2gl_ring_a(a_ptr + page)\n"


def carried(body: str) -> list[str]:
    function = ast.parse(f"def kernel(a_ptr, b_ptr, n):\n{textwrap.indent(textwrap.dedent(body), '    ')}").body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = function.body[-1]
    assert isinstance(loop, ast.For)
    wanted = {each: needs(each) for each in markers_of(loop)}
    return [*carried_values(function, loop, slice_loop(loop, wanted, frozenset())).values()]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"    page = gl.load(b_ptr + k)\n{COPIED}    use(a)\n", id="only copies need it"),
        pytest.param(f"    page = k * 2\n{COPIED}    use(a, page)\n", id="nothing is loaded"),
        pytest.param(f"    page += gl.load(b_ptr + k)\n{COPIED}    use(a, page)\n", id="a sum goes on"),
        pytest.param(f"    if f:\n        page = gl.load(b_ptr + k)\n{COPIED}    use(a, page)\n", id="in a branch"),
        pytest.param(f"    page, q = gl.load(b_ptr + k), k\n{COPIED}    use(a, page)\n", id="several names"),
    ],
)
def test_these_are_worked_out_where_they_are_read(body: str) -> None:
    assert carried(f"for k in range(n):\n{body}") == []


BOTH = f"for k in range(n):\n    page = gl.load(b_ptr + at)\n    at += 1\n{COPIED}    use(a, page * 2)\n"


def test_a_value_that_copies_and_their_iteration_need_is_loaded_once() -> None:
    made = written(BOTH, replace(rings("STAGES", in_memory=False), looks_ahead=False))
    before, loop = made.split("for k in range(n):\n")
    assert carried(BOTH) == ["page"]
    assert "page_held = ()\n" in before
    assert "    page_held = page_held + (page,)\n" in before
    assert "    page = page_held[0]\n" in loop
    assert loop.count("gl.load(") == 1
    assert loop.index("use(") < loop.index("    page_held = page_held[1:] + (page,)\n    at += 1\n    copy(")


def test_what_was_looked_up_an_iteration_before_waits_from_where_its_copies_start() -> None:
    made = written(BOTH, rings("STAGES", in_memory=False))
    loop = made.split("for k in range(n):\n")[1]
    assert loop.index("    page_held = page_held[1:] + (page_next,)\n") < loop.index("    copy(")
    assert loop.count("gl.load(") == 1


def test_what_comes_by_a_slot_waits_from_where_that_is_read() -> None:
    scalar = f"for k in range(n):\n    page = _tt2gl_ring_page(b_ptr + k)\n{COPIED}    use(a, page)\n"
    made = written(scalar, looked_up("1", scalar=True))
    assert "gl.load(b_ptr + k" not in made
    assert "    page = page_buf.index(0).load(page_layout).item()\n    page_held = page_held[1:] + (page,)\n" in made


def test_where_loads_stand_above_the_rest_both_load() -> None:
    spec = rings("1", in_memory=False)
    registers = tuple(replace(ring, registers=True) for ring in spec.rings)
    assert "_held" not in written(BOTH, replace(spec, rings=registers))


def test_names_that_are_taken() -> None:
    assert "page_held_2 = ()" in written(f"page_held = 1\n{BOTH}", rings("STAGES", in_memory=False))


def again(rows: str, others: str) -> str:
    """A kernel's loop that loads rows for addresses, and others for what it computes."""
    made = written(
        "one = gl.arange(0, 8, layout=ONE)\ntwo = gl.arange(0, 8, layout=TWO)\nthree = gl.arange(0, 16, layout=TWO)\n"
        f"for k in range(n):\n    rows = gl.load({rows})\n    others = gl.load({others})\n"
        "    a = _tt2gl_ring_a(a_ptr + rows)\n    use(a, others)\n",
        replace(rings("STAGES", in_memory=False), looks_ahead=False),
    )
    return made.split("for k in range(n):\n")[1]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param("c_ptr + k + two", id="another pointer"),
        pytest.param("b_ptr + k + three", id="others"),
        pytest.param("b_ptr + k - two", id="elsewhere"),
        pytest.param("b_ptr + k + two, mask=two < 4", id="fewer"),
    ],
)
def test_what_addresses_do_not_need_is_loaded_where_it_is_read(others: str) -> None:
    assert f"    others = gl.load({others})\n" in again("b_ptr + k + one", others)


def test_what_addresses_need_in_another_layout_is_loaded_with_that() -> None:
    loop = again("b_ptr + k + one", "b_ptr + k + two")
    assert "    others = others_held[0]\n" in loop
    assert loop.index("    use(a, others)\n") < loop.index("    others_held = others_held[1:] + (others,)\n")
    assert loop.count("gl.load(") == 2


MASKED = """last = gl.cdiv(n, 2) * 8
at = gl.arange(0, 8, layout=ONE)
for k in range(0, last, 8):
    some = {}
    a = _tt2gl_ring_a(a_ptr + k, mask=some)
    b = gl.load(b_ptr + k, mask={})
    acc = {}(a, b, acc)
"""


@pytest.mark.parametrize(
    ("some", "mask", "product"),
    [
        pytest.param("k + 8 < last", "some", "mma_v2", id="beside a product that is waited for"),
        pytest.param("k + 8 < last", "k < 8", "warpgroup_mma", id="of one load alone"),
        pytest.param("k + at < last", "some", "warpgroup_mma", id="of several elements"),
    ],
)
def test_such_a_mask_is_worked_out_where_it_is_read(some: str, mask: str, product: str) -> None:
    assert carried(MASKED.format(some, mask, product)) == []


def test_a_mask_of_copies_and_of_loads_beside_an_asynchronous_product_is_carried() -> None:
    assert carried(MASKED.format("k + 8 < last", "some", "warpgroup_mma")) == ["some"]
