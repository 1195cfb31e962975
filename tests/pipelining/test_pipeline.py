"""Loops with markers and what is written in their place: first those that must not change, or are refused."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import replace

import libcst as cst
import pytest

from tt2gl.pipeline import LoopRings, NotPipelinedError, Ring, pipelined
from tt2gl.pipelining.guards import masked
from tt2gl.pipelining.trees import code

pytestmark = pytest.mark.once

HEAD = (
    "@gluon.jit\ndef kernel(a_ptr, b_ptr, m, step, FLAG: gl.constexpr, BLOCK: gl.constexpr, STAGES: gl.constexpr):\n"
    "    n = gl.load(b_ptr)\n"
)


def rings(buffers: str = "STAGES", *, in_memory: bool = True, mixed: bool = False) -> LoopRings:
    a = Ring("a", "gl.float16", ("BLOCK",), "shared", in_memory)
    b = Ring("b", "gl.float16", ("BLOCK",), "shared", in_memory and not mixed)
    return LoopRings("kernel", 2, (a, b), buffers)


def written(body: str, spec: LoopRings | None = None) -> str:
    """The body of a kernel after the pass."""
    text = HEAD + textwrap.indent(textwrap.dedent(body), "    ")
    made = pipelined(text, [spec or rings()], "copy")
    ast.parse(made)
    return textwrap.dedent(made.removeprefix(HEAD))


# ------------------------------------------------------------------------------------------------- what stays as it is


@pytest.mark.parametrize(
    "body",
    [
        "for k in range(n):\n    a = gl.load(a_ptr + k)  # plain\n",
        "acc = warpgroup_mma(a, b, acc)\n",
        "if FLAG:\n    for k in range(n):\n        acc += k\nelse: acc = 0\n",
    ],
)
def test_without_markers_nothing_changes(body: str) -> None:
    assert written(body) == body


def test_functions_that_are_not_named_are_left_alone() -> None:
    text = HEAD + "    for k in range(n):\n        a = _tt2gl_ring_a(a_ptr + k)\n"
    assert pipelined(text, [LoopRings("kernel", 3, rings().rings, "2")]) == text


def test_a_kernel_that_stands_where_triton_may_be_missing() -> None:
    body = HEAD + "    for k in range(0, n):\n        a = _tt2gl_ring_a(a_ptr + k)\n        acc += use(a)\n"
    alone = pipelined(body, [rings()], "copy")
    inner = textwrap.indent(body, "    ")
    for text in (
        f"try:\n{inner}except ImportError:\n    ready = False\n",
        f"try:\n    x\nexcept E:\n{inner}else:\n    y\n",
    ):
        line = rings().line + text[: text.index(inner)].count("\n")
        made = pipelined(text, [replace(rings(), line=line)], "copy")
        assert made == text.replace(inner, textwrap.indent(alone, "    "))


def test_no_fence_stands_behind_copies_where_the_compilers_own_kernels_have_none() -> None:
    loads = "    a = _tt2gl_ring_a(a_ptr + k)\n    b = _tt2gl_ring_b(b_ptr + k)\n"
    body = f"for k in range(0, n):\n{loads}    acc += use(a, b)\n"
    fenced = written(body)
    assert fenced.count("fence_async_shared()\n") == 1
    unfenced = written(body, replace(rings(), fenced=False))
    assert unfenced == fenced.replace("    fence_async_shared()\n", "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for k in gl.static_range(4):\n    a = _tt2gl_ring_a(a_ptr + k)", "does not count through a range"),
        ("for k in range(4):\n    a = _tt2gl_ring_a(a_ptr + k)\n    k += 1", "assigned to in its body"),
        ("for k in range(4):\n    c = _tt2gl_ring_c(a_ptr + k)", "no ring c"),
        ("for k in range(4):\n    a = _tt2gl_ring_a(a_ptr)\n    a = _tt2gl_ring_a(a_ptr + 1)", "from two places"),
    ],
)
def test_loops_that_cannot_be(body: str, reason: str) -> None:
    with pytest.raises(NotPipelinedError, match=reason):
        written(body)


def test_a_load_under_one_flag_or_another_is_made_under_each() -> None:
    load = "        a = _tt2gl_ring_a(a_ptr + k)\n"
    made = written(f"for k in range(n):\n    if F == 1:\n{load}    if F == 2:\n{load}    if F == 1:\n{load}")
    # before the loop and in it; what is read twice under one flag has come with the first
    assert made.count("copy(") == 4


def test_a_depth_with_which_nothing_runs_ahead_is_refused() -> None:
    with pytest.raises(NotPipelinedError, match="no load would run ahead"):
        written("for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k)\n", rings("1"))


# -------------------------------------------------------------------------------------------------- the whole of a loop


def test_a_loop_by_ones() -> None:
    assert written(
        """\
        acc = 0

        # along K
        for k in range(0, gl.cdiv(n, BLOCK)):
            # a tile
            a = _tt2gl_ring_a(a_ptrs, mask=cols < n - k * BLOCK, other=0.0)
            acc += use(a)
            # onwards
            a_ptrs += BLOCK
        gl.store(b_ptr, acc)
        """
    ) == textwrap.dedent(
        """\
        acc = 0

        gl.static_assert(STAGES > 1, "no load would run ahead")
        # a ring of STAGES tiles; loads run STAGES - 1 iterations ahead
        a_buf = gl.allocate_shared_memory(gl.float16, [STAGES, BLOCK], shared)
        steps = gl.cdiv(n, BLOCK)
        for k in gl.static_range(STAGES - 1):
            copy(a_buf.index(k), a_ptrs, mask=(k < steps) & (cols < n - k * BLOCK))
            async_copy.commit_group()
            a_ptrs += BLOCK

        slot = 0
        free_slot = STAGES - 1
        # along K
        for k in range(0, steps):
            more = k < steps - (STAGES - 1)
            # at most the copies of the next STAGES - 2 iterations are under way: this one's tiles are there
            async_copy.wait_group(STAGES - 2)
            fence_async_shared()
            # a tile
            a = a_buf.index(slot)
            acc += use(a)
            ahead = k + STAGES - 1
            copy(a_buf.index(free_slot), a_ptrs, mask=more & (cols < n - ahead * BLOCK))
            async_copy.commit_group()
            # onwards
            a_ptrs += BLOCK
            slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)
            free_slot = gl.where(free_slot + 1 >= STAGES, 0, free_slot + 1)
        async_copy.wait_group(0)
        gl.store(b_ptr, acc)
        """
    )


def test_a_loop_whose_tiles_go_to_registers() -> None:
    made = written(
        "for k in range(n):\n    acc += _tt2gl_ring_a(a_ptr + k).load(x)\n", rings("STAGES - 1", in_memory=False)
    )
    assert "[STAGES - 1, BLOCK]" in made
    assert "gl.static_range(STAGES - 1)" in made
    assert "wait_group(STAGES - 2)" in made
    assert "acc += a_buf.index(slot).load(x)" in made
    assert "copy(a_buf.index(slot)" in made
    assert "slot = gl.where(slot + 1 >= STAGES - 1, 0, slot + 1)" in made
    assert "free_slot" not in made
    assert "fence" not in made


def test_slots_are_counted_where_they_are_used_if_a_product_runs_on() -> None:
    body = """\
    for k in range(n):
        acc = warpgroup_mma(_tt2gl_ring_a(a_ptr + k), {operand}, {added})
        a_ptr += BLOCK
    """
    waited = written(body.format(operand="_tt2gl_ring_b(b_ptr + k)", added="zeros"))
    assert "\nslot = 0\nfree_slot = STAGES - 1\n" in waited
    made = written(body.format(operand="_tt2gl_ring_b(b_ptr + k)", added="acc"))
    assert made[made.index("slot = ") :] == textwrap.dedent(
        """\
        slot = -1
        free_slot = STAGES - 2
        for k in range(n):
            slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)
            more = k < n - (STAGES - 1)
            # at most the copies of the next STAGES - 2 iterations are under way: this one's tiles are there
            async_copy.wait_group(STAGES - 2)
            fence_async_shared()
            acc = warpgroup_mma(a_buf.index(slot), b_buf.index(slot), acc, is_async=True)
            # runs on, while the iteration before is done: its tiles may be overwritten
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
            free_slot = gl.where(free_slot + 1 >= STAGES, 0, free_slot + 1)
            ahead = k + STAGES - 1
            copy(a_buf.index(free_slot), a_ptr + ahead, mask=more)
            copy(b_buf.index(free_slot), b_ptr + ahead, mask=more)
            async_copy.commit_group()
            a_ptr += BLOCK
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        async_copy.wait_group(0)
        """
    )


def test_slots_are_counted_where_they_are_used_beside_the_one_product_of_registers() -> None:
    product = "    acc = mma_v2(_tt2gl_ring_a(a_ptr + k).load(x), y, acc)\n"
    second = product.replace("acc", "sum").replace("ring_a(a_", "ring_b(b_")
    several = written("for k in range(n):\n" + product + second, rings("STAGES - 1", in_memory=False))
    assert "\nslot = 0\n" in several
    one = written("for k in range(n):\n" + product, rings("STAGES - 1", in_memory=False))
    assert one[one.index("slot = ") :] == textwrap.dedent(
        """\
        slot = -1
        for k in range(n):
            slot = gl.where(slot + 1 >= STAGES - 1, 0, slot + 1)
            more = k < n - (STAGES - 1)
            # at most the copies of the next STAGES - 2 iterations are under way: this one's tiles are there
            async_copy.wait_group(STAGES - 2)
            acc = mma_v2(a_buf.index(slot).load(x), y, acc)
            ahead = k + STAGES - 1
            copy(a_buf.index(slot), a_ptr + ahead, mask=more)
            async_copy.commit_group()
        async_copy.wait_group(0)
        """
    )


def test_slots_are_counted_where_they_are_used_beside_the_one_product_by_wgmma_that_starts_from_zeros() -> None:
    product = "    {0} = warpgroup_mma(_tt2gl_ring_a(a_ptr + k), _tt2gl_ring_b(b_ptr + k), {1})\n"
    scaled = (
        "for k in range(n):\n"
        + product.format("made", "gl.zeros([M, N], gl.float32, layout)")
        + "    acc += made * s\n"
    )
    assert "\nslot = 0\n" in written(scaled + product.format("other", "gl.zeros([M, N], gl.float32, layout)"))
    assert "\nslot = 0\n" in written("for k in range(n):\n" + product.format("made", "sums") + "    acc += made * s\n")
    before, _, loop = written(scaled).partition("for k in range(n):\n")
    assert before.endswith("\nslot = -1\nfree_slot = STAGES - 2\n")
    assert loop.startswith("    slot = gl.where(slot + 1 >= STAGES, 0, slot + 1)\n")
    assert loop.index("acc += made * s") < loop.index("    free_slot = ") < loop.index("copy(a_buf.index(free_slot)")


def test_slots_that_are_read_and_that_are_filled_are_counted_apart_beside_products_of_registers() -> None:
    product = "    acc = {}(_tt2gl_ring_a(a_ptr + k).load(x), y, acc)\n"
    body = "for k in range(n):\n" + product + product.replace("acc", "sum").replace("ring_a(a_", "ring_b(b_")
    spec = replace(rings("STAGES - 1", in_memory=False), looks_ahead=False)
    assert "free_slot" not in written(body.format("f", "f"), spec)
    loading = body.format("mma_v2", "mma_v2") + "    c = gl.load(c_ptr)\n"
    assert "free_slot" not in written(loading, spec)
    assert "free_slot" in written(loading, replace(spec, slots_apart=True))
    assert "free_slot" not in written(body.format("mma_v2", "mma_v2"), spec)
    spec = replace(spec, slots_apart=True)
    one_slot = written(body.format("mma_v2", "mma_v2"), replace(spec, buffers="1"))
    assert "slot" not in one_slot
    made = written(body.format("mma_v2", "mma_v2"), spec)
    assert made[made.index("slot = ") :] == textwrap.dedent(
        """\
        slot = -1
        free_slot = STAGES - 2
        for k in range(n):
            slot = gl.where(slot + 1 >= STAGES - 1, 0, slot + 1)
            more = k < n - (STAGES - 1)
            # at most the copies of the next STAGES - 2 iterations are under way: this one's tiles are there
            async_copy.wait_group(STAGES - 2)
            acc = mma_v2(a_buf.index(slot).load(x), y, acc)
            sum = mma_v2(b_buf.index(slot).load(x), y, sum)
            free_slot = gl.where(free_slot + 1 >= STAGES - 1, 0, free_slot + 1)
            ahead = k + STAGES - 1
            copy(a_buf.index(free_slot), a_ptr + ahead, mask=more)
            copy(b_buf.index(free_slot), b_ptr + ahead, mask=more)
            async_copy.commit_group()
        async_copy.wait_group(0)
        """
    )


def test_they_are_so_everywhere_where_all_tiles_are_read_before_the_products() -> None:
    body = "for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k).load(x)\n    b = _tt2gl_ring_b(b_ptr + k).load(y)\n"
    body += "    acc = mma_v2(a, b, acc)\n    sums = mma_v2(b, a, sums)\n"
    spec = replace(rings("STAGES - 1", in_memory=False), looks_ahead=False)
    assert "copy(a_buf.index(free_slot), a_ptr + ahead, mask=more)" in written(body, spec)


def test_a_depth_that_is_a_number_is_folded() -> None:
    made = written("for k in range(n):\n    acc += _tt2gl_ring_a(a_ptr + k).load(x)\n", rings("1", in_memory=False))
    assert "# a ring of one tile; loads run one iteration ahead\n" in made
    assert "# all copies are done, this iteration's among them\n" in made
    assert "    async_copy.wait_group(0)\n    acc += a_buf.index(0).load(x)\n" in made
    assert "ahead = k + 1\n" in made


def test_rings_of_both_kinds_differ_in_depth() -> None:
    made = written(
        "for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k)\n    b = _tt2gl_ring_b(b_ptr + k).load(x)\n",
        rings("3", mixed=True),
    )
    assert "a_buf = gl.allocate_shared_memory(gl.float16, [3, BLOCK], shared)" in made
    assert "b_buf = gl.allocate_shared_memory(gl.float16, [2, BLOCK], shared)" in made
    assert "copy(a_buf.index(a_free_slot), a_ptr + ahead, mask=more)" in made
    assert "copy(b_buf.index(b_slot), b_ptr + ahead, mask=more)" in made


# ------------------------------------------------------------------------------------------------------------- counting


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("range(n)", ["for k in gl.static_range(2):", "ahead = k + 2", "mask=(k < n) & M"]),
        ("range(0, 8)", ["steps = 8", "for k in range(0, steps):", "more = k < steps - 2"]),
        ("range(0, n, 32)", ["gl.static_range(0, 2 * 32, 32)", "index(k // 32)", "ahead = k + 2 * 32"]),
        ("range(0, n, BLOCK)", ["gl.static_range(0, 2 * BLOCK, BLOCK)", "index(k // BLOCK)"]),
        (
            "range(0, n, step)",
            ["k = s * step", "copy(a_buf.index(s), ", "ahead = k + 2 * step", "more = k < n - 2 * step"],
        ),
        ("range(m, n)", ["for s in gl.static_range(2):", "k = m + s", "ahead = k + 2"]),
        ("range(m * 2, n + 1, BLOCK * 2)", ["first = m * 2", "end = n + 1", "k = first + s * (BLOCK * 2)"]),
        ("range(n, m, -BLOCK)", ["k = n - s * BLOCK", "(k > m)", "ahead = k - 2 * BLOCK", "more = k > m + 2 * BLOCK"]),
        ("tl.range(0, n, num_stages=3)", ["for k in tl.range(0, n):"]),
        ("tl.range(0, n, step=BLOCK, num_stages=3, flatten=True)", ["tl.range(0, n, step=BLOCK, flatten=True)"]),
    ],
)
def test_counting(header: str, lines: list[str]) -> None:
    made = written(f"for k in {header}:\n    a = _tt2gl_ring_a(a_ptr + k, mask=M)\n", rings("3"))
    assert [line for line in lines if line not in made] == []
    assert "num_stages" not in made


def test_a_step_by_name_is_taken_to_be_positive_where_a_loop_may_count_down() -> None:
    assertion = 'gl.static_assert(BLOCK > 0, "the loop is taken to count upwards")'
    body = "    a = _tt2gl_ring_a(a_ptr + k)\n"
    assert assertion in written(f"for k in range(m, n, BLOCK):\n{body}")
    for header in ("range(0, n, BLOCK)", "range(m, n, -BLOCK)", "range(m, n, 8)", "range(m, n)"):
        assert "count upwards" not in written(f"for k in {header}:\n{body}")


def test_a_loop_of_64_bits_has_its_prologue_counted_in_32() -> None:
    spec = replace(rings(), wide=frozenset({"k"}))
    made = written("for k in range(0, n):\n    a = _tt2gl_ring_a(a_ptr + k)\n", spec)
    assert "    k = gl.to_tensor(0).to(gl.to_tensor(n).dtype) + s\n" in made
    assert "    copy(a_buf.index(s), a_ptr + k, mask=k < n)\n" in made
    made = written("for k in range(m, n):\n    a = _tt2gl_ring_a(a_ptr + k)\n", spec)
    assert "    k = gl.to_tensor(m).to((gl.to_tensor(m) + n).dtype) + s\n" in made
    made = written("for k in range(0, n, m):\n    a = _tt2gl_ring_a(a_ptr + k)\n", spec)
    assert "    k = gl.to_tensor(0).to((gl.to_tensor(0) + n + m).dtype) + s * m\n" in made


def test_a_bound_that_the_loop_changes_is_kept() -> None:
    made = written("for k in range(0, n):\n    a = _tt2gl_ring_a(a_ptr + k)\n    n -= 1\n")
    assert "steps = n\n" in made
    assert "ahead < n" not in made


def test_a_bound_of_several_lines_that_is_kept() -> None:
    made = written("for k in range(0, n +\n        m):\n    a = _tt2gl_ring_a(a_ptr + k)\n    n -= 1\n")
    assert re.search(r"^steps = \(n \+\n +m\)$", made, re.M)


def test_a_variable_without_a_name_gets_one() -> None:
    made = written("for _ in range(n):\n    a = _tt2gl_ring_a(a_ptrs)\n    a_ptrs += 1\n")
    assert "for i in range(n):\n" in made
    assert "more = i < n - (STAGES - 1)\n" in made
    assert "ahead" not in made[made.index("for i in range(n)") :]


def test_one_that_is_read_keeps_its_name() -> None:
    made = written("for _ in range(n):\n    a = _tt2gl_ring_a(a_ptr + k)\n    use(_, a)\n")
    assert "for _ in range(n):\n" in made
    assert "use(_, a)" in made


def test_a_ring_whose_loads_stand_under_a_flag_is_made_under_it() -> None:
    made = written(
        """\
        for k in range(n):
            if FLAG:
                a = _tt2gl_ring_a(a_ptr + k)
            if a_ptr is not None:
                b = _tt2gl_ring_b(b_ptr + k)
        """
    )
    assert "if FLAG:\n    a_buf = gl.allocate_shared_memory(gl.float16, " in made
    assert "if a_ptr is not None:\n    b_buf = gl.allocate_shared_memory(gl.float16, " in made


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if m > k:\n    a = _tt2gl_ring_a(a_ptr + k)", id="known when it runs"),
        pytest.param("FLAG = m\nif FLAG:\n    a = _tt2gl_ring_a(a_ptr + k)", id="the loop changes it"),
        pytest.param(
            "if FLAG:\n    a = _tt2gl_ring_a(a_ptr + k)\nelse:\n    a = _tt2gl_ring_a(b_ptr + k)", id="both sides"
        ),
    ],
)
def test_a_ring_that_is_made_whatever_the_flags_are(body: str) -> None:
    made = written(f"for k in range(n):\n{textwrap.indent(body, '    ')}\n")
    assert re.search(r"^a_buf = gl\.allocate_shared_memory", made, re.M)


def test_names_that_the_author_has_are_not_taken() -> None:
    made = written("a_buf = ahead = steps = 1\nfor k in range(0, n * 2):\n    a = _tt2gl_ring_a(a_ptr + k)\n")
    assert "a_buf_2 = gl.allocate_shared_memory" in made
    assert "steps_2 = n * 2" in made
    assert "ahead_2 = k + STAGES - 1" in made


# ------------------------------------------------------------------------------------------------------------ the slice


def test_what_both_need_is_carried_twice() -> None:
    made = written(
        "for k in range(n):\n    a = _tt2gl_ring_a(p + offs)\n"
        "    use(offs)\n    offs += BLOCK  # next\n    p += k\nuse(p)\n"
    )
    assert "offs_ahead = offs\np_ahead = p\n" in made
    assert made.count("offs_ahead += BLOCK\n") == 2
    assert made.count("offs += BLOCK  # next\n") == 1
    assert made.count("# next") == 1


def test_what_is_carried_into_the_next_loop_only_to_be_set_again_moves() -> None:
    made = written(
        "for i in range(m):\n    p = a_ptr + i\n"
        "    for k in range(n):\n        a = _tt2gl_ring_a(p)\n        p += BLOCK\n"
    )
    assert "p_ahead" not in made
    assert made.count("p += BLOCK\n") == 2


def test_a_temporary_that_something_else_carries_gets_a_name_of_its_own() -> None:
    made = written("for k in range(n):\n    use(t)\n    t = k * 2\n    a = _tt2gl_ring_a(p + t)\n")
    assert made.count("t_ahead = k * 2\n") == 1
    assert made.count("t_ahead = ahead * 2\n") == 1
    assert "    t = k * 2\n" in made


def test_a_name_that_stands_for_two_things_in_an_iteration_gets_one_for_each() -> None:
    made = written("for k in range(n):\n    p = b_ptr + k\n    use(p)\n    p = a_ptr + k\n    a = _tt2gl_ring_a(p)\n")
    assert made.count("p_ahead = a_ptr + k\n") == 1
    assert made.count("p_ahead = a_ptr + ahead\n") == 1
    assert "    p = b_ptr + k\n" in made


def test_what_a_branch_gives_its_first_value_has_none_before_the_loop() -> None:
    body = "for k in range(n):\n    if FLAG:\n        t = k * 2\n    a = _tt2gl_ring_a(p + t)\n    use(t)\n"
    assert "t_ahead = t\n" not in written(body)
    assert "t_ahead = t\n" in written(f"t = m\n{body}")


def test_a_test_in_parentheses_without_a_space_is_turned() -> None:
    made = written(
        "for k in range(n):\n    if(FLAG):\n        use(k)\n    else:\n        a = _tt2gl_ring_a(p)\n        use(a)\n"
    )
    assert "    if not (FLAG):\n" in made


def test_branches_are_filtered() -> None:
    made = written(
        """\
        for k in range(n):
            # which
            if FLAG:
                a = _tt2gl_ring_a(p)
            else:
                a = _tt2gl_ring_a(p, mask=M)
            if FLAG:
                use(a)
                p += 1  # even
            elif m > 1:
                p += 2
            else:
                use(m)
        """
    )
    loop = made[made.index("for k in range(n)") :]
    assert "# which\n    a = a_buf.index(slot)\n    if FLAG:\n        use(a)\n    elif m > 1:\n" not in loop
    assert "# which\n    a = a_buf.index(slot)\n    if FLAG:\n        use(a)\n" in loop
    assert "    if FLAG:\n        p += 1  # even\n    elif m > 1:\n        p += 2\n" in loop
    assert made.count("# even") == made.count("# which") == 1


def test_a_branch_that_is_left_alone_keeps_its_sense() -> None:
    made = written(
        "for k in range(n):\n    a = _tt2gl_ring_a(p)\n    if FLAG:\n        p += 1\n    else:\n        use(a)\n"
    )
    assert "    if not FLAG:\n        use(a)\n" in made


def test_comments_of_what_moves_go_with_it_once() -> None:
    made = written(
        """\
        for k in range(n):
            # where
            at = p + k  # here
            a = _tt2gl_ring_a(
                at,  # address
                mask=M,
            )
        """
    )
    assert made.count("# where") == made.count("# here") == 1
    assert made.index("# where") > made.index("ahead =")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        # In the copy's own arguments, and one inside another.
        ("a = _tt2gl_ring_a(a_ptr + gl.load(b_ptr + k))", "a_ptr + gl.load(b_ptr + ahead, mask=more)"),
        (
            "page = gl.load(gl.load(b_ptr), k < 8, other=0)\na = _tt2gl_ring_a(page)",
            "page = gl.load(gl.load(b_ptr, mask=more), (ahead < 8) & more, other=0)",
        ),
        # Under a condition.
        ("if m > 1:\n    p = gl.load(b_ptr)\na = _tt2gl_ring_a(p)", "p = gl.load(b_ptr, mask=more)"),
        (
            "if m > 1:\n    b_ptr += 1\np = gl.load(b_ptr)\na = _tt2gl_ring_a(p)",
            "p = gl.load(b_ptr, mask=more)",
        ),
    ],
)
def test_loads_of_addresses_that_stay_beside_the_copy(body: str, kept: str) -> None:
    made = written("for k in range(n):\n" + textwrap.indent(body, "    ") + "\n")
    assert kept in made[made.index("for k in range(n)") :]
    assert "_next" not in made


def test_an_address_is_loaded_an_iteration_before_its_copy() -> None:
    made = written(
        """\
        for k in range(n):
            # which page
            page = gl.load(b_ptr + k)  # of the table
            a = _tt2gl_ring_a(a_ptr + page)
            use(a)
        """,
        rings("2", in_memory=False),
    )
    assert made[made.index("for k in gl.static_range") :] == textwrap.dedent(
        """\
        for k in gl.static_range(2):
            page = gl.load(b_ptr + k, mask=k < n)
            copy(a_buf.index(k), a_ptr + page, mask=k < n)
            async_copy.commit_group()
        # where the next tiles are, looked up one iteration before they are copied
        k = 2
        page_next = gl.load(b_ptr + k, mask=k < n)

        slot = 0
        for k in range(n):
            more = k < n - 2
            more_after = k < n - 3
            # at most the copies of the next iteration are under way: this one's tiles are there
            async_copy.wait_group(1)
            a = a_buf.index(slot)
            use(a)
            copy(a_buf.index(slot), a_ptr + page_next, mask=more)
            async_copy.commit_group()
            # where the tiles after these are
            after = k + 3
            # which page
            page_next = gl.load(b_ptr + after, mask=more_after)  # of the table
            slot = gl.where(slot + 1 >= 2, 0, slot + 1)
        async_copy.wait_group(0)
        """
    )


def looked_up(buffers: str, *, scalar: bool) -> LoopRings:
    """A ring of tiles, and a slot that says where those are."""
    tile = Ring("a", "gl.float16", ("BLOCK",), "shared", in_memory=False)
    dims = ("1",) if scalar else ("BLOCK",)
    slot = Ring("page", "gl.int32", dims, "page_shared", in_memory=False, looked_up=True, scalar=scalar)
    return LoopRings("kernel", 2, (tile, slot), buffers)


def test_a_scalar_that_says_where_tiles_are_is_copied_an_iteration_before_them() -> None:
    made = written(
        """\
        for k in range(n):
            # which page
            page = _tt2gl_ring_page(b_ptr + k).to(gl.int64)  # of the table
            a = _tt2gl_ring_a(a_ptr + page, mask=k < m)
            use(a)
        """,
        looked_up("1", scalar=True),
    )
    assert made == textwrap.dedent(
        """\
        # a ring of one tile; loads run one iteration ahead
        a_buf = gl.allocate_shared_memory(gl.float16, [1, BLOCK], shared)
        # what says where tiles are
        page_layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
        page_buf = gl.allocate_shared_memory(gl.int32, [1, 1], page_shared)
        for k in gl.static_range(1):
            copy(page_buf.index(0), b_ptr + k + gl.arange(0, 1, layout=page_layout), mask=k < n)
            async_copy.commit_group()
            async_copy.wait_group(0)
            page = page_buf.index(0).load(page_layout).item().to(gl.int64)
            copy(a_buf.index(k), a_ptr + page, mask=(k < n) & (k < m))
            async_copy.commit_group()
        # where the next tiles are, looked up one iteration before they are copied
        k = 1
        copy(page_buf.index(0), b_ptr + k + gl.arange(0, 1, layout=page_layout), mask=k < n)
        async_copy.commit_group()

        for k in range(n):
            more = k < n - 1
            more_after = k < n - 2
            # this iteration's tiles are there
            async_copy.wait_group(0)
            a = a_buf.index(0)
            use(a)
            ahead = k + 1
            # which page
            page = page_buf.index(0).load(page_layout).item().to(gl.int64)  # of the table
            copy(a_buf.index(0), a_ptr + page, mask=more & (ahead < m))
            async_copy.commit_group()
            # where the tiles after these are
            after = k + 2
            copy(page_buf.index(0), b_ptr + after + gl.arange(0, 1, layout=page_layout), mask=more_after)
            async_copy.commit_group()
        async_copy.wait_group(0)
        """
    )


def test_pointers_step_before_the_copies_and_those_of_lookups_behind_them() -> None:
    made = written(
        """\
        for k in range(n):
            page = _tt2gl_ring_page(b_ptr)
            a = _tt2gl_ring_a(a_ptr + page)
            use(a)
            a_ptr += 8
            b_ptr += 4
        """,
        looked_up("2", scalar=True),
    )
    prologue, loop = made.split("for k in range(n):\n")
    assert "for k in gl.static_range(2):\n    if k > 0:\n        a_ptr += 8\n" in prologue
    assert prologue.count("b_ptr += 4") == 2
    places = [loop.index(each) for each in ("use(a)", "a_ptr += 8", "copy(a_buf", "copy(page_buf", "b_ptr += 4")]
    assert places == sorted(places)
    assert loop.count("a_ptr += 8") == 1


def test_a_lookup_that_another_one_needs_is_loaded_beside_that() -> None:
    spec = looked_up("1", scalar=True)
    chained = replace(spec, rings=(*spec.rings, replace(spec.rings[1], name="entry")))
    made = written(
        """\
        for k in range(n):
            entry = _tt2gl_ring_entry(c_ptr + k)
            page = _tt2gl_ring_page(b_ptr + entry)
            use(_tt2gl_ring_a(a_ptr + page))
        """,
        chained,
    )
    loop = made.split("for k in range(n):\n")[1]
    assert "_tt2gl_ring" not in made
    assert "entry_buf" not in made
    assert "entry = gl.load(c_ptr + after, mask=more_after)\n" in loop
    assert "copy(page_buf.index(0), b_ptr + entry + gl.arange(0, 1, layout=page_layout), mask=more_after)" in loop


def test_a_mask_stands_before_the_bracket_of_a_call_of_several_lines() -> None:
    load = cst.ensure_type(cst.parse_expression("gl.load(a_ptr + k\n        )"), cst.Call)
    assert code(masked(load, "more")) == "gl.load(a_ptr + k, mask=more\n        )"


@pytest.mark.parametrize(
    ("load", "mask"),
    [("a_ptr + k, mask=k < 8", "mask=(k < m) & (k < 8)"), ("a_ptr + k", "mask=k < steps")],
)
def test_a_copy_whose_only_mask_says_whether_there_is_an_iteration_has_no_constant_for_one(
    load: str, mask: str
) -> None:
    """A parameter is a constant where it is 1."""
    made = written(f"for k in range(m):\n    use(_tt2gl_ring_a({load}).load(one))\n", rings(in_memory=False))
    assert f"copy(a_buf.index(k), a_ptr + k, {mask})" in made
    assert ("steps = m\n" in made) == ("steps" in mask)


def test_a_scalar_by_one_pointer_or_another() -> None:
    body = "for k in range(n):\n    p = _tt2gl_ring_page(b_ptr if FLAG else a_ptr, k < m)\n    a = _tt2gl_ring_a(p)\n"
    made = written(body, looked_up("1", scalar=True))
    assert "(b_ptr if FLAG else a_ptr) + gl.arange(0, 1, layout=page_layout)" in made


def test_rows_that_are_read_in_two_layouts_are_copied_once_and_awaited_where_tiles_run_further_ahead() -> None:
    made = written(
        """\
        for k in range(n):
            at = k + cols
            rows = _tt2gl_ring_page(b_ptr + at, mask=at < m, other=0).load(one)
            rows_v = _tt2gl_ring_page(b_ptr + at, mask=at < m, other=0).load(two)
            a = _tt2gl_ring_a(a_ptr + rows + rows_v)
            use(a)
        """,
        looked_up("STAGES", scalar=False),
    )
    steady = made[made.index("for k in range(n)") :]
    assert steady.count("copy(page_buf.index(0), b_ptr + at, mask=more_after & (at < m))") == 1
    assert "async_copy.wait_group(0 if STAGES == 1 else 2)" in steady
    awaited = "    if STAGES > 1:\n        async_copy.wait_group(0)\n    rows = page_buf.index(0).load(one)\n"
    assert awaited + "    rows_v = page_buf.index(0).load(two)\n" in steady


def test_rows_looked_up_that_the_iteration_reads_in_a_layout_of_its_own_are_loaded_again_there() -> None:
    rows = "for k in range(n):\n    rows = _tt2gl_ring_page(b_ptr + k).load(one)\n    a = _tt2gl_ring_a(a_ptr + rows)\n"
    again = "    rows_v = _tt2gl_ring_page(b_ptr + k).load(two)\n"
    made = written(f"{rows}{again}    use(a, rows_v)\n", looked_up("1", scalar=False))
    assert "    rows_v = gl.convert_layout(gl.load(b_ptr + k), two)\n    use(a, rows_v)\n" in made


def test_what_else_says_where_tiles_are_is_loaded_beside_what_is_copied_to_a_slot() -> None:
    made = written(
        """\
        for k in range(n):
            row = gl.load(r_ptr + k)
            page = _tt2gl_ring_page(b_ptr + k)
            use(_tt2gl_ring_a(a_ptr + page + row * 8))
        """,
        looked_up("1", scalar=True),
    )
    before, loop = made.split("for k in range(n):\n")
    at_first = "row_next = gl.load(r_ptr + k, mask=k < n)\ncopy(page_buf.index(0), "
    assert at_first in before.split("# where the next tiles are")[1]
    assert loop.index("copy(a_buf.index(0), a_ptr + page + row_next * 8, mask=more)") < loop.index(
        "    row_next = gl.load(r_ptr + after, mask=more_after)\n    copy(page_buf.index(0), "
    )
    assert loop.count("gl.load(") == 1


def test_without_a_stage_for_them_lookups_are_loads() -> None:
    body = "for k in range(n):\n    page = _tt2gl_ring_page(b_ptr + k)\n    use(_tt2gl_ring_a(a_ptr + page), page)\n"
    made = written(body, replace(looked_up("1", scalar=True), looks_ahead=False))
    assert "page_buf" not in made
    assert "_tt2gl" not in made
    held = "    page_held = page_held[1:] + (page,)\n"
    assert (
        f"    page = gl.load(b_ptr + ahead, mask=more)\n{held}    copy(a_buf.index(0), a_ptr + page, mask=more)\n"
        in made
    )


def test_without_a_stage_for_it_what_says_where_tiles_are_is_loaded_where_their_copies_start() -> None:
    spec = replace(rings("2", in_memory=False), looks_ahead=False)
    made = written("for k in range(n):\n    p = gl.load(b_ptr + k)\n    a = _tt2gl_ring_a(a_ptr + p)\n", spec)
    assert "    ahead = k + 2\n    p = gl.load(b_ptr + ahead, mask=more)\n" in made
    assert "_next" not in made


def test_what_addresses_and_copies_both_need_is_worked_out_for_each() -> None:
    made = written(
        """\
        for k in range(m, n, BLOCK):
            at = k + cols
            page = gl.load(b_ptr + at, mask=at < n, other=0).to(gl.int64)
            a = _tt2gl_ring_a(p + page, mask=at < n)
            cols += 1
        """
    )
    before, loop = made.split("for k in range(m, n, BLOCK):\n")
    assert "    cols += 1\n# where the next" in before
    assert "\nk = m + (STAGES - 1) * BLOCK\ncols_next = cols\nat_next = k + cols_next\n" in before
    assert before.index("at_next =") < before.index("page_next = gl.load(b_ptr + at_next, mask=(at_next < n) & (k < n)")
    assert "    at = ahead + cols\n    page = page_next.to(gl.int64)\n    copy(" in loop
    assert (
        "    after = k + STAGES * BLOCK\n    at_next = after + cols_next\n"
        "    page_next = gl.load(b_ptr + at_next, mask=(at_next < n) & more_after, other=0)\n    cols_next += 1\n"
        in loop
    )


def test_an_address_of_an_address_is_loaded_with_it() -> None:
    made = written(
        "for k in range(n):\n    row = gl.load(b_ptr + k)\n    page = gl.load(q + row)\n"
        "    a = _tt2gl_ring_a(p + page)\n"
    )
    loop = made[made.index("for k in range(n)") :]
    assert (
        "    row = gl.load(b_ptr + after, mask=more_after)\n    page_next = gl.load(q + row, mask=more_after)\n" in loop
    )
    assert loop.count("gl.load(") == 2


def test_what_was_loaded_for_a_lookup_is_not_loaded_for_the_copies_again() -> None:
    body = (
        "for k in range(n):\n    block = gl.load(b_ptr + k)\n    at = block * m\n    page = LOOKUP(q + block)\n"
        "    a = _tt2gl_ring_a(p + page, mask=at < n)\n"
    )
    for lookup, spec in (("gl.load", None), ("_tt2gl_ring_page", looked_up("2", scalar=True))):
        made = written(body.replace("LOOKUP", lookup), spec)
        loop = made[made.index("\nfor k in range(n)") :]
        assert "    block = block_next\n    at = block * m\n" in loop
        assert "    block_next = gl.load(b_ptr + after, mask=more_after)\n" in loop
        assert loop.count("gl.load(b_ptr") == 1


def test_what_a_lookup_changes_after_its_load_is_loaded_again() -> None:
    made = written(
        "for k in range(n):\n    block = gl.load(b_ptr + k)\n    at = block * m\n    block = block + 1\n"
        "    page = gl.load(q + block)\n    a = _tt2gl_ring_a(p + page, mask=at < n)\n"
    )
    loop = made[made.index("\nfor k in range(n)") :]
    assert loop.count("gl.load(b_ptr") == 2


def test_one_copy_for_two_uses_of_a_tile() -> None:
    made = written("for k in range(n):\n    a = _tt2gl_ring_a(p + k)\n    a_2 = _tt2gl_ring_a(p + k).load(x)\n")
    assert made.count("copy(a_buf") == 2
    assert "    a_2 = a_buf.index(slot).load(x)\n" in made


def test_a_constant_that_both_need_is_bound_before_the_loop() -> None:
    made = written(
        "for k in range(n):\n    c: gl.constexpr = BLOCK * 2\n    a = _tt2gl_ring_a(p + k * c)\n    use(c)\n"
    )
    assert made.count("c: gl.constexpr = BLOCK * 2") == 1
    assert made.index("c: gl.constexpr") < made.index("static_range")


def test_options_of_loads_are_kept() -> None:
    made = written("for k in range(n):\n    a = _tt2gl_ring_a(p + k, None, eviction_policy='evict_first')\n")
    assert "copy(a_buf.index(k), p + k, mask=k < n, eviction_policy='evict_first')\n" in made


def test_neighbouring_branches_of_the_producer_are_joined() -> None:
    made = written(
        """\
        for k in range(n):
            if FLAG:
                a = _tt2gl_ring_a(p)
            else:
                a = _tt2gl_ring_a(p, mask=M)
            if FLAG:
                b = _tt2gl_ring_b(q)
            else:
                b = _tt2gl_ring_b(q, mask=M)
            if step:
                p += 1
            if step:
                q += 1
                step = 0
            if step:
                q += 2
        """
    )
    loop = made[made.index("for k in range(n)") :]
    assert loop.count("if FLAG:") == 1
    assert "        copy(a_buf.index(free_slot), p, mask=more)\n        copy(b_buf" in loop
    # The second decides anew what the third depends on.
    assert "    if step:\n        p += 1\n        q += 1\n        step = 0\n    if step:\n        q += 2\n" in loop


def test_names_of_slots_say_which_ring_where_depths_differ() -> None:
    made = written(
        "for k in range(n):\n    a = _tt2gl_ring_a(p + k)\n    b = _tt2gl_ring_b(q + k).load(x)\n",
        rings("3", mixed=True),
    )
    assert "\na_slot = 0\na_free_slot = 2\nb_slot = 0\nfor k in range(n):\n" in made
    assert "    a = a_buf.index(a_slot)\n    b = b_buf.index(b_slot).load(x)\n" in made
    assert made.endswith(
        "    a_slot = gl.where(a_slot + 1 >= 3, 0, a_slot + 1)\n"
        "    a_free_slot = gl.where(a_free_slot + 1 >= 3, 0, a_free_slot + 1)\n"
        "    b_slot = gl.where(b_slot + 1 >= 2, 0, b_slot + 1)\n"
        "async_copy.wait_group(0)\n"
    )


def test_one_tile_needs_no_counter() -> None:
    made = written("for k in range(n):\n    acc += _tt2gl_ring_a(p + k).load(x)\n", rings("1", in_memory=False))
    assert "slot" not in made


# ------------------------------------------------------------------------------------------------ through registers


def through_registers(stored: str = "") -> LoopRings:
    a = Ring("a", "gl.float16", ("BLOCK",), "shared", in_memory=False, registers=True, stored=stored)
    return LoopRings("kernel", 2, (a,), "STAGES - 1")


def test_masked_tiles_come_to_registers_before_the_last_are_read() -> None:
    made = written("for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k, mask=k < m).load(at)\n", through_registers())
    loop = made[made.index("    # tiles of an iteration ahead") :]
    order = ["a_next = gl.load(a_ptr + ahead, mask=ahead < m)", "a_slots[0].load(at)", "slot = gl.where("]
    order += ["a_slots = a_slots[1:] + (a_buf.index(slot),)", "a_slots[-1].store(a_next)"]
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)
    assert "async_copy" not in made


def test_loads_get_no_other_mask_as_the_last_iterations_are_apart() -> None:
    body = "for k in range(0, n, step):\n    # next\n    a = _tt2gl_ring_a(a_ptr + k).load(at)\n    acc += a * k\n"
    made = written(body, through_registers("turned"))
    assert "drain = gl.maximum(gl.cdiv(n, step) - (STAGES - 1), 0) * step\n" in made
    assert "for k in range(0, drain, step):\n" in made
    assert "    a_next = gl.load(a_ptr + ahead)\n" in made
    assert "    a_slots[-1].store(turned(a_next))\n" in made
    last = made[made.index("# the last iterations") :]
    assert "    a_last = a_slots[0].load(at)\n    if drain + s_2 * step < n:\n" in last
    assert "        k_last = drain + s_2 * step\n        a = a_last\n        acc += a * k_last\n" in last
    assert "    a_slots = a_slots[1:] + a_slots[:1]\n" in last
    assert "gl.load" not in last
    assert "# next" not in last


def test_masked_loads_of_a_loop_whose_length_is_known_leave_its_last_iterations_alone() -> None:
    made = written("for k in range(4):\n    a = _tt2gl_ring_a(a_ptr + k, mask=k < m).load(at)\n", through_registers())
    assert "drain = gl.maximum(steps - (STAGES - 1), 0)\n" in made
    assert "    a_next = gl.load(a_ptr + ahead, mask=ahead < m)\n" in made


TWO_PRODUCTS = """\
for k in range(n):
    s = wmma(q, _tt2gl_ring_a(a_ptr + k{mask}).load(at), b) * scale
    p = gl.exp(s - top)
    top = gl.maximum(top, p)
    acc = wmma(as_operand(p, at), b, acc)
    {more}
