"""Products on Blackwell: first those waited for at once, then sums that stay in tensor memory, products that run on."""

from __future__ import annotations

import ast
import textwrap

import libcst as cst
import pytest

from tt2gl.pipeline import LoopRings, pipelined
from tt2gl.pipelining.naming import Fresh
from tt2gl.pipelining.tcgen05 import with_tensor_memory

HEAD = "@gluon.jit\ndef kernel(a_buf, b_buf, x, n, N: gl.constexpr):\n"
SAID = "[M, N], gl.float32, memory, registers"
BEGIN = """\
mma_bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
mbarrier.init(mma_bar, count=1)
mma_phase = 0
acc_tmem = allocate_tensor_memory(gl.float32, [M, N], memory)
"""
DONE = """\
tcgen05_commit(mma_bar)
mbarrier.wait(mma_bar, mma_phase)
mma_phase ^= 1
"""
NEXT = """\
mbarrier.wait(mma_bar, mma_phase ^ 1)
tcgen05_commit(mma_bar)
mma_phase ^= 1
"""
BEHIND = """\
if n > 0:
    mbarrier.wait(mma_bar, mma_phase ^ 1)
"""
END = "mbarrier.invalidate(mma_bar)\n"


def written(body: str) -> str:
    """The body of a kernel after the pass, without comments."""
    text = HEAD + textwrap.indent(textwrap.dedent(body), "    ")
    made = pipelined(text, [LoopRings("kernel", 2, (), "3")])
    return "".join(f"{line}\n" for each in _function(made).body for line in ast.unparse(each).splitlines())


def _function(text: str) -> ast.FunctionDef:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return function


def product(a: str = "a_buf.index(k)", b: str = "b_buf.index(k)", added: str = "acc", more: str = "") -> str:
    return f"_tt2gl_tcgen05({a}, {b}, {added}, {SAID}{more})"


def loop(*lines: str) -> str:
    return "for k in range(n):\n" + textwrap.indent("".join(f"{line.rstrip()}\n" for line in lines), "    ")


TILE = "b = gl.allocate_shared_memory(x.dtype, [K, N], shared, x)\n"
MULTIPLY = "tcgen05_mma(a_buf.index(k), b_buf.index(k), acc_tmem)"
LOAD = "acc = acc_tmem.load(registers)\n"


def test_without_products_nothing_changes() -> None:
    body = loop("acc = mma_v2(a, b, acc)") + "use(acc)\n"
    assert written(body) == body


def test_memory_of_products_in_the_arms_of_a_flag_is_there_under_each_alone() -> None:
    # without the flag's other side a launch has no layout for it
    arms = f"if N:\n    acc = {product('a', 'b', 'x')}\nelse:\n    other = {product('a', 'b', 'x')}\n"
    made = written(loop(*arms.splitlines(), "use()"))
    allocated = "_tmem = allocate_tensor_memory(gl.float32, [M, N]"
    assert f"if N:\n    acc{allocated}" in made
    assert f"if not N:\n    other{allocated}" in made
    assert made.count("allocate_tensor_memory") == 2
    either = written(loop(*arms.replace("N:", "n > 2:", 1).splitlines(), "use()"))
    assert f"\nacc{allocated}" in either


def test_a_product_outside_a_loop_is_waited_for() -> None:
    expected = f"{BEGIN}acc_tmem.store(x)\ntcgen05_mma(a, b, acc_tmem)\n{DONE}{END}{LOAD}use(acc)\n"
    assert written(f"acc = {product('a', 'b', 'x')}\nuse(acc)\n") == expected


@pytest.mark.parametrize(
    ("before", "added"), [("", "None"), ("acc = gl.zeros([M, N], gl.float32)\n", "acc")], ids=["none", "zeros"]
)
def test_a_product_that_adds_to_nothing_ignores_its_memory(before: str, added: str) -> None:
    made = written(loop(before, f"acc = {product(added=added)}", "use(acc)"))
    assert "acc_tmem.store" not in made
    assert "tcgen05_mma(a_buf.index(k), b_buf.index(k), acc_tmem, use_acc=False)" in made


def test_what_is_read_since_it_was_zero_is_added_to() -> None:
    made = written(loop("acc = gl.zeros([M, N], gl.float32)", "acc += x", f"acc = {product()}", "use(acc)"))
    assert "acc_tmem.store(acc)" in made
    assert "use_acc" not in made


def test_a_sum_that_is_read_after_its_product_is_taken_out_each_time() -> None:
    made = written(loop(f"acc = {product()}", "use(acc)"))
    body = loop("acc_tmem.store(acc)", MULTIPLY, *DONE.splitlines(), LOAD, "use(acc)")
    assert made == f"{BEGIN}{body}{END}"


