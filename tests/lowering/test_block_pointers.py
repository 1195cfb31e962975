"""Block pointers as pointers: what stays, and what each use becomes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tt2gl.lowering import block_pointers
from tt2gl.lowering.block_pointers import lowered
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

Lower = Callable[..., Lowered]
Body = Callable[..., str]

MAKE = "p = tl.make_block_ptr(x_ptr, (n, m), (s, 1), (tl.program_id(0) * BLOCK, 0), (BLOCK, B), (1, 0))\n"


# ------------------------------------------------------------------------------------------------------- what stays


@pytest.mark.parametrize(
    "text",
    [
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\ntl.store(y_ptr + offs, tl.load(x_ptr + offs))\n",
        "# tl.make_block_ptr is not used\nadvance(tl.load(x_ptr), boundary_check=(0,))\n",
        "p = helpers.make_block_ptr(x_ptr)\nx = tl.load(p)\n",
    ],
    ids=["no block pointer", "named in a comment", "another function of that name"],
)
def test_a_kernel_without_block_pointers_stays_as_it_is(lower: Lower, text: str) -> None:
    done = lower(text)
    assert (done.functions, dict(done.kept), done.lines.indents) == ((), {}, {})
    assert done.text.endswith(textwrap.indent(text, "    "))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MAKE + "x = helper(p)\n", "`p` is used as more than the pointer of loads and stores"),
        (MAKE + "x = x.to(p.type)\n", "`p` is used as more than the pointer of loads and stores"),
        (MAKE + "while x > p.type.element_ty.element_ty:\n    pass\n", "`p` is used as more than the pointer"),
        (MAKE + "q = (p, p)\n", "`p` is used as more than the pointer of loads and stores"),
        (MAKE + "x = tl.load(p, boundary_check=DIMS)\n", "its `boundary_check` is not written out"),
        (MAKE + "x = tl.load(p, boundary_check=(DIM,))\n", "its `boundary_check` is not written out"),
        (MAKE + "x = tl.load(p, boundary_check=(*DIMS, 1))\n", "its `boundary_check` is not written out"),
        (
            MAKE + "x = tl.load(p, boundary_check=(0,), padding_option=PAD + 'n')\n",
            "its `padding_option` is not written out",
        ),
        (MAKE + "if n > 0:\n    p = x_ptr + tl.arange(0, B)\nx = tl.load(p)\n", "not always a block pointer"),
        ("p = tl.make_block_ptr(x_ptr, SHAPE, (1,), (0,), (B,), (0,))\nx = tl.load(p)\n", "its `shape` is not written"),
        ("p = tl.make_block_ptr(x_ptr, (n,), (s, 1), (0,), (B,), (0,))\nx = tl.load(p)\n", "differ in length"),
        ("p = tl.make_block_ptr(x_ptr, S, T, O, P, Q)\nx = tl.load(p)\n", "its `shape` is not written out as a tuple"),
        ("ps = [tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))]\n", "neither assigned nor used at once"),
        (MAKE + "while n > 0:\n    x = tl.load(p)\n    n -= 1\n    if n == 3:\n        break\n", "`break`"),
        (MAKE + "x = tl.load(tl.advance(p, (0, B)))\n", "used as more than"),
        (MAKE + "x = tl.load(p.advance((0, B)))\n", "used as more than"),
        (MAKE + "p = p.offset.advance((0, B))\n", "what is advanced is not a variable"),
    ],
)
def test_what_is_not_understood_keeps_its_block_pointers(lower: Lower, text: str, reason: str) -> None:
    done = lower(text)
    assert done.functions == ()
    assert done.kept["kernel"].code == "TTG303"
    assert reason in done.kept["kernel"].message
    assert done.text.endswith(textwrap.indent(text, "    "))


def test_the_reason_is_told_at_its_place(lower: Lower) -> None:
    kept = lower(MAKE + "\nx = helper(p)\n").kept["kernel"]
    assert (kept.line, kept.column) == (9, 15)


def test_gluon_functions_and_other_text_stay(tmp_path: Path) -> None:
    text = (
        "import triton\r\nimport triton.language as tl\r\n# é, kept\r\n\r\n"
        "@triton.jit\r\ndef kernel(x, n, B: tl.constexpr):\r\n"
        "    p = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))  # made\r\n    tl.store(p, 0.0)\r\n\r\nx = 1\r\n"
    )
    done = lowered(read_source(tmp_path / "kernel.py", text))
    assert done.text == (
        "import triton\r\nimport triton.language as tl\r\n# é, kept\r\n\r\n"
        "@triton.jit\r\ndef kernel(x, n, B: tl.constexpr):\r\n"
        "    offs_n = tl.arange(0, B).to(tl.int64)\r\n    p = x + offs_n  # made\r\n"
        "    tl.store(p, 0.0)\r\n\r\nx = 1\r\n"
    )


def test_a_second_run_changes_nothing(lower: Lower, tmp_path: Path) -> None:
    once = lower(MAKE + "x = tl.load(p, boundary_check=(0, 1))\n").text
    assert lowered(read_source(tmp_path / "kernel.py", once)).text == once


# ------------------------------------------------------------------------------------------------------ what becomes


def test_the_examples_of_the_docstring_are_what_is_made(body: Body) -> None:
    before, _, both = (block_pointers.__doc__ or "").partition("becomes")
    made_first, _, made_late = both.partition("and with `at_use`")
    before, made_first, made_late = (
        textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ")))
        for text in (before, made_first, made_late)
    )
    given = "i_t = tl.program_id(0)\n"
    signature = "k, base, T, H, K, BT, BK"
    assert body(f"{given}{before}\n", signature=signature).strip() == f"{given}{made_first}"
    assert body(f"{given}{before}\n", signature=signature, at_use=True).strip() == f"{given}{made_late}"


BESIDE = MAKE.replace("p =", "q =").replace("x_ptr", "y_ptr")
APART = BESIDE.replace("(s, 1)", "(n, 1)")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param(MAKE + BESIDE + "tl.store(q, tl.load(p))\n", "x_ptr + (OFFSETS)", id="two tensors"),
        pytest.param(MAKE + "x = tl.load(p)\n", "x_ptr + OFFSETS", id="one tensor"),
        pytest.param(
            MAKE + BESIDE.replace("(s, 1)", "(n, 1)") + "tl.store(q, tl.load(p))\n",
            "x_ptr + OFFSETS",
            id="other strides",
        ),
        pytest.param(
            MAKE + BESIDE + "x = tl.load(p)\ntl.store(q, tl.dot(x, x))\n", "x_ptr + OFFSETS", id="beside a product"
        ),
    ],
)
def test_offsets_of_several_tensors_are_added_up_once(body: Body, text: str, first: str) -> None:
    offsets = "offs_n[:, None] * s + offs_m[None, :]"
    assert f"p = {first.replace('OFFSETS', offsets)}\n" in body(text)


def test_the_lower_bound_is_checked_where_an_offset_may_be_negative(body: Body) -> None:
    made = body("p = tl.make_block_ptr(x_ptr, (n,), (1,), (m,), (B,), (0,))\nx = tl.load(p, boundary_check=[0])\n")
    assert made.endswith("x = tl.load(p, mask=(offs_n >= 0) & (offs_n < n), other=0.0)\n")


def test_only_the_dimensions_named_are_checked(body: Body) -> None:
    made = body(MAKE + "x = tl.load(p, boundary_check=(0,))\ny = tl.load(p)\nz = tl.load(p, boundary_check=())\n")
    assert made.endswith("x = tl.load(p, mask=offs_n[:, None] < n, other=0.0)\ny = tl.load(p)\nz = tl.load(p)\n")


def test_as_many_dimensions_as_there_are_are_all_of_them(body: Body) -> None:
    assert body(MAKE + "x = tl.load(p, boundary_check=(OUTER, INNER))\n") == body(
        MAKE + "x = tl.load(p, boundary_check=(0, 1))\n"
    )


def test_a_cast_to_its_blocks_is_one_to_their_elements(body: Body) -> None:
    made = body(MAKE + "tl.store(p, x.to(p.type.element_ty))\n")
    assert "x.to(p.dtype.element_ty)" in made


def test_a_block_that_is_its_dimension_needs_no_check(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n, B), (B, 1), (0, 0), (BLOCK, B), (1, 0))\n"
        "x = tl.load(p, boundary_check=(1,))\n"
    )
    assert made.endswith("\nx = tl.load(p)\n")


@pytest.mark.parametrize(
    ("option", "other"),
    [
        ("", "0.0"),
        (", padding_option=None", "0.0"),
        (', padding_option="zero"', "0.0"),
        (", padding_option='nan'", 'float("nan")'),
        (", padding_option=PAD", 'float("nan") if PAD == "nan" else 0.0'),
    ],
)
def test_padding_becomes_other(body: Body, option: str, other: str) -> None:
    made = body(MAKE + f'x = tl.load(p, boundary_check=(0,){option}, eviction_policy="evict_first")\n')
    assert made.endswith(f'mask=offs_n[:, None] < n, other={other}, eviction_policy="evict_first")\n')


@pytest.mark.parametrize("element", ["p.dtype.element_ty", "p.type.element_ty.element_ty"])
def test_stores_keep_their_value(body: Body, element: str) -> None:
    made = body(MAKE + f"tl.store(p, x.to({element}), boundary_check=(0,))\n")
    assert made.endswith("tl.store(p, x.to(p.dtype.element_ty), mask=offs_n[:, None] < n)\n")


def test_offsets_are_named_once_while_they_hold(body: Body) -> None:
    made = body(
        "i = tl.program_id(0)\n"
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (i * B,), (B,), (0,))\n"
        "q = tl.make_block_ptr(y_ptr, (n,), (1,), (i * B,), (B,), (0,))\n"
        "tl.store(q, tl.load(p))\n"
        "i += 1\n"
        "q = tl.make_block_ptr(y_ptr, (n,), (1,), (i * B,), (B,), (0,))\n"
        "tl.store(q, 0.0)\n"
    )
    assert made.count("offs_n = i * B + tl.arange(0, B).to(tl.int64)\n") == 2
    assert "p = x_ptr + offs_n\nq = y_ptr + offs_n\n" in made


def test_a_bound_that_changes_in_between_is_kept(body: Body) -> None:
    made = body(MAKE + "n = n - 1\nx = tl.load(p, boundary_check=(0,))\n")
    assert "p_row_bound = tl.cast(n, tl.int64)\n" in made
    assert made.endswith("mask=offs_n[:, None] < p_row_bound, other=0.0)\n")


def test_an_offset_that_changes_in_between_keeps_its_index(body: Body) -> None:
    made = body(
        "for i in range(m):\n"
        "    p = tl.make_block_ptr(x_ptr, (n,), (1,), (i * B,), (B,), (0,))\n"
        "    i = i + 1\n"
        "    tl.store(p, 0.0, boundary_check=(0,))\n"
    )
    assert "    p_offs = i * B + tl.arange(0, B).to(tl.int64)\n    p = x_ptr + p_offs\n" in made
    assert made.endswith("    tl.store(p, 0.0, mask=p_offs < n)\n")


def test_a_pointer_carried_from_the_loop_before_keeps_what_it_was_made_with(body: Body) -> None:
    made = body(
        "off = 0\n"
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (off,), (B,), (0,))\n"
        "for i in range(m):\n"
        "    x = tl.load(p, boundary_check=(0,))\n"
        "    p = tl.make_block_ptr(x_ptr, (n,), (1,), (off,), (B,), (0,))\n"
        "    off = i * B\n"
    )
    assert made.count("p_offs = off + tl.arange(0, B).to(tl.int64)\n") == 2
    assert "x = tl.load(p, mask=p_offs < n, other=0.0)\n" in made


def test_definitions_that_differ_keep_their_bounds(body: Body) -> None:
    made = body(
        "if n > m:\n"
        "    p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))\n"
        "else:\n"
        "    p = tl.make_block_ptr(y_ptr, (m,), (1,), (0,), (B,), (0,))\n"
        "x = tl.load(p, boundary_check=(0,))\n"
    )
    assert "    p_bound = tl.cast(n, tl.int64)\n" in made
    assert "    p_bound = tl.cast(m, tl.int64)\n" in made
    assert made.endswith("x = tl.load(p, mask=offs_n < p_bound, other=0.0)\n")


def test_what_is_advanced_has_a_scalar_offset(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n, m), (s, 1), (0, 0), (BLOCK, B), (1, 0))\n"
        "for i in range(0, m, B):\n"
        "    x = tl.load(p, boundary_check=(0, 1))\n"
        "    p = tl.advance(p, (0, B))\n"
    )
    assert made == textwrap.dedent(
        """\
        offs_n = tl.arange(0, BLOCK).to(tl.int64)
        p_col = tl.cast(0, tl.int64)
        p = x_ptr + offs_n[:, None] * s
        for i in range(0, m, B):
            p_cols = p_col + tl.arange(0, B)
            x = tl.load(p + p_cols[None, :], mask=(offs_n[:, None] < n) & (p_cols[None, :] < m), other=0.0)
            p_col += B
        """
    )


@pytest.mark.parametrize("offsets", ["(0, B)", "[0, B]", "offsets=(0, B)"])
def test_the_method_of_pointers_advances_them_too(body: Body, offsets: str) -> None:
    text = (
        "p = tl.make_block_ptr(x_ptr, (n, m), (s, 1), (0, 0), (BLOCK, B), (1, 0))\n"
        "for i in range(0, m, B):\n"
        "    x = tl.load(p, boundary_check=(0, 1))\n"
        "    p = {}\n"
    )
    assert body(text.format(f"p.advance({offsets})")) == body(text.format("tl.advance(p, (0, B))"))


def test_a_second_pointer_starts_where_the_first_was_moved_to(body: Body) -> None:
    made = body(
        "p_a = tl.make_block_ptr(x_ptr, (n,), (s,), (0,), (B,), (0,))\n"
        "p_b = tl.advance(p_a, (B,))\n"
        "x = tl.load(p_a) + tl.load(p_b)\n"
    )
    assert "p_b = p_a\nb_start = a_start + B\n" in made
    assert made.endswith("x = tl.load(p_a + a_offs * s) + tl.load(p_b + b_offs * s)\n")


def test_a_pointer_made_anew_starts_anew(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))\n"
        "p = tl.advance(p, (B,))\n"
        "x = tl.load(p)\n"
        "p = tl.make_block_ptr(y_ptr, (n,), (1,), (m,), (B,), (0,))\n"
        "x += tl.load(p)\n"
    )
    index = "p_offs = p_start + tl.arange(0, B)\n"
    assert made.endswith(f"p_start = tl.cast(m, tl.int64)\np = y_ptr\n{index}x += tl.load(p + p_offs)\n")
    assert made.count(index) == 2


def test_addresses_where_they_are_used_are_made_at_each_use(body: Body) -> None:
    made = body(
        MAKE + "x = tl.load(p, boundary_check=(0,))\nn += 1\ntl.store(p, x, boundary_check=(0,))\n", at_use=True
    )
    address = "p + (offs_n[:, None] * s + offs_m[None, :])"
    assert made.count("x_ptr") == 1
    assert f"x = tl.load({address}, mask=offs_n[:, None] < p_row_bound, other=0.0)\n" in made
    assert made.endswith(f"tl.store({address}, x, mask=offs_n[:, None] < p_row_bound)\n")


def test_addresses_where_they_are_used_add_up_what_is_advanced_and_what_is_not(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n, m), (s, 1), (0, 0), (BLOCK, B), (1, 0))\n"
        "for i in range(0, m, B):\n"
        "    x = tl.load(p)\n"
        "    p = tl.advance(p, (0, B))\n",
        at_use=True,
    )
    assert "p = x_ptr\n" in made
    assert "    x = tl.load(p + (offs_n[:, None] * s + p_cols[None, :]))\n    p_col += B\n" in made


def test_an_address_of_one_dimension_needs_no_sum(body: Body) -> None:
    made = body("p = tl.make_block_ptr(x_ptr, (n,), (s,), (0,), (B,), (0,))\nx = tl.load(p)\n", at_use=True)
    assert made.endswith("p = x_ptr\noffs_n = tl.arange(0, B).to(tl.int64)\nx = tl.load(p + offs_n * s)\n")


def test_addresses_of_blocks_of_two_shapes_are_made_with_their_pointers(body: Body) -> None:
    text = (
        "if n > 0:\n"
        "    p = tl.make_block_ptr(x_ptr, (n,), (1,), (n * BLOCK,), (BLOCK,), (0,))\n"
        "else:\n"
        "    p = tl.make_block_ptr(x_ptr, (m,), (1,), (n * B,), (B,), (0,))\n"
        "x = tl.load(p)\n"
    )
    written = body(text, at_use=True)
    assert written.endswith("x = tl.load(p)\n")
    assert written == body(text)


def test_a_pointer_used_after_a_loop_is_made_there(body: Body) -> None:
    made = body(MAKE + "for i in range(m):\n    n += i\ntl.store(p, 0.0)\n")
    assert "p = x_ptr\n" in made
    assert made.endswith("tl.store(p + offs_n[:, None] * s + offs_m[None, :], 0.0)\n")


def test_what_a_loop_changes_is_kept_for_after_it(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n,), (s,), (m,), (B,), (0,))\n"
        "for i in range(n):\n    m += i\n    s += i\n"
        "tl.store(p, 0.0)\n"
    )
    assert made.startswith("p_start = tl.cast(m, tl.int64)\np_stride = tl.cast(s, tl.int64)\np = x_ptr\n")
    assert made.endswith("p_offs = p_start + tl.arange(0, B)\ntl.store(p + p_offs * p_stride, 0.0)\n")


def test_an_offset_that_is_loaded_is_loaded_once(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (tl.load(y_ptr),), (B,), (0,))\nx = tl.load(p, boundary_check=(0,))\n"
    )
    assert made.count("tl.load(y_ptr)") == 1
    assert made.endswith("mask=(p_offs >= 0) & (p_offs < n), other=0.0)\n")


def test_a_pointer_made_on_the_spot(body: Body) -> None:
    made = body(
        "i = tl.program_id(0)\n"
        "x = f(tl.load(tl.make_block_ptr(x_ptr, (n,), (s,), (i * B,), (B,), (0,)), boundary_check=(0,)))\n"
    )
    assert made.endswith(
        "offs_n = i * B + tl.arange(0, B).to(tl.int64)\n"
        "x = f(tl.load(x_ptr + offs_n * s, mask=offs_n < n, other=0.0))\n"
    )


def test_statements_that_share_a_line(body: Body) -> None:
    made = body(
        "if n: p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,)); x = tl.load(p, boundary_check=(0,))\n"
    )
    assert made == (
        "if n: offs_n = tl.arange(0, B).to(tl.int64); p = x_ptr + offs_n; x = tl.load(p, mask=offs_n < n, other=0.0)\n"
    )


def test_three_dimensions_by_keywords(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(base=x_ptr, shape=[n, m, B], strides=[s, B, 1], offsets=[n, 0, 0],\n"
        "                      block_shape=[1, BLOCK, B], order=[2, 1, 0])  # a tile\n"
        "tl.store(value=0.0, pointer=p, boundary_check=[0, 1, 2])\n"
    )
    assert (
        "p = x_ptr + offs_n[:, None, None] * s + offs_m[None, :, None] * B + offs_b[None, None, :]  # a tile\n" in made
    )
    mask = "(offs_n[:, None, None] >= 0) & (offs_n[:, None, None] < n) & (offs_m[None, :, None] < m)"
    assert made.endswith(f"p_mask = {mask}\ntl.store(value=0.0, pointer=p, mask=p_mask)\n")


@pytest.mark.parametrize(
    ("written", "condition"),
    [
        ("{} if m else None", "m"),
        ("None if not m else {}", "m"),
        ("None if m else {}", "not m"),
        ("None if m > 1 else {}", "not (m > 1)"),
    ],
)
def test_a_pointer_that_is_there_only_under_a_condition(body: Body, written: str, condition: str) -> None:
    made = body(
        f"p = {written.format('tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))')}\n"
        f"if {condition}:\n    x = tl.load(p)\n"
    )
    assert f"p = x_ptr + offs_n if {condition} else None\n" in made


def test_a_variable_that_holds_other_pointers_elsewhere(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))\n"
        "x = tl.load(p, boundary_check=(0,))\n"
        "p = y_ptr + tl.arange(0, B)\n"
        "p += B\n"
        "tl.store(p, x, mask=x > 0)\n"
    )
    assert made.endswith("p = y_ptr + tl.arange(0, B)\np += B\ntl.store(p, x, mask=x > 0)\n")


def test_a_parameter_that_becomes_a_block_pointer(body: Body) -> None:
    made = body("x_ptr = tl.make_block_ptr(x_ptr + m, (n,), (1,), (0,), (B,), (0,))\nx = tl.load(x_ptr)\n")
    assert made.endswith("x_ptr = x_ptr + m + offs_n\nx = tl.load(x_ptr)\n")


def test_comments_between_arguments_stay(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(\n    x_ptr,  # the input\n    (n,), (1,), (0,), (B,), (0,),\n)\nx = tl.load(p)\n"
    )
    assert made.startswith("# the input\noffs_n = ")


def test_names_of_the_file_are_not_taken(body: Body) -> None:
    made = body("offs_n = 3\np = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))\nx = tl.load(p)\n")
    assert "p_offs = tl.arange(0, B).to(tl.int64)\n" in made


def test_arguments_over_several_lines(body: Body) -> None:
    made = body(
        MAKE
        + """\
if n:
    x = tl.load(
        (  # (here)
            p
        ),
        boundary_check=(
            0,  # :)
            1,
        ),
        padding_option=(
            "zero"
        ),
        volatile=True,
    )
"""
    )
    mask = "(offs_n[:, None] < n) & (offs_m[None, :] < m)"
    assert made.endswith(
        f"if n:\n    x = tl.load(\n        p,\n        mask={mask}, other=0.0,\n        volatile=True,\n    )\n"
    )


def test_precedence_is_the_authors(body: Body) -> None:
    made = body(
        "p = tl.make_block_ptr(x_ptr if n else y_ptr, (n, m), (s + 1, m << 1), (n | m, n if m else s),\n"
        "                      (BLOCK, B), (1, 0))\n"
        "x = tl.load(p, boundary_check=(0, 1))\n"
    )
    assert "= (n | m) + tl.arange(0, BLOCK)" in made
    assert "= (n if m else s) + tl.arange(0, B)" in made
    assert "p = (x_ptr if n else y_ptr) + offs_n[:, None] * (s + 1) + offs_m[None, :] * (m << 1)\n" in made