"""


def test_the_last_iterations_of_two_products_ask_for_those_alone() -> None:
    made = written(TWO_PRODUCTS.format(mask=", mask=k < m", more="gl.store(out_ptr, p)"), through_registers())
    last = made[made.index("# the last iterations") :].splitlines()
    assert last[2:17] == [
        "    exists = s_2 < n",
        "    top_before = top",
        "    s_rhs = a_slots[0].load(at)",
        "    s_product = b",
        "    if exists:",
        "        s_product = wmma(q, s_rhs, s_product)",
        "    s = s_product * scale",
        "    p = gl.exp(s - top)",
        "    top = gl.maximum(top, p)",
        "    acc_lhs = as_operand(p, at)",
        "    if exists:",
        "        acc = wmma(acc_lhs, b, acc)",
        "    gl.store(out_ptr, p, mask=exists)",
        "    top = gl.where(exists, top, top_before)",
        "    a_slots = a_slots[1:] + a_slots[:1]",
    ]


def test_the_last_iterations_of_one_product_ask_for_that_alone() -> None:
    body = "for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k)\n    acc = mfma(wide(a.load(at) * 2), b, acc)\n"
    made = written(f"@gluon.constexpr_function\ndef wide(x):\n    return list(x)\n\n{body}", through_registers())
    last = made[made.index("# the last iterations") :].splitlines()
    assert last[1:8] == [
        "for s in gl.static_range(STAGES - 1):",
        "    exists = s < n",
        "    a = a_slots[0]",
        "    acc_lhs = wide(a.load(at) * 2)",
        "    if exists:",
        "        acc = mfma(acc_lhs, b, acc)",
        "    a_slots = a_slots[1:] + a_slots[:1]",
    ]


def test_products_side_by_side_are_asked_for_once() -> None:
    body = """\
        for k in range(n):
            a = _tt2gl_ring_a(a_ptr + k, mask=k < m).load(at)
            acc = mfma(a, b, acc)
            top = mfma(a, c, top)
    """
    made = written(textwrap.dedent(body), through_registers())
    last = made[made.index("# the last iterations") :].splitlines()
    assert last[3:7] == [
        "    a = a_slots[0].load(at)",
        "    if exists:",
        "        acc = mfma(a, b, acc)",
        "        top = mfma(a, c, top)",
    ]


@pytest.mark.parametrize(
    "more",
    [
        "gl.atomic_add(out_ptr + k, p)",
        "gl.store(out_ptr + k, wmma(p, b, c))",
        "async_copy.async_load(b_buf, b_ptr + k)",
        "gl.assume(k < m)",
        "if gl.load(flags + k) > 0:\n        acc = acc * 2",
        "if m > 3:\n        gl.atomic_add(out_ptr + k, p)",
    ],
)
def test_what_does_more_than_compute_is_not_done_where_there_is_no_iteration(more: str) -> None:
    made = written(TWO_PRODUCTS.format(mask=", mask=k < m", more=more), through_registers())
    assert "mask=(ahead < m) & more)" in made
    assert "exists" not in made


def test_what_the_last_iterations_load_besides_has_their_condition_for_a_mask() -> None:
    scales = "s = gl.load(s_ptr + k, mask=k < m)\n    t = buffer.buffer_load(s_ptr, k)\n"
    body = (
        f"for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k).load(at)\n    {scales}    acc += wmma(a, b, c) * s * t\n"
    )
    made = written(body, through_registers())
    last = made[made.index("# the last iterations") :]
    assert "    s = gl.load(s_ptr + k_last, mask=(k_last < m) & exists)\n" in last
    assert "    t = buffer.buffer_load(s_ptr, k_last, mask=exists)\n" in last


def test_what_the_last_iterations_store_to_global_memory_has_their_condition_for_a_mask() -> None:
    stores = (
        "gl.store(o_ptr + k, acc, k < m)\n    buffer.buffer_store(acc, o_ptr, k, mask=k < m)\n    spare.store(acc)\n"
    )
    body = f"for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k).load(at)\n    acc = mfma(a, b, acc)\n    {stores}"
    made = written(body, through_registers())
    last = made[made.index("# the last iterations") :]
    assert "    gl.store(o_ptr + k_last, acc, (k_last < m) & exists)\n" in last
    assert "    buffer.buffer_store(acc, o_ptr, k_last, mask=(k_last < m) & exists)\n" in last
    assert "    if exists:\n        spare.store(acc)\n" in last


def test_branches_of_the_last_iterations_are_taken_whether_there_is_such_an_iteration_or_not() -> None:
    more = "if m > 3:\n        acc = acc * 2\n        gl.store(out_ptr, p)\n    else:\n        acc = mfma(p, b, acc)"
    made = written(TWO_PRODUCTS.format(mask=", mask=k < m", more=more), through_registers())
    last = made[made.index("# the last iterations") :]
    assert (
        "    if m > 3:\n        acc = acc * 2\n        gl.store(out_ptr, p, mask=exists)\n    else:\n"
        "        if exists:\n            acc = mfma(p, b, acc)\n    top = gl.where(exists, top, top_before)\n"
        "    acc = gl.where(exists, acc, acc_before)\n"
    ) in last.replace(
        "    acc = gl.where(exists, acc, acc_before)\n    top = gl.where(exists, top, top_before)\n",
        "    top = gl.where(exists, top, top_before)\n    acc = gl.where(exists, acc, acc_before)\n",
    ), last


def test_the_last_iterations_of_a_loop_of_64_bits_are_apart_too() -> None:
    spec = replace(through_registers(), wide=frozenset({"k"}))
    made = written(TWO_PRODUCTS.format(mask=", mask=k < m", more="x = p").replace("(n)", "(0, n, BLOCK)"), spec)
    assert (
        "drain = gl.to_tensor(0).to(gl.to_tensor(n).dtype) + gl.maximum(gl.cdiv(n, BLOCK) - (STAGES - 1), 0) * BLOCK\n"
    ) in made
    assert "for k in range(0, drain, BLOCK):\n" in made
    assert re.search(r"    exists = drain \+ s_\d \* BLOCK < n\n", made), made


def test_loads_without_masks_leave_the_last_iterations_of_two_products_a_loop_on_rdna() -> None:
    body = TWO_PRODUCTS.format(mask="", more="x = gl.exp(p)").replace("wmma", "gl.amd.rdna3.wmma")
    made = written(body, through_registers())
    assert "for k in range(drain, n):\n" in made
    assert "exists" not in made


@pytest.mark.parametrize("product", ["gl.amd.cdna3.mfma", "gl.amd.gfx1250.wmma"])
def test_loads_without_masks_need_none_where_the_last_iterations_of_two_products_are_asked_for(product: str) -> None:
    body = TWO_PRODUCTS.format(mask="", more="x = gl.exp(p)").replace("wmma", product)
    made = written(body, through_registers())
    assert "for k in range(drain):\n" in made
    assert "    a_next = gl.load(a_ptr + ahead)\n" in made
    last = made[made.index("# the last iterations") :]
    assert f"    if exists:\n        s_product = {product}(q, s_rhs, s_product)\n" in last
    assert "gl.load" not in last


def test_several_products_stand_one_after_the_other_where_the_compiler_knows_how_many_iterations_there_are() -> None:
    made = written(TWO_PRODUCTS.format(mask="", more="x = gl.exp(p)").replace("(n)", "(4)"), through_registers())
    last = made[made.index("# the last iterations") :]
    assert "\nfor s_2 in gl.static_range(STAGES - 1):\n" in last
    assert "    a_last = a_slots[0].load(at)\n    if s_2 < steps:\n" in last
    assert "exists" not in made


def test_a_product_of_a_product_is_asked_for_after_that() -> None:
    body = "for k in range(n):\n    acc = wmma(wmma(_tt2gl_ring_a(a_ptr + k, mask=k < m).load(at), b, c), b, acc)\n"
    made = written(body, through_registers())
    last = made[made.index("# the last iterations") :].splitlines()
    assert last[4:12] == [
        "    acc_lhs = a_slots[0].load(at)",
        "    acc_product = c",
        "    if exists:",
        "        acc_product = wmma(acc_lhs, b, acc_product)",
        "    acc_product_2 = acc",
        "    if exists:",
        "        acc_product_2 = wmma(acc_product, b, acc_product_2)",
        "    acc = acc_product_2",
    ]


def test_no_iterations_are_apart_without_the_flag_that_a_ring_stands_under() -> None:
    body = "for k in range(n):\n    if FLAG:\n        a = _tt2gl_ring_a(a_ptr + k).load(at)\n"
    made = written(body, through_registers())
    assert "drain = gl.maximum(n - (STAGES - 1), 0) if FLAG else n\n" in made
    assert "if FLAG:\n    for s in gl.static_range(STAGES - 1):\n" in made[made.index("# the last iterations") :]


UNDER_A_FLAG = """\
acc, at_ptr, at_k = zeros, a_ptr, 0
for k in range(n):
    if FLAG:
        a = _tt2gl_ring_a(a_ptr + k).load(at)
    else:
        left = m - at_k
        a = gl.load(at_ptr, mask=left > 0)
    {product}
    at_ptr += 1
    at_k += 1