@pytest.mark.parametrize(
    "body",
    [
        # Its tile is read by others, too, or may be that of an iteration before.
        (f"{TILE}acc = {product(b='b')}\nuse(b)"),
        (f"if x > k:\n    {TILE}acc = {product(b='b')}"),
        # Its tile has other extents in each iteration.
        (f"b = gl.allocate_shared_memory(x.dtype, [k, N], shared, x)\nacc = {product(b='b')}"),
        # No ring says what type its tile has.
        (f"{TILE}acc = {product(a='a_buf', b='b')}"),
        (f"{TILE}acc = {product(a='b', b='b')}"),
        # It is under a condition.
        (f"if n > k:\n    acc = {product()}"),
        # It reads its own sum from memory that nothing knows to be done: nothing waits in between.
        (f"acc = acc * x\nacc = {product()}"),
        # What its first operand takes its type from is made in the loop.
        (f"b = get(k)\nacc = {product('x', 'b', more=', [M, K], operand')}"),
    ],
)
def test_products_that_are_waited_for_at_once(body: str) -> None:
    made = written(loop(body) + "use(acc)\n")
    assert made.count("acc_tmem.store(acc)") == 1 + ("acc * x" in body)
    assert made.endswith(f"{END}{LOAD}use(acc)\n")
    assert "mma_phase ^ 1" not in made
    assert made.count("tcgen05_commit") == 1


def test_a_sum_stays_in_tensor_memory_and_its_product_runs_on() -> None:
    made = written(loop(f"acc = {product()}  # sum") + "use(acc)\n")
    body = loop(MULTIPLY, *NEXT.splitlines())
    assert made == f"{BEGIN}acc_tmem.store(acc)\n{body}{BEHIND}{END}{LOAD}use(acc)\n"


@pytest.mark.parametrize(
    ("header", "condition"),
    [
        # The bounds have other values by then, or take longer to say.
        ("for n in range(x, n)", None),
        ("for k in range(0, limit(n))", None),
        # Whether it counts upwards is not known.
        ("for k in range(x, n, step)", None),
        ("for k in range(n, 0, -1)", None),
        # The compiler knows whether there are iterations.
        ("for k in range(8)", None),
        ("for k in range(0, N, 4)", None),
        ("for k in range(0, n * 2, step)", "n * 2 > 0"),
        ("for k in range(x, n)", "x < n"),
        ("for k in tl.range(x, n + 1, 4)", "x < n + 1"),
    ],
)
def test_what_runs_on_is_waited_for_where_the_loop_ran(header: str, condition: str | None) -> None:
    made = written(f"{header}:\n    acc = {product()}\nuse(acc)\n")
    wait = "mbarrier.wait(mma_bar, mma_phase ^ 1)\n"
    behind = wait if condition is None else f"if {condition}:\n    {wait}"
    assert f"\n{behind}{END}{LOAD}use(acc)\n" in made


def test_a_step_that_is_asserted_to_be_positive_counts_upwards() -> None:
    asserted = "gl.static_assert(STEP > 0, 'upwards')\n"
    made = written(f"{asserted}for k in range(x, n, STEP):\n    acc = {product()}\n")
    assert "if x < n:\n    mbarrier.wait(mma_bar, mma_phase ^ 1)\n" in made


def test_a_product_of_what_is_computed_runs_on_until_that_is_stored_anew() -> None:
    tile = "# computed\n" + TILE + "fence()"
    made = written(loop("x = get(k)", *tile.splitlines(), f"acc = {product(b='b.permute((1, 0))')}") + "use(acc)\n")
    body = loop(
        "x = get(k)",
        "mbarrier.wait(mma_bar, mma_phase ^ 1)",
        "b.store(x)",
        "fence()",
        "tcgen05_mma(a_buf.index(k), b.permute((1, 0)), acc_tmem)",
        "tcgen05_commit(mma_bar)",
        "mma_phase ^= 1",
    )
    memory = "b = gl.allocate_shared_memory(a_buf.dtype, [K, N], shared)\n"
    assert made == f"{BEGIN}{memory}acc_tmem.store(acc)\n{body}{BEHIND}{END}{LOAD}use(acc)\n"


def test_a_product_of_what_is_computed_runs_on_until_its_sum_is_read() -> None:
    made = written(loop("x = use(acc)", *TILE.splitlines(), f"acc = {product(b='b')}"))
    wait, load, store = (made.index(each) for each in ("    mbarrier.wait", LOAD, "b.store(x)"))
    assert wait < load < store < made.index(BEHIND)


def test_what_is_computed_of_memory_that_the_iteration_frees_is_waited_for() -> None:
    text = HEAD + textwrap.indent(loop(*TILE.splitlines(), f"acc = {product(b='b')}"), "    ")
    function = cst.parse_module(text).body[0]
    assert isinstance(function, cst.FunctionDef)
    made = cst.Module([with_tensor_memory(function, Fresh({"mma_bar"}), ("a_buf",))]).code
    assert "b.store" not in made
    assert made.count("mbarrier.wait") == 1


