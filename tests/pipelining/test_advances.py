"""Pointers that step before the copies that read them: first those that do so after them, or in another way."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipeline import LoopRings, Ring, pipelined

HEAD = "@gluon.jit\ndef kernel(a_ptr, b_ptr, n, x, BLOCK: gl.constexpr, STAGES: gl.constexpr):\n"


def written(body: str, buffers: str = "STAGES - 1", *, in_memory: bool = False, registers: bool = False) -> str:
    """A loop over `k` after the pass: its tiles are read, unless `in_memory`, and copied, unless by `registers`."""
    ring = Ring("a", "gl.float16", ("BLOCK",), "shared", in_memory, registers=registers)
    loop = "for k in range(n):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    text = HEAD + textwrap.indent(loop, "    ")
    made = pipelined(text, [LoopRings("kernel", 2, (ring,), buffers)], "copy")
    return textwrap.dedent(made.removeprefix(HEAD))


READ = "acc += _tt2gl_ring_a(a_ptr + offset).load(x)\n"


@pytest.mark.parametrize(
    ("body", "step"),
    [
        # What it adds is another amount an iteration later.
        (f"{READ}offset += k\n", "offset += "),
        ("y = gl.load(b_ptr + k)\nacc += _tt2gl_ring_a(a_ptr + offset + y).load(x)\noffset += y\n", "offset += y"),
        (f"{READ}stride += x\noffset += stride\n", "offset += stride"),
        # It is no step.
        (f"{READ}offset = f(offset)\n", "offset = f(offset)"),
        (f"{READ}if x > 1:\n    offset += BLOCK\n", "    offset += BLOCK"),
        # It is done twice.
        (f"offset += BLOCK\n{READ}offset += BLOCK\n", "offset += BLOCK"),
    ],
)
def test_what_is_left_behind_the_copies(body: str, step: str) -> None:
    after = written(body).split("async_copy.commit_group()\n")
    assert len(after) == 3
    assert all(step in part for part in after[1:])


def test_tiles_that_products_read_where_they_lie() -> None:
    made = written("acc = f(_tt2gl_ring_a(a_ptr))\na_ptr += BLOCK\n", "STAGES", in_memory=True)
    assert made.count("async_copy.commit_group()\n    a_ptr += BLOCK\n") == 2


_PRODUCT = "warpgroup_mma(_tt2gl_ring_a(a_ptr), x, "


def test_pointers_that_are_read_after_the_loop_step_behind_the_copies() -> None:
    ring = Ring("a", "gl.float16", ("BLOCK",), "shared", True)
    body = f"    part = {_PRODUCT}zeros)\n    acc += part * x\n    a_ptr += BLOCK\n"
    loop = f"for k in range(n):\n{body}last = gl.load(a_ptr)\n"
    made = pipelined(HEAD + textwrap.indent(loop, "    "), [LoopRings("kernel", 2, (ring,), "STAGES")], "copy")
    steps = [line.strip() for line in made.splitlines() if "commit_group" in line or "a_ptr += " in line]
    first, then = "a_ptr += gl.where(k < steps, BLOCK, 0)", "a_ptr += gl.where(more, BLOCK, 0)"
    assert steps == ["async_copy.commit_group()", first, "async_copy.commit_group()", then]


def test_beside_products_that_run_on() -> None:
    made = written(f"acc = {_PRODUCT}acc)\na_ptr += BLOCK\n", "STAGES", in_memory=True)
    assert made.count("async_copy.commit_group()\n    a_ptr += BLOCK\n") == 2


def test_steps_come_first_where_all_products_are_waited_for() -> None:
    made = written(f"part = {_PRODUCT}zeros)\nacc += part * x\na_ptr += BLOCK\n", "STAGES", in_memory=True)
    assert "    if k > 0:\n        a_ptr += BLOCK\n    copy(" in made
    assert "    acc += part * x\n    a_ptr += BLOCK\n    copy(" in made


def test_beside_tiles_that_are_read_into_registers() -> None:
    rings = tuple(Ring(name, "gl.float16", ("BLOCK",), "shared", name == "a") for name in ("a", "b"))
    product = f"part = {_PRODUCT}zeros)".replace("x,", "f(_tt2gl_ring_b(b_ptr).load(x)),")
    loop = f"    for k in range(n):\n        {product}\n        acc += part * x\n        a_ptr += BLOCK\n"
    made = pipelined(HEAD + loop, [LoopRings("kernel", 2, rings, "STAGES")], "copy")
    assert made.count("async_copy.commit_group()\n        a_ptr += BLOCK\n") == 2


def test_beside_loops_in_the_loop() -> None:
    body = f"part = {_PRODUCT}zeros)\nfor i in range(x):\n    acc += part\na_ptr += BLOCK\n"
    made = written(body, "STAGES", in_memory=True)
    assert made.count("async_copy.commit_group()\n    a_ptr += BLOCK\n") == 2


def test_steps_come_first() -> None:
    made = written("acc += _tt2gl_ring_a(a_ptr, mask=k < x).load(x)\n# onwards\na_ptr += BLOCK\n")
    assert made[made.index("for k") :] == textwrap.dedent(
        """\
        for k in gl.static_range(STAGES - 1):
            if k > 0:
                a_ptr += BLOCK
            copy(a_buf.index(k), a_ptr, mask=(k < n) & (k < x))
            async_copy.commit_group()

        slot = 0
        for k in range(n):
            more = k < n - (STAGES - 1)
            # at most the copies of the next STAGES - 2 iterations are under way: this one's tiles are there
            async_copy.wait_group(STAGES - 2)
            acc += a_buf.index(slot).load(x)
            # onwards
            a_ptr += BLOCK
            ahead = k + STAGES - 1
            copy(a_buf.index(slot), a_ptr, mask=more & (ahead < x))
            async_copy.commit_group()
            slot = gl.where(slot + 1 >= STAGES - 1, 0, slot + 1)
        async_copy.wait_group(0)
        """
    )


def test_a_prologue_of_one_iteration_has_no_steps() -> None:
    made = written("acc += _tt2gl_ring_a(a_ptr).load(x)\na_ptr += BLOCK\n", "1")
    assert made.count("a_ptr += BLOCK") == 1


def test_steps_come_before_loads_to_registers() -> None:
    body = "a = _tt2gl_ring_a(a_ptr, mask=k < x).load(x)\nacc += a\na_ptr += BLOCK\n"
    first, steady, _ = _parts(body)
    assert first.index("a_ptr += BLOCK") < first.index("gl.load(a_ptr")
    assert steady.index("a_ptr += BLOCK") < steady.index("gl.load(a_ptr")


def test_what_is_left_behind_loads_to_registers() -> None:
    for part in _parts("a = _tt2gl_ring_a(a_ptr, mask=k < x).load(x)\nacc += a\na_ptr += k\n")[:2]:
        assert part.index("a_ptr += ") > part.index("gl.load(a_ptr")


def test_what_says_where_the_tiles_after_are_is_left_behind_loads_to_registers() -> None:
    body = "y = gl.load(b_ptr)\nacc += _tt2gl_ring_a(a_ptr + y).load(x)\nb_ptr += 4\na_ptr += BLOCK\n"
    first, steady, _ = _parts(body)
    assert first.index("if k > 0:\n        a_ptr += BLOCK\n") < first.index("y = gl.load(b_ptr")
    ends = ("y = gl.load(b_ptr", "    b_ptr += 4", "y_next = gl.load(b_ptr", "\nb_ptr += 4")
    assert sorted(ends, key=first.index) == [*ends]
    assert steady.index("y_next = gl.load(b_ptr") < steady.index("    b_ptr += 4")


def _parts(body: str) -> list[str]:
    """A prologue, the loop and its last iterations, of tiles that come to registers."""
    loops = written(body, registers=True).split("for k in ")[1:]
    return [*loops[:1], *loops[1].split("# the last iterations")]
