"""Which loads may run ahead: first those that may not."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence

import pytest

from tt2gl.pipeline import Ahead, can_run_ahead
from tt2gl.pipelining.ahead import position
from tt2gl.plan import Position

HEAD = "def kernel(x_ptr, y_ptr, n, step, FLAG: tl.constexpr, BLOCK: tl.constexpr):\n"


def asked(
    body: str,
    *,
    before: str = "",
    pointers: frozenset[str] | None = None,
    helpers: str = "",
    others: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
) -> Ahead:
    """The answer for the loads of `a` and `b` in the first loop of a kernel."""
    text = HEAD.replace("n, step", ", ".join((*more, "n", "step"))) + textwrap.indent(
        textwrap.dedent(before) + textwrap.dedent(body), "    "
    )
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = next(each for each in function.body if isinstance(each, ast.For))
    known = {each.name: each for each in ast.parse(textwrap.dedent(helpers)).body if isinstance(each, ast.FunctionDef)}
    return can_run_ahead(function, loop, loads_of(loop), helpers=known, pointers=pointers, others=others)


def loads_of(loop: ast.For) -> list[Position]:
    """The loads that are called `tl.load` from x_ptr, or from `ahead`: those of y_ptr stay plain."""
    found: list[Position] = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load" and "y_ptr" not in ast.unparse(node):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            found.append((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
    return found


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for k in tl.static_range(8):\n    a = tl.load(x_ptr + k)", "range"),
        ("for k, j in range(8):\n    a = tl.load(x_ptr + k)", "more than one name"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k)\n    if a > n:\n        break", "left"),
        ("for k in range(8):\n    while n > k:\n        a = tl.load(x_ptr + k)", "block inside"),
        ("for k in range(8):\n    for j in range(8):\n        a = tl.load(x_ptr + k + j)", "block inside"),
        ("for k in range(8):\n    if k < n:\n        a = tl.load(x_ptr + k)", "does not know"),
        ("for k in range(8):\n    if tl.load(x_ptr + k) > 0:\n        n += 1", "condition"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k) if k < n else 0", "may not be evaluated"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k, mask=k < n, other=n)", "no constant"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k, k < n, n / 2)", "no constant"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k, boundary_check=(0,))", "block pointer"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k, volatile=True)", "volatile"),
        ("for k in range(8):\n    i = tl.load(x_ptr + k)\n    b = tl.load(x_ptr + i)", "another load"),
        ("for k in range(8):\n    a = tl.load(x_ptr + n)\n    n = tl.sum(a)", "another load"),
        ("for k in range(8):\n    a = tl.load(x_ptr + tl.atomic_add(0, 1))", "atomic_add"),
        ("for k in range(8):\n    n = tl.dot(n, n)\n    a = tl.load(x_ptr + n)", "dot"),
        ("for k in range(8):\n    i = f(k)\n    a = tl.load(x_ptr + i)", "f, which may do more"),
        (
            "for k in range(8):\n    i = 0\n    for j in range(k):\n        i += j\n    a = tl.load(x_ptr + i)",
            "loop of its own",
        ),
        ("for k in range(8):\n    a = tl.load(x_ptr + k)\n    tl.store(x_ptr + k + 1, a)", "writes to the memory"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k)\n    f(x_ptr, a)", "writes to the memory"),
        ("for k in range(8):\n    a = tl.load(x_ptr + k)\n    tl.debug_barrier()", "orders accesses"),
    ],
)
def test_loads_that_stay_where_they_are(loop: str, reason: str) -> None:
    assert reason in (asked(loop).reason or "")


def test_loads_of_addresses_stay_behind_what_writes_them() -> None:
    loop = (
        "for k in range(8):\n    page = tl.load(y_ptr + k)\n    a = tl.load(x_ptr + page)\n    tl.store(y_ptr + n, k)"
    )
    assert "writes to the memory" in (asked(loop, pointers=frozenset({"x_ptr", "y_ptr"})).reason or "")


def test_loaded_pointers_are_where_their_table_is() -> None:
    loop = (
        "for k in range(8):\n"
        "    a = tl.load(tl.load(x_ptr).to(y_ptr.dtype) + k)\n"
        "    tl.store(tl.load(x_ptr + 1).to(y_ptr.dtype) + k, a)"
    )
    first = "tl.load(tl.load(x_ptr).to(y_ptr.dtype) + k)"
    function = ast.parse(HEAD + textwrap.indent(loop, "    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    outer = next(n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n) == first)
    place = (outer.lineno, outer.col_offset, outer.end_lineno or 0, outer.end_col_offset or 0)
    (found,) = (each for each in function.body if isinstance(each, ast.For))
    assert "writes to the memory" in (can_run_ahead(function, found, [place]).reason or "")


@pytest.mark.parametrize(
    ("between", "stays"),
    [
        ("p = y_ptr + k", False),
        ("if n > 0:\n    p = y_ptr + k", True),
        ("p += 1", True),
        ("for j in range(k):\n    p = y_ptr + j", True),
        ("p = p + 1", True),
        ("if FLAG:\n    p = y_ptr + k\n    tl.store(p, a)\n    p = y_ptr", False),
    ],
)
def test_a_name_is_what_it_was_assigned_last(between: str, stays: bool) -> None:
    store = "" if "store" in between else "tl.store(p, a)\n"
    body = "p = x_ptr + k\na = tl.load(x_ptr + k)\n" + between + "\n" + store
    answer = asked("for k in range(8):\n" + textwrap.indent(body, "    "), pointers=frozenset({"x_ptr", "y_ptr"}))
    assert (answer.reason is not None) == stays


def test_what_is_loaded_is_no_address_to_write_to() -> None:
    # Triton calls no function that is None; the text does not tell.
    before = "length = tl.load(y_ptr)\n"
    loop = (
        "for k in range(8):\n    a = tl.load(x_ptr + length + k)\n    if FLAG is not None:\n        a = FLAG(a, length)"
    )
    assert asked(loop, before=before).reason is None


def test_writing_is_found_through_names() -> None:
    before = "p = x_ptr + n\nq = p\n"
    loop = "for k in range(8):\n    a = tl.load(x_ptr + k)\n    q += 1\n    tl.store(q, a)"
    assert "writes to the memory" in (asked(loop, before=before).reason or "")


@pytest.mark.parametrize(
    "writing",
    [
        "(x_ptr + k + 1).atomic_add(a)",
        "x_ptr.store([k + 1], a)",
        "x_ptr.scatter(a, i, k)",
        "tl.store_tensor_descriptor(x_ptr, [k + 1], a)",
        "p = (x_ptr, y_ptr)\ntl.store(p[0] + k, a)",
        "tl.store(x_ptr.out + k, a)",
        "put(a, x_ptr + k)",
        "file_store(a, x_ptr + k)",
        "tiles.put(a, x_ptr + k)",
        "store(a, x_ptr + k)",
        'tl.inline_asm_elementwise("st.global.b32 [$1], $2;", "=r,l,r", [x_ptr + k, a], tl.int32, False, 1)',
        'tl.inline_asm_elementwise("st.global.b32 [$1], $2;", "=r,l,r", args=(x_ptr + k, a), dtype=i, is_pure=PURE)',
    ],
)
def test_what_a_loop_writes_to(writing: str) -> None:
    helpers = "".join(
        f"def {name}(value, place):\n    tl.store(place, value)\n" for name in ("put", "file_store", "store")
    )
    loop = "for k in range(8):\n    a = tl.load(x_ptr + k)\n" + textwrap.indent(writing, "    ")
    pointers = frozenset({"x_ptr", "y_ptr"})
    assert "writes to the memory" in (asked(loop, helpers=helpers, pointers=pointers).reason or "")
    elsewhere = loop.replace("a = tl.load(x_ptr", "a = tl.load(ahead").replace("p = (x_ptr", "p = (y_ptr")
    assert asked(elsewhere, before="ahead = step\n", helpers=helpers, pointers=pointers).reason is None


def test_a_descriptor_reads_what_another_of_its_memory_stores() -> None:
    before = (
        "q = tl.make_tensor_descriptor(x_ptr, [n], [1], [8])\nr = tl.make_tensor_descriptor(x_ptr, [n], [1], [8])\n"
    )
    loop = "for k in range(8):\n    a = q.load([k])\n    r.store([k + 1], a)"
    function = ast.parse(HEAD + textwrap.indent(before + loop, "    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    (found,) = (each for each in function.body if isinstance(each, ast.For))
    place = position(next(n for n in ast.walk(found) if isinstance(n, ast.Call) and ast.unparse(n) == "q.load([k])"))
    assert "writes to the memory" in (can_run_ahead(function, found, [place]).reason or "")


def test_a_helper_orders_accesses_where_its_own_does() -> None:
    helpers = "def wait(place):\n    while spin(place):\n        pass\n\n"
    helpers += "def spin(place):\n    return tl.atomic_cas(place, 0, 1) == 1"
    loop = "for k in range(8):\n    wait(y_ptr)\n    a = tl.load(x_ptr + k)"
    assert "orders accesses" in (asked(loop, helpers=helpers).reason or "")


@pytest.mark.parametrize("done", ["tl.store(0, i)", "tl.device_print('i', i)", "i = tl.load(i)", "g(i)"])
def test_a_helper_that_does_more_than_compute_gives_no_address(done: str) -> None:
    helpers = f"def f(i):\n    {done}\n    return i"
    loop = "for k in range(8):\n    i = f(k)\n    a = tl.load(x_ptr + i)"
    assert "f, which may do more" in (asked(loop, helpers=helpers).reason or "")


def test_a_name_of_the_files_for_one_of_tritons_functions_is_that_function() -> None:
    computing = "for k in range(n):\n    a = tl.load(x_ptr + k)\n    total = power(x_ptr + k)\n"
    assert "writes to the memory" in (asked(computing).reason or "")
    assert asked(computing, others={"power": "exp2"}).reason is None
    writing = "for k in range(n):\n    a = tl.load(x_ptr + k)\n    put(x_ptr + k, a)\n"
    assert "writes to the memory" in (asked(writing, others={"put": "store"}).reason or "")
    locking = "for k in range(n):\n    a = tl.load(x_ptr + k)\n    swap(y_ptr, 0, 1)\n"
    assert "orders accesses" in (asked(locking, others={"swap": "atomic_cas"}).reason or "")


def test_the_load_at_fault_is_named() -> None:
    answer = asked("for k in range(8):\n    a = tl.load(x_ptr + k)\n    b = tl.load(x_ptr + k, k < n, n)")
    assert answer.culprit == (4, 12, 4, 40)


@pytest.mark.parametrize(
    "loop",
    [
        "for k in range(8):\n    a = tl.load(x_ptr + k)",
        "for k in tl.range(0, n, BLOCK, num_stages=3):\n    a = tl.load(x_ptr + k, mask=k < n, other=0.0)",
        "for k in range(n, 0, -BLOCK):\n    a = tl.load(x_ptr + k, k < n)\n    x_ptr += step",
        "for k in range(8):\n    if FLAG:\n        a = tl.load(x_ptr + k)\n    else:\n        a = tl.load(x_ptr)",
        "for k in range(8):\n    k = tl.multiple_of(k, 8)\n    a = tl.load(x_ptr + k)",
        "for k in range(8):\n    if y_ptr is not None:\n        a = tl.load(x_ptr + k)",
        "for k in range(8):\n    if k > n:\n        step = 2\n    a = tl.load(x_ptr + step)",
        "for k in range(8):\n    a = tl.load(x_ptr + k)\n    if a > n:\n        tl.store(y_ptr + k, a)",
        "for k in range(8):\n    a = tl.load(x_ptr + tl.cdiv(k, BLOCK) % n)\n    n_2 = tl.dot(a, a)",
        "for k in range(8):\n    a = tl.load(x_ptr + k)\n    tl.inline_asm_elementwise('', '', [x_ptr], i, True, 1)",
        "for k in range(8):\n    a = tl.load(x_ptr + k)\n    tl.inline_asm_elementwise('', '', [a], i, is_pure=False)",
    ],
)
def test_loads_that_run_ahead(loop: str) -> None:
    assert asked(loop) == Ahead()


def test_numbers_that_a_helper_reads_elsewhere_are_added_to_pointers() -> None:
    # Of its arguments the helper may give an address, but to a pointer only a number is added.
    before = "first = begin(y_ptr, z_ptr, n)\n"
    pointers = frozenset({"x_ptr", "y_ptr", "z_ptr"})
    loop = "for k in range(8):\n    a = tl.load(x_ptr + (first + k))\n    tl.store({}, a)"
    written = asked(
        loop.format("w_ptr + first + k"), before=before, pointers=pointers | {"w_ptr"}, more=("z_ptr", "w_ptr")
    )
    assert written.reason is None
    moved = asked(
        loop.format("w_ptr"), before=f"{before}w_ptr += first\n", pointers=pointers | {"w_ptr"}, more=("z_ptr", "w_ptr")
    )
    assert moved.reason is None
    read = asked(loop.format("x_ptr + first"), before=before, pointers=pointers, more=("z_ptr",))
    assert "writes to the memory" in (read.reason or "")
    given = asked(loop.format("first + k"), before=before, pointers=pointers, more=("z_ptr",))
    assert given.reason is None
    renamed = asked(
        loop.format("w_ptr + k"),
        before=f"{before}w_ptr = x_ptr\n",
        pointers=pointers | {"w_ptr"},
        more=("z_ptr", "w_ptr"),
    )
    assert "writes to the memory" in (renamed.reason or "")


def test_sizes_that_both_addresses_start_from_are_no_pointers() -> None:
    loop = "for k in range(8):\n    a = tl.load(x_ptr + n + k)\n    tl.store(y_ptr + n + k, a)"
    assert asked(loop, pointers=frozenset({"x_ptr", "y_ptr"})) == Ahead()
    assert asked(loop).reason is not None


def test_a_helper_that_computes_may_give_an_address() -> None:
    helpers = "def f(i):\n    return i * 2"
    loop = "for k in range(8):\n    i = f(k)\n    a = tl.load(x_ptr + i)"
    assert asked(loop, helpers=helpers) == Ahead()


def test_loads_of_addresses_run_ahead_too() -> None:
    loop = "for k in range(8):\n    page = tl.load(y_ptr + k)\n    a = tl.load(x_ptr + page)"
    assert asked(loop) == Ahead()


def looked_up(body: str, *, scalar: bool = False) -> Ahead:
    """The answer where the first load of x_ptr, of a `scalar` or of rows, says where the others read."""
    function = ast.parse(HEAD + textwrap.indent(textwrap.dedent(body), "    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = next(each for each in function.body if isinstance(each, ast.For))
    loads = sorted(loads_of(loop))
    first = frozenset(loads[:1])
    return can_run_ahead(function, loop, loads, lookups=first, scalars=first if scalar else frozenset())


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for k in range(8):\n    i = tl.load(x_ptr + k)\n    b = tl.load(x_ptr + i)\n    n += i", "its own iteration"),
        ("for k in range(8):\n    i = tl.load(x_ptr + k, k < n, -1)\n    b = tl.load(x_ptr + i)", "its own iteration"),
        ("for k in range(8):\n    b = tl.load(x_ptr + tl.load(x_ptr + k))", "its own iteration"),
        ("for k in range(8):\n    if FLAG:\n        i = tl.load(x_ptr + k)\n    b = tl.load(x_ptr + i)", "own block"),
        (
            "for k in range(8):\n    if FLAG:\n        n += 1\n    i = tl.load(x_ptr + n)\n    b = tl.load(x_ptr + i)",
            "own block",
        ),
    ],
)
def test_what_says_where_loads_read_may_not_be_copied_ahead_of_them(loop: str, reason: str) -> None:
    answer = looked_up(loop)
    assert answer.reason is not None
    assert reason in answer.reason
    assert answer.culprit is not None


def test_a_scalar_that_says_where_loads_read_may_be_read_in_its_own_iteration_too() -> None:
    loop = "for k in range(8):\n    i {}= tl.load(x_ptr + k)\n    b = tl.load(x_ptr + i)\n    n += i"
    assert looked_up(loop.format(""), scalar=True) == Ahead()
    assert "its own iteration" in str(looked_up(loop.format("+"), scalar=True).reason)


def test_what_says_where_loads_read_may_be_copied_ahead_of_them() -> None:
    assert looked_up("for k in range(8):\n    i = tl.load(x_ptr + k) * 2\n    b = tl.load(x_ptr + i)\n") == Ahead()