def test_several_products_commit_once() -> None:
    other = "other = " + product(added="other")
    made = written(loop(f"acc = {product()}", other, f"acc = {product(b='b')}"))
    assert made.count("tcgen05_commit") == 1
    assert made.index("tcgen05_mma(a_buf.index(k), b, acc_tmem)") < made.index("tcgen05_commit")
    assert made.count(".load(registers)") == 2


def test_a_product_that_is_waited_for_takes_along_what_runs_on() -> None:
    scores = f"s = {product('q', added='None')}"
    made = written(loop(scores, "acc = acc * use(s)", f"acc = {product('use(s)', more=', [M, K], operand')}"))
    body = loop(
        "tcgen05_mma(q, b_buf.index(k), s_tmem, use_acc=False)",
        *DONE.splitlines(),
        "s = s_tmem.load(registers)",
        LOAD,
        "acc = acc * use(s)",
        "acc_tmem.store(acc)",
        "acc_lhs_tmem.store(use(s))",
        "tcgen05_mma(acc_lhs_tmem, b_buf.index(k), acc_tmem)",
    )
    first = "acc_lhs_tmem = allocate_tensor_memory(b_buf.dtype, [M, K], operand)\nacc_tmem.store(acc)\n"
    assert f"{first}{body}{DONE}{LOAD}{END}" in made


def test_a_sum_of_an_inner_loop_stays_over_the_outer_one() -> None:
    inner = textwrap.indent(loop(f"acc = {product()}"), "    ")
    made = written(f"for m in range(n):\n{inner}use(acc)\n")
    body = textwrap.indent(loop(MULTIPLY, *NEXT.splitlines()) + BEHIND, "    ")
    assert made == f"{BEGIN}acc_tmem.store(acc)\nfor m in range(n):\n{body}{END}{LOAD}use(acc)\n"


def test_names_that_the_author_has_are_left_to_him() -> None:
    made = written(f"acc_tmem = mma_bar = mma_phase = x\nacc = {product('a', 'b', 'None')}\nuse(acc)\n")
    assert "tcgen05_mma(a, b, acc_tmem_2, use_acc=False)\ntcgen05_commit(mma_bar_2)" in made


SCALED = ", a_scale=convert(x), b_scale=s, a_type=F, b_type='e2m1'"
SCALES = """\
acc_lhs_scale = convert(x)
acc_lhs_scale_tmem = allocate_tensor_memory(acc_lhs_scale.dtype, acc_lhs_scale.shape, \
TensorMemoryScalesLayout(), acc_lhs_scale)
s_tmem = allocate_tensor_memory(s.dtype, s.shape, TensorMemoryScalesLayout(), s)
"""


def test_a_product_of_scaled_operands_is_waited_for_at_once() -> None:
    made = written(loop(f"acc = {product(more=SCALED)}"))
    multiply = "tcgen05_mma_scaled(a_buf.index(k), b_buf.index(k), acc_tmem, acc_lhs_scale_tmem, s_tmem, F, 'e2m1')\n"
    assert made == BEGIN + "acc_tmem.store(acc)\n" + loop(SCALES + multiply + DONE) + LOAD + END


def test_a_product_of_scaled_operands_that_adds_to_nothing() -> None:
    made = written(f"acc = {product('a', 'b', 'None', SCALED)}\n")
    multiply = "tcgen05_mma_scaled(a, b, acc_tmem, acc_lhs_scale_tmem, s_tmem, F, 'e2m1', use_acc=False)\n"
    assert made == BEGIN + SCALES + multiply + DONE + LOAD + END


def test_scales_that_are_converted_go_through_shared_memory() -> None:
    made = written(f"acc = {product('a', 'b', 'None', SCALED.replace('convert(x)', 'gl.convert_layout(x, scales)'))}\n")
    layout = "gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8)"
    assert f"x_smem = gl.allocate_shared_memory(x.dtype, x.shape, {layout}, x)\n" in made
    assert "acc_lhs_scale = x_smem.load(scales)\n" in made


def freed(*lines: str) -> str:
    """A loop at whose end `b_buf` is written anew, after the pass."""
    function = cst.parse_statement(HEAD + textwrap.indent(loop(*lines), "    "))
    assert isinstance(function, cst.FunctionDef)
    return cst.Module([with_tensor_memory(function, Fresh(set()), {"b_buf"})]).code


def test_memory_that_the_iteration_frees_is_read_by_then() -> None:
    made = freed(f"acc = {product()}", f"other = {product(b='c_buf.index(k)', added='other')}")
    waited, running = made.index("mbarrier.wait(mma_bar, mma_phase)\n"), made.index("c_buf.index(k)")
    assert made.index("b_buf.index(k)") < waited < running
    assert "mma_phase ^ 1" not in made


def test_a_product_behind_takes_along_what_reads_freed_memory() -> None:
    made = freed(f"acc = {product()}", f"s = {product('q', 'k_buf', added='None')}", "use(s)")
    assert made.count("tcgen05_commit") == 1
    assert made.index("b_buf.index(k)") < made.index("k_buf,") < made.index("tcgen05_commit")