"""


def test_the_last_iterations_under_a_flag_do_what_it_says() -> None:
    made = written(UNDER_A_FLAG.format(product="acc = wmma(a, b, acc)"), through_registers())
    assert made[made.index("# the last iterations") :].splitlines()[1:] == [
        "if FLAG:",
        "    for s in gl.static_range(STAGES - 1):",
        "        exists = s < n",
        "        a = a_slots[0].load(at)",
        "        if exists:",
        "            acc = wmma(a, b, acc)",
        "        a_slots = a_slots[1:] + a_slots[:1]",
    ]


def test_products_under_a_flag_leave_the_last_iterations_a_loop() -> None:
    made = written(UNDER_A_FLAG.format(product="if FLAG:\n        acc = wmma(a, b, acc)"), through_registers())
    assert "for k in range(drain, n):\n" in made


FLAGGED = """\
for k in range(n):
    if a_ptr.dtype == gl.float16:
        a = _tt2gl_ring_a(a_ptr + k, mask=k < m)
        b = _tt2gl_ring_b(b_ptr + k, mask=k < m)
    else:
        a = _tt2gl_ring_a(a_ptr + k, mask=k < n)
        b = _tt2gl_ring_b(b_ptr + k, mask=k < n)
    a = a.load(at)
    b = b.load(at)
