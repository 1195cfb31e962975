"""Pointers that are read after a loop: first those that go with the iteration, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.pipelining.test_pipeline import rings, written
from tests.pipelining.test_tma import tile

pytestmark = pytest.mark.once

LOOP = "p = a_ptr + m\nfor k in range(n):\n    a = _tt2gl_ring_a({address}{mask})\n    {step}\nuse(p)\n"


def stepped(step: str, address: str = "p", mask: str = "") -> str:
    return written(LOOP.format(step=step, address=address, mask=mask))


@pytest.mark.parametrize(
    ("step", "address", "mask"),
    [
        pytest.param("use(p)\n    p += BLOCK", "p", "", id="the iteration reads it"),
        pytest.param("p += k", "p", "", id="steps of the iteration"),
        pytest.param("p += q\n    q += 1", "p", "", id="steps that change"),
        pytest.param("p += gl.load(b_ptr)", "p", "", id="steps that are loaded"),
        pytest.param("p *= 2", "p", "", id="another step"),
        pytest.param("p = p + BLOCK", "p", "", id="an assignment"),
        pytest.param("if k > 1:\n        p += BLOCK", "p", "", id="under a condition of the iteration"),
        pytest.param("if FLAG:\n        p += BLOCK\n    else:\n        p = a_ptr", "p", "", id="under another flag"),
        pytest.param("p += BLOCK", "a_ptr", ", p < 4", id="a mask, whose numbers may be rounded"),
        pytest.param("p += BLOCK", "a_ptr + p.to(gl.int32)", "", id="an offset that was rounded"),
    ],
)
def test_these_go_with_the_iteration_and_ahead(step: str, address: str, mask: str) -> None:
    made = stepped(step, address, mask)
    assert "p_ahead = p\n" in made
    assert made.endswith("async_copy.wait_group(0)\nuse(p)\n")


def test_loads_that_run_on_into_the_next_turn_take_another_number_of_steps() -> None:
    loop = LOOP.format(step="p += BLOCK", address="p", mask="")
    spec = replace(rings(), flattened=frozenset({"i"}))
    made = written(f"for i in range(m):\n    {loop.replace(chr(10), chr(10) + '    ')}", spec)
    assert "gl.where(more, BLOCK, 0)" not in made


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("address", ["p", "a_ptr + p", "a_ptr + (p * m)[:, None]"])
def test_a_pointer_or_offset_goes_ahead_by_itself(address: str, in_memory: bool) -> None:
    loop = LOOP.format(step="p += BLOCK  # next", address=address, mask="")
    made = written(loop, rings("STAGES", in_memory=in_memory))
    assert "p_ahead" not in made
    assert "    async_copy.commit_group()\n    p += gl.where(k < n, BLOCK, 0)\n" in made
    assert "    async_copy.commit_group()\n    p += gl.where(more, BLOCK, 0)  # next\n" in made
    assert made.endswith("async_copy.wait_group(0)\nuse(p)\n")


def test_steps_under_flags_stop_under_them() -> None:
    made = stepped("if FLAG:\n        p += BLOCK\n    else:\n        p -= m + 1")
    assert "p_ahead" not in made
    assert (
        "    if FLAG:\n        p += gl.where(more, BLOCK, 0)\n    else:\n        p -= gl.where(more, m + 1, 0)\n"
        in made
    )


def test_offsets_of_tiles_that_tma_copies() -> None:
    spec = replace(rings(), rings=(tile("a"),))
    made = written(LOOP.format(step="p += BLOCK", address="a_desc, [m, p]", mask=""), spec)
    assert "p_ahead" not in made
    assert "    p += gl.where(more, BLOCK, 0)\n" in made
