"""Products that run on while the loop goes ahead: first those that must not."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipeline import LoopRings, pipelined
from tt2gl.pipelining.wgmma import launched_asynchronously

HEAD = "@gluon.jit\ndef kernel(a_buf, b_buf, x, n):\n"


def written(body: str, *synchronous: str) -> str:
    text = HEAD + textwrap.indent(textwrap.dedent(body), "    ")
    made = pipelined(text, [LoopRings("kernel", 2, (), "3", frozenset(synchronous))])
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        # The result is used in the iteration.
        "acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)\nuse(acc)",
        "acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)\nif n > k:\n    use(acc)",
        # It is read before it is added to, and nothing waits in between.
        "use(acc)\nacc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)",
        "acc = acc * x\nacc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)",
        "acc = warpgroup_mma(acc, b_buf.index(k), acc)",
        # Its tile is written in each iteration, to the same place.
        "b = gl.allocate_shared_memory(gl.float16, [64, 64], shared, x)\nacc = warpgroup_mma(a_buf.index(k), b, acc)",
        "b = gl.allocate_shared_memory(gl.float16, [64, 64], shared, x)\n"
        "acc = warpgroup_mma(a_buf.index(k), b.permute((1, 0)), acc)",
        "if n > k:\n    b = b_buf.index(k)\nelse:\n    b = gl.allocate_shared_memory(gl.float16, [64, 64], shared, x)\n"
        "acc = warpgroup_mma(a_buf.index(k), b, acc)",
        # Nothing is carried.
        "acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), zeros)\nuse(acc)",
        "acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), zeros)",
        # It is under a condition, or asynchronous already.
        "if n > k:\n    acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)",
        "acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc, is_async=True)",
    ],
)
def test_products_that_are_waited_for_at_once(body: str) -> None:
    loop = "for k in range(n):\n" + textwrap.indent(body, "    ") + "\n"
    assert written(loop) == loop


def test_sums_that_are_named_are_waited_for_at_once() -> None:
    loop = "for k in range(n):\n    acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)\n"
    assert written(loop, "acc") == loop
    assert written(loop, "other") != loop


def test_a_tile_whose_slot_is_filled_again_is_read_to_the_end() -> None:
    loop = """\
        for k in range(n):
            if n > 8:
                b = b_buf.index(k)
            else:
                b = c_buf.index(k)
            acc = warpgroup_mma(a_buf.index(k), b, acc)
        """
    function = cst.parse_module(HEAD + loop).body[0]
    assert isinstance(function, cst.FunctionDef)

    def waits(*freed: str) -> int:
        return cst.Module([launched_asynchronously(function, frozenset(), freed)]).code.count("warpgroup_mma_wait")

    assert waits() == 2
    assert waits("a_buf") == 0
    # One of two rings, which may be this one.
    assert waits("b_buf") == 0
    plain = HEAD + "        for k in range(n):\n            acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)\n"
    other = cst.parse_module(plain).body[0]
    assert isinstance(other, cst.FunctionDef)
    assert "is_async" in cst.Module([launched_asynchronously(other, frozenset(), ("c_buf",))]).code


def test_a_sum_runs_on() -> None:
    loop = (
        "for k in range(n):\n    b = b_buf.index(k).permute((1, 0))\n"
        "    acc = warpgroup_mma(a, b, acc)  # sum\nuse(acc)\n"
    )
    assert written(loop) == textwrap.dedent(
        """\
        for k in range(n):
            b = b_buf.index(k).permute((1, 0))
            acc = warpgroup_mma(a, b, acc, is_async=True)  # sum
            # runs on, while the iteration before is done: its tiles may be overwritten
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        use(acc)
        """
    )


CHANGED = """\
for k in range(n):
    a = a_buf.index(k)
    if {test}:
        {change}
    acc = warpgroup_mma(a, b_buf.index(k), acc)