"""


def test_all_tiles_of_an_iteration_of_the_prologue_are_loaded_before_the_first_is_stored() -> None:
    body = "for k in range(n):\n    acc += _tt2gl_ring_a(a_ptr + k).load(at)\n    acc += _tt2gl_ring_b(b_ptr + k)\n"
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    made = written(body, LoopRings("kernel", 2, (first, second), "STAGES - 1")).splitlines()
    start = made.index("for k in gl.static_range(STAGES - 1):")
    assert made[start + 1 : start + 5] == [
        "    a_first = gl.load(a_ptr + k, mask=k < n)",
        "    b_first = gl.load(b_ptr + k, mask=k < n)",
        "    a_buf.index(k).store(a_first)",
        "    b_buf.index(k).store(b_first)",
    ]


@pytest.mark.parametrize("late", [False, True])
def test_tiles_ahead_are_loaded_below_the_reads_of_the_last_where_triton_does_that(late: bool) -> None:
    body = "for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k).load(at)\n    b = _tt2gl_ring_b(b_ptr + k).load(at)\n"
    rings = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True, late=late) for name in "ab")
    made = written(body, LoopRings("kernel", 2, tuple(rings), "STAGES - 1"))
    loop = made[made.index("for k in range(drain)") :]
    order = ["a_next = gl.load(", "a = a_slots[0]", "b_next = gl.load(", "b = b_slots[0]"]
    order = [order[place] for place in (1, 0, 3, 2)] if late else order
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)


def test_those_of_a_prologue_under_a_flag_are_stored_under_it() -> None:
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    body = "for k in range(n):\n    if FLAG:\n        a = _tt2gl_ring_a(a_ptr + k)\n    b = _tt2gl_ring_b(b_ptr + k)\n"
    made = written(body, LoopRings("kernel", 2, (first, second), "STAGES - 1"))
    assert "    if FLAG:\n        a_buf.index(k).store(a_first)\n    b_buf.index(k).store(b_first)\n" in made


def test_tiles_under_a_flag_come_where_those_before_them_are_read() -> None:
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    made = written(FLAGGED, LoopRings("kernel", 2, (first, second), "STAGES - 1"))
    loop = made[made.index("    # tiles of an iteration ahead") :]
    order = ["a_next = gl.load(a_ptr + ahead, mask=ahead < m)", "a_next = gl.load(a_ptr + ahead, mask=ahead < n)"]
    order += ["b_next = gl.load(b_ptr + ahead, mask=ahead < m)", "b_next = gl.load(b_ptr + ahead, mask=ahead < n)"]
    order.insert(2, "a = a_slots[0]\n")
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)


OWN = FLAGGED.replace("k < n", "left > 0").replace("else:\n", "else:\n        left = n - k\n")


def test_what_a_flag_alone_computes_for_tiles_stays_above_the_first() -> None:
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    made = written(OWN, LoopRings("kernel", 2, (first, second), "STAGES - 1"))
    loop = made[made.index("for k in range(drain):") :]
    order = ["left = n - ahead\n", "a_next = gl.load(a_ptr + ahead, mask=left > 0)", "a = a_slots[0]\n"]
    order += ["b_next = gl.load(b_ptr + ahead, mask=left > 0)", "b = b_slots[0]\n"]
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)


READ_UNDER_A_FLAG = """\
acc, at_ptr = zeros, a_ptr
for k in range(n):
    if FLAG:
        a = _tt2gl_ring_a(a_ptr + k).load(at)
        b = _tt2gl_ring_b(b_ptr + k).load(at)
    else:
        left = m - k
        a = gl.load(at_ptr, mask=left > 0)
        b = gl.load(at_ptr, mask=left > 1)
    acc = wmma(a, b, acc)
