"""What stays of loops: where it waits for an iteration's tiles."""

from __future__ import annotations

import pytest

from tests.pipelining.test_pipeline import rings, written


def stays(arms: str) -> str:
    """What a loop does with its tiles, up to the copies, without comments."""
    made = written("for k in range(n):\n" + arms + "    use(a, b)\n", rings(in_memory=False))
    lines = made[made.rindex("for k in range(n)") :].splitlines()
    kept = [line for line in lines if not line.lstrip().startswith("#")]
    return "\n".join(kept[: next(at for at, line in enumerate(kept) if "use(" in line)])


LOADED = """\
    if FLAG:
        a = _tt2gl_ring_a(p)
        b = _tt2gl_ring_b(q)
    else:
        a = gl.load(p)
        b = _tt2gl_ring_b(q)
"""


def test_an_arm_that_loads_something_else_first_waits_below_that() -> None:
    assert stays(LOADED).endswith(
        """\
    if FLAG:
        async_copy.wait_group(STAGES - 1)
        a = a_buf.index(slot)
        b = b_buf.index(slot)
    else:
        a = gl.load(p)
        async_copy.wait_group(STAGES - 1)
        b = b_buf.index(slot)"""
    )


def test_so_does_one_of_three() -> None:
    third = "    elif m > 1:\n        b = _tt2gl_ring_b(q)\n        a = gl.load(p)\n"
    made = stays(LOADED.replace("    else:\n", third + "    else:\n"))
    assert made.count("wait_group") == 3
    assert "    elif m > 1:\n        async_copy.wait_group(STAGES - 1)\n        b = b_buf.index(slot)\n" in made


@pytest.mark.parametrize(
    "arms",
    [
        pytest.param(LOADED.replace("        a = gl.load(p)\n", "        a = p + 1\n"), id="that only computes"),
        pytest.param(
            LOADED.replace("        b = _tt2gl_ring_b(q)\n    else:", "        b = p\n    elif m:"), id="no else"
        ),
        pytest.param(LOADED.replace("    else:\n", "    elif m > 1:\n        a = b = p\n    else:\n"), id="no tile"),
        pytest.param(
            LOADED.replace("        a = gl.load(p)\n", "        if m:\n            a = gl.load(p)\n"),
            id="a branch within",
        ),
    ],
)
def test_others_wait_above_the_branch(arms: str) -> None:
    made = stays(arms)
    assert made.count("wait_group") == 1
    assert made.index("wait_group") < made.index("    if FLAG:")
