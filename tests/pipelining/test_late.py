"""Loads of tensor memory: first those that stay where they are, then those that move to where they are read."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.late import with_late_loads

LOAD = "acc = acc_tmem.load(registers)"


def moved(text: str) -> str:
    """The text of a block with its loads moved."""
    module = cst.parse_module(textwrap.dedent(text))
    lines = [each for each in module.body if isinstance(each, cst.BaseStatement)]
    return module.with_changes(body=with_late_loads(lines, {"acc_tmem", "sum_tmem"})).code


@pytest.mark.parametrize(
    "body",
    [
        f"{LOAD}\nuse(acc)\n",
        f"{LOAD}\nother()\n",
        f"{LOAD}\nacc_tmem.store(x)\nuse(acc)\n",
        f"{LOAD}\nreturn\n",
        "tile = tile_smem.load(registers)\nother()\nuse(tile)\n",
        f"{LOAD}\nfor i in range(n):\n    other()\n    use(acc)\n",
        f"{LOAD}\nif flag:\n    acc += 1\nuse(acc)\n",
        f"{LOAD}\nif acc_is(acc):\n    other()\n    use(acc)\n",
        f"{LOAD}\nif flag:\n    other()\n    use(acc)\nelif more:\n    use(acc)\n",
        f"{LOAD}\nacc *= scale\nacc_tmem.store(x)\nuse(acc)\n",
        f"{LOAD}\nacc *= scale\nscale = other()\nuse(acc)\n",
        f"{LOAD}\nacc = activate(acc)\nother()\nuse(acc)\n",
        f"{LOAD}\nacc += gl.load(p)\ngl.store(p, x)\nuse(acc)\n",
        f"{LOAD}\nacc *= scale\nfor i in range(n):\n    other()\nuse(acc)\n",
        f"{LOAD}\nacc *= scale\nother()\n",
        "tile = tile_buf.index(slot).load(registers)\nslot += 1\nuse(tile)\n",
        "tile = tile_buf.index(slot).load(registers)\nasync_load(tile_buf.index(slot), p)\nuse(tile)\n",
        "tile = tile_buf.index(slot).load(registers)\nmbarrier.arrive(empty)\nuse(tile)\n",
        "tile = tile_buf.index(slot).load(registers)\nother()\nacc = mma_v2(a, tile, acc)\n",
    ],
    ids=[
        "read", "unread", "overwritten", "left", "shared", "loop", "branch", "condition", "chain",
        "changed and overwritten", "changed by what changes", "changed by a helper", "changed by a load",
        "changed before a loop", "changed and unread", "slot moves on", "slot filled", "slot given back",
        "second operand",
    ],
)  # fmt: skip
def test_a_load_that_stays(body: str) -> None:
    assert moved(body) == body


def test_a_load_moves_to_the_line_that_reads_it() -> None:
    before = f"{LOAD}\nbias = gl.load(b)\n\n# it is added\nacc += bias\n"
    assert moved(before) == f"bias = gl.load(b)\n\n{LOAD}\n# it is added\nacc += bias\n"


def test_two_sums_are_loaded_one_after_the_other() -> None:
    other = "sum = sum_tmem.load(registers)"
    before = f"{LOAD}\n{other}\ngl.store(p, acc)\ngl.store(q, sum)\n"
    assert moved(before) == f"{LOAD}\ngl.store(p, acc)\n{other}\ngl.store(q, sum)\n"
    assert moved(f"{other}\n{LOAD}\nuse(acc, sum)\n") == f"{other}\n{LOAD}\nuse(acc, sum)\n"


def test_a_load_moves_into_both_branches_of_a_condition() -> None:
    before = f"{LOAD}\nif flag:\n    bias = gl.load(b)\n    acc += bias\nuse(acc)\n"
    after = f"if flag:\n    bias = gl.load(b)\n    {LOAD}\n    acc += bias\nelse:\n    {LOAD}\nuse(acc)\n"
    assert moved(before) == after
    assert moved(after) == after
    otherwise = f"{LOAD}\nif flag:\n    other()\n    acc += 1\nelse:\n    more()\nuse(acc)\n"
    made = f"if flag:\n    other()\n    {LOAD}\n    acc += 1\nelse:\n    more()\n    {LOAD}\nuse(acc)\n"
    assert moved(otherwise) == made


def test_loads_in_loops_and_branches_move_too() -> None:
    inner = f"    {LOAD}\n    other()\n    use(acc)\n"
    made = f"    other()\n    {LOAD}\n    use(acc)\n"
    for head in (
        "for i in range(n):\n{}",
        "while more:\n{}",
        "if flag:\n{}else:\n{}",
        "if flag:\n    x()\nelif y:\n{}",
    ):
        assert moved(head.replace("{}", inner)) == head.replace("{}", made)


def test_what_first_changes_a_sum_moves_with_its_load() -> None:
    changes = "acc *= scale[:, None]\nacc = acc + bias\n"
    before = f"{LOAD}\n{changes}v = gl.load(p)\nv_smem.store(v)\nout_tmem.store(acc)\n"
    after = f"v = gl.load(p)\nv_smem.store(v)\n{LOAD}\n{changes}out_tmem.store(acc)\n"
    assert moved(before) == after
    assert moved(after) == after


def test_it_moves_below_the_arms_of_a_load() -> None:
    changes = "acc = acc * gl.convert_layout(scale, rows)[:, None]\n"
    arms = "if EVEN:\n    v = gl.load(p)\nelif WIDE:\n    v = gl.load(p, mask)\nelse:\n    {}\n"
    for inner in (
        "v = gl.load(p, mask, other=0.0)",
        "return",
        "acc += 1",
        "scale += 1",
        "for i in range(n):\n        v = 1",
    ):
        between = arms.format(inner)
        before = f"{LOAD}\n{changes}{between}out_tmem.store(acc)\n"
        after = f"{between}{LOAD}\n{changes}out_tmem.store(acc)\n"
        assert moved(before) == (after if inner.endswith("0.0)") else before)


@pytest.mark.parametrize("between", ["", "other()\n"])
@pytest.mark.parametrize(
    ("below", "stays"),
    [
        (f"for i in range(n):\n    step()\n{LOAD}\nuse(acc)\n", False),
        (f"for i in range(n):\n    {LOAD}\n    acc *= 2\n    acc_tmem.store(acc)\n{LOAD}\nuse(acc)\n", False),
        ("step()\nuse(acc)\n", True),
        (f"if flag:\n    {LOAD}\nuse(acc)\n", True),
        ("step()\n", True),
    ],
    ids=["loaded again", "and in a loop", "read", "maybe loaded again", "maybe read behind its block"],
)
def test_what_is_put_back_as_it_was_stays_in_memory(between: str, below: str, stays: bool) -> None:
    puts_back = f"{LOAD}\nacc_tmem.store(acc)\n"
    assert moved(f"{LOAD}\n{between}acc_tmem.store(acc)\n{below}") == f"{between}{puts_back if stays else ''}{below}"


def test_lines_above_what_goes_stay() -> None:
    below = f"# again\nfor i in range(n):\n    step()\n{LOAD}\nuse(acc)\n"
    assert moved(f"{LOAD}\nother()\n\nacc_tmem.store(acc)\n{below}") == f"other()\n\n{below}"


def test_a_tile_is_read_where_it_is_needed() -> None:
    read = "tile = tile_buf.index(slot).load(registers)"
    before = f"{read}\nmbarrier.wait(bar, phase)\n{LOAD}\nacc += tile\n"
    assert moved(before) == f"mbarrier.wait(bar, phase)\n{read}\n{LOAD}\nacc += tile\n"