"""


def test_branches_that_read_tiles_are_taken_apart_for_the_loads_beside_them() -> None:
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    made = written(READ_UNDER_A_FLAG, LoopRings("kernel", 2, (first, second), "STAGES - 1"))
    loop = made[made.index("for k in range(drain):") :]
    assert loop[: loop.index("    acc = wmma")].splitlines()[2:] == [
        "    ahead = k + STAGES - 1",
        "    if FLAG:",
        "        a_next = gl.load(a_ptr + ahead)",
        "        a = a_slots[0].load(at)",
        "        b_next = gl.load(b_ptr + ahead)",
        "        b = b_slots[0].load(at)",
        "    else:",
        "        left = m - k",
        "        a = gl.load(at_ptr, mask=left > 0)",
        "        b = gl.load(at_ptr, mask=left > 1)",
    ]


def held() -> LoopRings:
    return LoopRings("kernel", 2, (Ring("a", "", (), "", in_memory=False, registers=True, held=True),), "STAGES - 1")


def test_tiles_wait_in_registers_where_there_is_no_memory_for_them() -> None:
    made = written("for k in range(n):\n    acc += _tt2gl_ring_a(a_ptr + k, mask=k < m)\n", held())
    assert "a_held = ()\n" in made
    assert "    a_held = a_held + (gl.load(a_ptr + k, mask=(k < m) & (k < n)),)\n" in made
    loop = made[made.index("    # tiles of an iteration ahead") :]
    order = ["a_next = gl.load(a_ptr + ahead,", "acc += a_held[0]\n", "a_held = a_held[1:] + (a_next,)\n"]
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)
    assert "slot" not in made
    assert "allocate" not in made


def test_tiles_that_wait_in_registers_turn_in_the_last_iterations() -> None:
    made = written("for k in range(n):\n    acc += _tt2gl_ring_a(a_ptr + k)\n", held())
    last = made[made.index("# the last iterations") :]
    assert "        acc += a_held[0]\n    a_held = a_held[1:] + a_held[:1]\n" in last


def test_masks_of_several_lines() -> None:
    body = "for k in range(n):\n    a = _tt2gl_ring_a(a_ptr + k, mask=(k < m)\n    & (k < step))\n"
    made = written(body, through_registers())
    assert "mask=(ahead < m)\n    & (ahead < step))" in made


@pytest.mark.parametrize(
    ("step", "drain", "at"),
    [
        ("-1", "n - gl.maximum(n - end - (STAGES - 1), 0)", "drain - s_2"),
        ("-BLOCK", "n - gl.maximum(gl.cdiv(n - end, BLOCK) - (STAGES - 1), 0) * BLOCK", "drain - s_2 * BLOCK"),
    ],
)
def test_the_last_iterations_of_a_loop_that_counts_down_are_apart(step: str, drain: str, at: str) -> None:
    made = written(
        f"for k in range(n, 0, {step}):\n    acc += _tt2gl_ring_a(a_ptr + k).load(at) * k\n", through_registers()
    )
    assert f"drain = {drain}\n" in made
    assert f"for k in range(n, drain, {step}):\n" in made
    last = made[made.index("# the last iterations") :]
    assert f"    if {at} > end:\n        k_last = {at}\n        acc += a_last * k_last\n" in last
    assert "mask" not in made[made.index("for k in range(n, drain") :]


def test_stores_stand_under_the_flags_of_their_loads() -> None:
    body = """\
        for k in range(n):
            if FLAG:
                a = _tt2gl_ring_a(a_ptr + k, mask=k < m)
            elif BLOCK:
                a = _tt2gl_ring_a(a_ptr + 2 * k, mask=k < m)
        """
    made = written(body, through_registers())
    store = "a_slots = a_slots[1:] + (a_buf.index(slot),)\n        a_slots[-1].store(a_next)"
    assert f"    if FLAG:\n        {store}\n    elif BLOCK:\n        {store}\n" in made.replace(
        "    # and take the places of those that have been read\n", ""
    )


def test_a_buffer_is_loaded_from_by_offsets_with_the_mask_of_an_iteration_ahead() -> None:
    body = """\
        for k in range(n):
            page = gl.amd.cdna3.buffer_load(b_ptr, k)
            a = _tt2gl_ring_a(a_ptr, by=gl.amd.cdna3.buffer_load, offsets=page + k, mask=k < m, cache_modifier=".cg")
        """
    made = written(body, through_registers())
    assert 'a_next = gl.amd.cdna3.buffer_load(a_ptr, page_next + ahead, mask=ahead < m, cache=".cg")' in made
    assert "page_next = gl.amd.cdna3.buffer_load(b_ptr, after, mask=more_after)" in made


TWO_READS = """\
    for k in range(n):
        near = k < m
        a = _tt2gl_ring_a(a_ptr + k, mask=near).load(at)
        acc += {said}
        b = _tt2gl_ring_b(b_ptr + k, mask=near).load(at)
        acc += b
    """


@pytest.mark.parametrize("said", ["a", pytest.param("gl.where(near, a, 0)", id="by a name that both parts bind")])
def test_tiles_come_to_registers_where_those_before_them_are_read(said: str) -> None:
    first, second = (Ring(name, "gl.float16", ("BLOCK",), "shared", False, registers=True) for name in "ab")
    made = written(TWO_READS.format(said=said), LoopRings("kernel", 2, (first, second), "STAGES - 1"))
    loop = made[made.index("    # tiles of an iteration ahead") :]
    assert loop.index("a_next = gl.load(") < loop.index("a_slots[0].load(") < loop.index("b_next = gl.load("), loop
    assert loop.index("b_next = gl.load(") < loop.index("b_slots[0].load(")
    assert loop.index("b_slots[0].load(") < loop.index("a_slots[-1].store(")