"""


@pytest.mark.parametrize(
    ("test", "change", "outstanding"),
    [
        ("SCALED", "a *= s.to(a.dtype)", "0 if SCALED else 1"),
        ("SCALED == 2", "a = f(a)", "0 if SCALED == 2 else 1"),
        ("SCALED", "a = a.permute((1, 0))", "1"),
        ("SCALED", "a = b", "1"),
        ("n > 8", "a *= s", ""),
    ],
)
def test_a_sum_runs_on_unless_its_operand_is_put_to_registers(test: str, change: str, outstanding: str) -> None:
    """What the compiler knows of decides how many products are under way."""
    made = written(CHANGED.format(test=test, change=change))
    assert (f"    acc = warpgroup_mma_wait(num_outstanding={outstanding}, deps=(acc,))\n" in made) == bool(outstanding)
    assert ("is_async" in made) == bool(outstanding)


@pytest.mark.parametrize(
    ("before", "change", "is_async"),
    [
        ("a = gl.load(a_ptr + k)", "a = a_buf.index(k)", False),
        ("a = a_buf.index(k)", "a = gl.load(a_ptr + k)", False),
        ("use(k)", "a = a_buf.index(k)", False),
        ("a = q_smem", "a = a_buf.index(k)", True),
    ],
)
def test_an_operand_is_where_the_branch_has_it_or_where_it_was(before: str, change: str, is_async: bool) -> None:
    body = f"{before}\n    if n > 8:\n        {change}\n    acc = warpgroup_mma(a, b_buf.index(k), acc)\n"
    assert ("is_async" in written(f"for k in range(n):\n    {body}")) == is_async
    both = body.replace("    acc", "    else:\n        a = b_buf.index(k)\n    acc")
    assert ("is_async" in written(f"for k in range(n):\n    {both}")) == ("gl.load" not in change)


@pytest.mark.parametrize(
    ("binding", "is_async"),
    [
        ("a, b = gl.load(a_ptr + k), b_buf.index(k)", False),
        ("a, b = a_buf.index(k), gl.load(b_ptr + k)", False),
        ("a, b = a_buf.index(k), b_buf.index(k)", True),
    ],
)
def test_an_arm_that_casts_tiles_of_rings_where_they_lie_is_compiled_by_no_launch(binding: str, is_async: bool) -> None:
    names, values = binding.split(" = ")
    bound = [f"{name} = {value}" for name, value in zip(names.split(", "), values.split(", "), strict=True)]
    cast = "if a.dtype != b.dtype:\n        a = a.to(gl.float16)\n        b = b.to(gl.float16)"
    body = "\n    ".join([*bound, cast, "acc = warpgroup_mma(a, b, acc)"])
    made = written(f"for k in range(n):\n    {body}\n")
    assert ("acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))" in made) == is_async


def test_a_sum_runs_on_where_its_operand_comes_from_a_ring_under_a_test_of_the_compilation() -> None:
    made = written(
        CHANGED.replace("a_buf.index(k)", "gl.load(a_ptr + k)").format(test="PLAIN", change="a = a_buf.index(k)")
    )
    assert "    acc = warpgroup_mma_wait(num_outstanding=1 if PLAIN else 0, deps=(acc,))\n" in made


ARMS = """\
for k in range(n):
    if WIDE:
        a = gl.load(a_ptr + k)
    elif EVEN == 2:
        a = a_buf.index(k)
    else:
        {a}
    b = b_buf.index(k)
    if not {test}:
        acc += warpgroup_mma(a, b, zeros) * scale
    elif KIND == 3:
        acc = dot(a, b, acc)
    else:
        acc = warpgroup_mma(a, b, acc)  # sum
    {last}
