"""What loops compute alike on every turn stands before them; what may not move stays where it is."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.invariants import without_invariants

HEAD = """
def kernel(a_ptr, b_ptr, x, m, n, K, stride, BLOCK: gl.constexpr, FLAG: gl.constexpr):
    rows = gl.arange(0, BLOCK, layout=outer)
    cols = gl.arange(0, BLOCK, layout=inner)
"""


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = without_invariants(HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n", {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD)).strip()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for k in range(0, K, BLOCK):\n    x += rows[:, None] * k", id="the loop counts"),
        pytest.param("for k in range(0, K):\n    rows += 1\n    x += rows[:, None] * m", id="assigned in the loop"),
        pytest.param("for k in range(0, K):\n    x += m * stride", id="scalars"),
        pytest.param("for k in range(0, K):\n    x += rows * m + cols", id="rows"),
        pytest.param("y = rows * n\nfor k in range(0, K):\n    x += y * m", id="a name of a row"),
        pytest.param("for k in range(0, K):\n    x += 1 / BLOCK", id="a constant of the compilation"),
        pytest.param("for k in range(0, K):\n    if FLAG:\n        x += b_ptr + rows[:, None] * m", id="a branch"),
        pytest.param("for k in range(0, K):\n    x += rows[:, None] // m", id="may divide by zero"),
        pytest.param("for k in range(0, K):\n    x += gl.cdiv(n, m)", id="may divide by zero, rounded up"),
        pytest.param("for k in range(0, K):\n    x += gl.log(k)", id="the loop counts what a function is of"),
        pytest.param("for k in range(0, K):\n    x += gl.log(BLOCK)", id="a function of a constant"),
        pytest.param("for k in range(0, K):\n    if m > k:\n        x += gl.log(rows)", id="a function in a branch"),
        pytest.param("for k in range(0, K):\n    x += gl.log(gl.load(a_ptr + rows))", id="a function of a load"),
        pytest.param("for k in range(0, K):\n    x += gl.cdiv(k, BLOCK)", id="the loop counts what is divided"),
        pytest.param("for k in range(0, K):\n    x += 128 // BLOCK", id="a constant of the compilation, divided"),
        pytest.param("for k in range(0, K):\n    x += 1 / m if FLAG else 0", id="a branch of an expression"),
        pytest.param("x += rows[:, None] * m\nfor k in range(0, K):\n    x += rows[:, None] * m", id="computed before"),
        pytest.param("for k in gl.static_range(4):\n    x += rows[:, None] * m", id="unrolled"),
        pytest.param("x += rows[:, None] * m", id="no loop"),
        pytest.param(
            "for k in range(0, K):\n    x += gl.convert_layout(rows + k, gl.SliceLayout(1, outer))", id="a row of it"
        ),
        pytest.param("for k in range(0, K):\n    x += gl.convert_layout(rows, outer)", id="no row of a tile"),
        pytest.param(
            "for k in range(0, K):\n    if k > 0:\n        x += gl.convert_layout(rows, gl.SliceLayout(1, outer))",
            id="a row where the loop says",
        ),
    ],
)
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_the_parts_of_an_address_and_a_mask_move() -> None:
    made = moved(
        """
        # all of K
        for k in range(0, K, BLOCK):
            a = gl.load(
                a_ptr + rows[:, None].to(gl.int64) * stride + (k + cols)[None, :],
                mask=(rows[:, None] < m) & ((k + cols)[None, :] < K),
            )
            x += gl.where(rows[:, None] < m, a, 0)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        a_base = a_ptr + rows[:, None].to(gl.int64) * stride
        rows_mask = rows[:, None] < m
        # all of K
        for k in range(0, K, BLOCK):
            a = gl.load(
                a_base + (k + cols)[None, :],
                mask=rows_mask & ((k + cols)[None, :] < K),
            )
            x += gl.where(rows_mask, a, 0)
        """
        ).strip()
    )


def test_the_sides_of_an_and_of_tensors_move_and_only_the_first_of_other_values() -> None:
    made = moved(
        """
        for k in range(0, K, BLOCK):
            a = gl.load(a_ptr + k, mask=(k + cols)[None, :] < K and rows[:, None] < m)
            b = gl.load(b_ptr + k, mask=n // BLOCK > 1 and rows[:, None] < m)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        rows_mask = rows[:, None] < m
        n_mask = n // BLOCK > 1
        for k in range(0, K, BLOCK):
            a = gl.load(a_ptr + k, mask=(k + cols)[None, :] < K and rows_mask)
            b = gl.load(b_ptr + k, mask=n_mask and rows[:, None] < m)
        """
        ).strip()
    )


@pytest.mark.parametrize("division", ["gl.cdiv(n, BLOCK)", "n // BLOCK"])
def test_whole_numbers_are_divided_by_constants_before(division: str) -> None:
    made = moved(f"for k in range(0, K):\n    each = {division}\n    x += each * k")
    assert made == f"n_quotient = {division}\nfor k in range(0, K):\n    each = n_quotient\n    x += each * k"


def test_each_part_moves_as_far_as_it_can() -> None:
    made = moved(
        """
        for i in range(0, m):
            y = x * i
            for j in range(0, n):
                x += y[:, None] * stride + j * -(1 / n)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        n_factor = -(1 / n)
        for i in range(0, m):
            y = x * i
            y_scaled = y[:, None] * stride
            for j in range(0, n):
                x += y_scaled + j * n_factor
        """
        ).strip()
    )


def test_only_the_functions_asked_for_change_and_names_are_new() -> None:
    loop = "    for k in range(0, K):\n        x += rows[:, None] * m\n"
    text = f"\ufeffdef other(é, rows, m, K, x):\n{loop}def kernel(é, rows, m, K, x, rows_scaled):\n{loop}"
    new = "    rows_scaled_2 = rows[:, None] * m\n    for k in range(0, K):\n        x += rows_scaled_2\n"
    first, second = text.split("def kernel")
    assert without_invariants(text, {"kernel"}) == f"{first}def kernel{second.replace(loop, new)}"


def test_what_is_no_end_of_a_line_for_python_moves_no_place() -> None:
    made = moved("x = 'a\u2028b'  # \x0c and \x1e\nfor k in range(0, K):\n    x += rows[:, None] * m")
    assert made.endswith("\nrows_scaled = rows[:, None] * m\nfor k in range(0, K):\n    x += rows_scaled")


ROW = "gl.convert_layout(rows, gl.SliceLayout(1, outer))"


def test_a_row_is_converted_before() -> None:
    body = f"for k in range(0, K):\n    x *= gl.exp({ROW}[:, None] - k)"
    assert moved(body) == f"rows_row = {ROW}\nfor k in range(0, K):\n    x *= gl.exp(rows_row[:, None] - k)"


def test_a_row_of_a_branch_is_converted_under_the_same_one() -> None:
    branch = "    if FLAG:\n        x *= {0}[:, None]\n    else:\n        if BLOCK > 8:\n            x += {0}[:, None]"
    made = moved(f"for k in range(0, K):\n{branch.format(ROW)}")
    before = f"if FLAG:\n    rows_row = {ROW}\nif not FLAG and BLOCK > 8:\n    rows_row_2 = {ROW}\n"
    after = branch.format("rows_row").replace("+= rows_row", "+= rows_row_2")
    assert made == f"{before}for k in range(0, K):\n{after}"


def test_functions_move_with_what_they_are_of() -> None:
    made = moved(
        """
        for k in range(0, K, BLOCK):
            z = gl.load(a_ptr + (k + cols)[None, :])
            x += z - gl.log(rows[:, None]) * gl.exp2(m * 1.44) + gl.sqrt(k)
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        rows_scaled = gl.log(rows[:, None]) * gl.exp2(m * 1.44)
        for k in range(0, K, BLOCK):
            z = gl.load(a_ptr + (k + cols)[None, :])
            x += z - rows_scaled + gl.sqrt(k)
        """
        ).strip()
    )


def test_a_function_is_named_after_what_it_is_of() -> None:
    made = moved("for k in range(0, K):\n    x += gl.rsqrt(n) * k")
    assert made == "n_rsqrt = gl.rsqrt(n)\nfor k in range(0, K):\n    x += n_rsqrt * k"


def test_what_is_computed_of_names_of_columns_moves() -> None:
    made = moved(
        """
        place = rows[:, None]
        inside = place < m
        scale = gl.load(a_ptr + place, mask=inside)
        total = gl.sum(scale, 1)
        for k in range(0, K, BLOCK):
            y = gl.load(b_ptr + place * stride + (k + cols)[None, :], mask=inside)
            x += y / (scale * scale + n) + total * n
        """
    )
    assert (
        made
        == textwrap.dedent(
            """
        place = rows[:, None]
        inside = place < m
        scale = gl.load(a_ptr + place, mask=inside)
        total = gl.sum(scale, 1)
        b_base = b_ptr + place * stride
        scale_base = scale * scale + n
        for k in range(0, K, BLOCK):
            y = gl.load(b_base + (k + cols)[None, :], mask=inside)
            x += y / scale_base + total * n
        """
        ).strip()
    )


def test_names_of_columns_are_left_to_amds_compiler() -> None:
    text = HEAD + "    place = rows[:, None]\n    for k in range(0, K):\n        x += place * m\n"
    assert without_invariants(text, {"kernel"}, columns=False) == text != without_invariants(text, {"kernel"})
