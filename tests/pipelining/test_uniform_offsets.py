"""Offsets of buffer operations in loops, a scalar and the rest: those that stay as they are first."""

from __future__ import annotations

import pytest

from tt2gl.pipelining.uniform_offsets import with_uniform_offsets

KERNEL = """\
@gluon.jit
def kernel(a_ptr, n, stride, short: gl.int16, at: gl.constexpr, BLOCK: gl.constexpr):
    {begin}
    pid = gl.program_id(0)
    rows = pid * BLOCK + gl.arange(0, BLOCK, layout=at)
    cols_range = gl.arange(0, BLOCK, layout=at)
    for k in {span}:
        cols = {cols}
        {more}
        a = gl.amd.cdna3.buffer_load({load})
        {after}
"""


def written(
    begin: str = "pass",
    span: str = "range(0, n, BLOCK)",
    cols: str = "k + cols_range",
    more: str = "pass",
    load: str = "a_ptr, rows[:, None] * stride + cols[None, :], mask=cols[None, :] < n",
    after: str = "pass",
    kernels: tuple[str, ...] = ("kernel",),
    authors: str = "",
) -> tuple[str, str]:
    """The kernel as it is, and as it is written, where the author's text has some names."""
    text = KERNEL.format(begin=begin, span=span, cols=cols, more=more, load=load, after=after)
    return text, with_uniform_offsets(text, kernels, authors)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"span": "gl.associative(4)"}, id="no loop"),
        pytest.param({"kernels": ()}, id="another kernel"),
        pytest.param({"load": "a_ptr, k + cols_range"}, id="apart already"),
        pytest.param({"load": "a_ptr, cols_range[:, None] * stride + cols_range[None, :]"}, id="no scalar"),
        pytest.param(
            {"load": "a_ptr, at_all", "begin": "at_all = 0", "more": "at_all += cols + (k + rows)"}, id="made in steps"
        ),
        pytest.param({"load": "a_ptr, (\n            rows + cols  # rows\n            + k\n        )"}, id="a comment"),
        pytest.param({"load": "a_ptr + cols + (k + rows)"}, id="pointers"),
        pytest.param(
            {"load": "a_ptr, loaded[None, :] + 3 + gl.load(a_ptr + cols).to(gl.int32)", "more": "loaded = f(k)"},
            id="a sum that may have few bits",
        ),
        pytest.param({"load": "a_ptr, loaded + (short + cols_range)", "more": "loaded = f(k)"}, id="a short number"),
        pytest.param(
            {
                "load": "a_ptr, gl.cast(at_all, gl.int32)",
                "more": "at_all = rows + k",
                "after": "gl.store(a_ptr + at_all)",
            },
            id="wide ones that others read",
        ),
        pytest.param({"load": "a_ptr, gl.cast(at_all, gl.int16)", "more": "at_all = rows + k"}, id="fewer bits"),
    ],
)
def test_offsets_that_stay_as_they_are(given: dict[str, str]) -> None:
    before, after = written(**given)  # type: ignore[arg-type]
    assert after == before


ROWS = "gl.arange(0, BLOCK, layout=at)[:, None] * stride"
HALF = f"pid * BLOCK * stride + ({ROWS} + cols[None, :])"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, f"pid * BLOCK * stride + k + ({ROWS} + cols_range[None, :])"),
        ({"cols": "k + f(k)"}, HALF),
        ({"begin": "m = n", "cols": "k * m + cols_range", "after": "m += 1"}, HALF),
        ({"begin": "m = n", "cols": "m * k + cols_range", "more": "m = n + 1"}, HALF),
        ({"cols": "k + cols_range", "more": "k += 1"}, HALF),
        ({"begin": "m = n // 2", "cols": "k + m + cols_range", "more": "m = m + 1"}, HALF),
        (
            {"begin": "m = n // 2\n    m = m + 1", "cols": "k + m + cols_range"},
            f"pid * BLOCK * stride + k + ({ROWS} + (m + cols_range)[None, :])",
        ),
        ({"begin": "if n > 3:\n        m = n // 2\n    else:\n        m = 0", "cols": "k + m + cols_range"}, HALF),
        (
            {"begin": "m, b = n // 2, n", "cols": "k * m + cols_range"},
            f"pid * BLOCK * stride + k * m + ({ROWS} + cols_range[None, :])",
        ),
        ({"begin": "m = n // 2\n    m, b = n, m * 3", "cols": "b + cols_range"}, HALF),
    ],
)
def test_what_an_offset_adds_up_from_is_apart(given: dict[str, str], made: str) -> None:
    before, after = written(**given)  # type: ignore[arg-type]
    assert after == before.replace("rows[:, None] * stride + cols[None, :], mask", f"{made}, mask"), after


def test_offsets_with_a_name_that_nothing_else_reads() -> None:
    before, after = written(
        more="at_all = (\n            rows + k\n            + 3 * n\n        )",
        load="a_ptr, at_all",
        authors="at_all = rows",
    )
    made = "pid * BLOCK + k + 3 * n + (gl.arange(0, BLOCK, layout=at))"
    assert after == before.replace("rows + k\n            + 3 * n", made), after


@pytest.mark.parametrize(
    ("authors", "made"),
    [
        ("at_all = rows + k", "pid * BLOCK + k + w * 3 + (gl.arange(0, BLOCK, layout=at) + cols_range)"),
        ("at_alls = rows + k", "pid * BLOCK + k + (gl.arange(0, BLOCK, layout=at) + cols_range + w * 3)"),
    ],
    ids=["integers that the author adds up", "what the author's pointers are moved by"],
)
def test_a_scalar_that_pointers_are_moved_by_last_stays_with_the_tensor(authors: str, made: str) -> None:
    more = "w = k // n\n        at_all = rows + cols + w * 3"
    before, after = written(more=more, load="a_ptr, at_all", authors=authors)
    assert after == before.replace("rows + cols + w * 3", made), after


def test_a_scalar_that_is_added_last_where_the_operation_is_stays_with_the_tensor() -> None:
    before, after = written(load="a_ptr, rows + cols + k % n")
    made = "pid * BLOCK + k + (gl.arange(0, BLOCK, layout=at) + cols_range + k % n)"
    assert after == before.replace("a_ptr, rows + cols + k % n", f"a_ptr, {made}"), after


@pytest.mark.parametrize(
    ("rows", "made"),
    [
        ("rows", "(gl.arange(0, BLOCK, layout=at).to(gl.int64) + cols_range)"),
        ("rows * stride.to(gl.int64)", "(gl.arange(0, BLOCK, layout=at) * stride.to(gl.int64) + cols_range)"),
    ],
    ids=["rows of 32 bits", "rows of 64 bits"],
)
def test_a_sum_of_64_bits_stays_one(rows: str, made: str) -> None:
    begin, more = "base = gl.program_id(1).to(gl.int64) * n", f"at_all = base + {rows} + cols"
    cast = "gl.cast(at_all, gl.int32)"
    before, after = written(begin, more=more, load=f"a_ptr, {cast}", after=f"gl.buffer_store(a, a_ptr, {cast})")
    by = rows.replace("rows", "")
    assert after == before.replace(more, f"at_all = base + pid * BLOCK{by} + k + {made}"), after


def test_a_name_of_one_branch_is_read_in_it_alone() -> None:
    more = "if n > 3:\n            m = n // 2\n            b = gl.amd.cdna3.buffer_load(a_ptr, rows + (cols + m))"
    _, after = written(more=more)
    assert "buffer_load(a_ptr, pid * BLOCK + k + m + (" in after, after