use(acc)
"""


@pytest.mark.parametrize(
    ("a", "test", "last"),
    [
        ("a = a_buf.index(k)", "n", ""),
        ("a = a_buf.index(k)", "PLAIN", "use(acc)"),
        ("a = gl.allocate_shared_memory(gl.float16, [64, 64], shared, x)", "PLAIN", "a_buf.index(k).store(acc)"),
    ],
)
def test_products_of_branches_that_are_waited_for_at_once(a: str, test: str, last: str) -> None:
    assert "is_async" not in written(ARMS.format(a=a, test=test, last=last or "pass"))


@pytest.mark.parametrize(
    ("a", "outstanding"),
    [
        ("a = a_buf.index(k)", "0 if WIDE else 1"),
        ("a = gl.load(a_ptr + k, mask=m)", "1 if not WIDE and EVEN == 2 else 0"),
    ],
)
def test_a_sum_runs_on_in_the_branch_that_the_compilation_takes(a: str, outstanding: str) -> None:
    made = written(ARMS.format(a=a, test="PLAIN", last="pass"))
    note = "# runs on, unless its registers are used again: the iteration before is done"
    assert made == ARMS.format(a=a, test="PLAIN", last="pass").replace(
        "        acc = warpgroup_mma(a, b, acc)  # sum\n",
        "        acc = warpgroup_mma(a, b, acc, is_async=True)  # sum\n"
        f"        {note}\n        acc = warpgroup_mma_wait(num_outstanding={outstanding}, deps=(acc,))\n",
    ).replace("use(acc)", "acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))\nuse(acc)")


def test_a_branch_that_has_no_tile_is_compiled_by_no_launch() -> None:
    tile = "gl.allocate_shared_memory(gl.float16, [64, 64], shared, x)"
    loop = (
        f"for k in range(n):\n    if not ZERO:\n        b = {tile}\n    acc = warpgroup_mma(a_buf.index(k), b, acc)\n"
    )
    assert written(loop) == loop


def test_tests_that_read_what_a_branch_binds_are_not_asked_again() -> None:
    made = written(CHANGED.format(test="a.dtype == gl.float8e5", change="a = f(a)"))
    assert "is_async" not in made


def test_two_sums_run_on_together() -> None:
    made = written(
        """\
        for k in range(n):
            acc = warpgroup_mma(a_buf.index(k), b_buf.index(k), acc)
            up = warpgroup_mma(a_buf.index(k), b_buf.index(k + 1), up)
            use(k)
        """
    )
    assert made.count("is_async=True") == 2
    assert "    acc, up = warpgroup_mma_wait(num_outstanding=2, deps=(acc, up))\n    use(k)\n" in made
    assert made.endswith("\nacc, up = warpgroup_mma_wait(num_outstanding=0, deps=(acc, up))\n")


def test_a_sum_that_is_scaled_runs_on_until_the_next_wait() -> None:
    assert written(
        """\
        for k in range(n):
            s = warpgroup_mma(q, b_buf.index(k), zeros)
            p = exp(s)
            acc = acc * p
            acc = warpgroup_mma(convert(p), b_buf.index(k), acc)
        """
    ) == textwrap.dedent(
        """\
        acc = warpgroup_mma_init(acc)
        for k in range(n):
            s = warpgroup_mma(q, b_buf.index(k), zeros, is_async=True)
            # done here: this product, and what ran on from the iteration before
            s, acc = warpgroup_mma_wait(num_outstanding=0, deps=(s, acc))
            p = exp(s)
            acc = acc * p
            acc = warpgroup_mma(convert(p), b_buf.index(k), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        """
    )


def test_the_first_wait_is_spelled_out_beside_what_runs_on() -> None:
    """The slots that are filled again were read by the sum of the iteration before: that it is done then is said."""
    made = written(
        """\
        for k in range(n):
            s = warpgroup_mma(q, b_buf.index(k), zeros)
            t = warpgroup_mma(q, c_buf.index(k), zeros)
            acc = warpgroup_mma(convert(s * t), b_buf.index(k), acc)
        """
    )
    assert made.startswith("acc = warpgroup_mma_init(acc)\n")
    assert (
        "    s = warpgroup_mma(q, b_buf.index(k), zeros, is_async=True)\n"
        "    # done here: this product, and what ran on from the iteration before\n"
        "    s = warpgroup_mma_wait(num_outstanding=0, deps=(s,))\n"
        "    t = warpgroup_mma(q, c_buf.index(k), zeros)\n"
    ) in made


def test_a_sum_that_is_scaled_before_the_wait_does_not() -> None:
    loop = textwrap.dedent(
        """\
        for k in range(n):
            acc = acc * x
            s = warpgroup_mma(q, b_buf.index(k), zeros)
            acc = warpgroup_mma(convert(s), b_buf.index(k), acc)
        """
    )
    assert written(loop) == loop


def test_registers_are_free_again_before_they_are_written() -> None:
    made = written(
        "for k in range(n):\n    a = a_buf.index(k).load(x)\n    acc = warpgroup_mma(a, b_buf.index(k), acc)\n"
    )
    assert "    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))\nacc = " in made


def test_a_tile_of_one_ring_or_another() -> None:
    made = written(
        """\
        for k in range(n):
            if n > 8:
                b = b_buf.index(k)
            else:
                b = a_buf.index(k).permute((1, 0))
            acc = warpgroup_mma(a_buf.index(k), b, acc)
        """
    )
    assert "acc = warpgroup_mma(a_buf.index(k), b, acc, is_async=True)" in made


def test_loops_inside_loops() -> None:
    made = written(
        "for t in range(n):\n    for k in range(n):\n        acc = warpgroup_mma(a, b_buf.index(k), acc)\n"
        "    use(acc)\n"
    )
    assert "\n    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))\n    use(acc)\n" in made
