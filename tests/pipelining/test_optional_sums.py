"""Sums that flags leave out: their tensor memory stands under those, and that of other sums does not."""

from __future__ import annotations

import pytest

from tests.pipelining.test_tcgen05 import END, LOAD, MULTIPLY, loop, product, written

pytestmark = pytest.mark.once

ZEROS = "gl.zeros([M, N], gl.float32, layout=registers)"
ALLOCATE = "acc_tmem = allocate_tensor_memory(gl.float32, [M, N], memory)\n"
UNDER = loop(f"if N:\n        acc = {product()}")


@pytest.mark.parametrize(
    ("made", "tested"),
    [
        pytest.param(f"acc = {ZEROS}\n", UNDER, id="always there"),
        pytest.param(f"if N:\n    acc = x\nelse:\n    acc = {ZEROS}\n", UNDER, id="there either way"),
        pytest.param(f"acc = {ZEROS}\nif N:\n    acc = x\n", UNDER, id="given again"),
        pytest.param(
            f"acc = {ZEROS} if N else None\n", loop(f"if n:\n        acc = {product()}"), id="a test at run time"
        ),
        pytest.param("acc = acc_of(x) if N else x\n", UNDER, id="one of two"),
    ],
)
def test_other_sums_are_under_no_test(made: str, tested: str) -> None:
    text = written(f"{made}{tested}use(acc)\n")
    assert f"\n{ALLOCATE}acc_tmem.store(acc)\n" in text
    assert f"\n{LOAD}use(acc)\n" in text


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(f"acc = {ZEROS} if N else None\n", id="None"),
        pytest.param(f"if N:\n    acc = {ZEROS}\n", id="no value"),
        pytest.param(f"acc = None\nif N:\n    acc = {ZEROS}\n", id="None before"),
    ],
)
def test_a_sum_that_a_flag_leaves_out_has_memory_under_it(made: str) -> None:
    text = written(f"{made}{UNDER}if N:\n    use(acc)\n")
    before, behind = text.split(f"for k in range(n):\n    if N:\n        {MULTIPLY}\n")
    assert before.endswith(f"if N:\n    {ALLOCATE}if N:\n    acc_tmem.store(acc)\n")
    assert behind.endswith(f"{END}if N:\n    {LOAD}    use(acc)\n")


def test_it_is_taken_out_where_it_is_read_first() -> None:
    text = written(f"acc = {ZEROS} if N else None\n{UNDER}store(x)\nuse(acc if N else x)\n")
    assert text.endswith(f"store(x)\nif N:\n    {LOAD}use(acc if N else x)\n")


def test_memory_that_other_products_take_too_is_under_no_flag() -> None:
    text = written(f"acc = {ZEROS} if N else None\n{UNDER}acc = {product('a', 'b', 'x')}\nuse(acc)\n")
    assert f"\n{ALLOCATE}if N:\n    acc_tmem.store(acc)\n" in text


def test_memory_is_under_no_test_of_what_the_loop_makes() -> None:
    alone = f"if w.dtype == gl.float32:\n        acc = {product(added='None')}\n        use(acc)"
    text = written(loop("w = load(x)", f"if N:\n        {alone.replace(chr(10), chr(10) + '    ')}"))
    before, behind = text.split("for k in range(n):\n    w = load(x)\n")
    assert before.endswith(f"if N:\n    {ALLOCATE}")
    assert behind.startswith("    if N:\n        if w.dtype == gl.float32:\n            tcgen05_mma(")
    outside = written(f"w = load(x)\n{loop(alone)}")
    assert f"if w.dtype == gl.float32:\n    {ALLOCATE}for k in range(n):\n" in outside
