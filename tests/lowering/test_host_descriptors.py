"""Descriptors from the host as their parts: what stays, and what a kernel takes instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.host_descriptors import parted_descriptors
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

BODY = '    """Twice."""\n    # from the first row on\n    c.store([0, 0], tl.exp(a.load([0, 0])))\n'


def lower(function: str, ranks: dict[str, int]) -> Lowered:
    return parted_descriptors(read_source(Path("kernel.py"), HEADER + function), {"kernel": ranks})


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (f"def kernel(a, c=None):\n{BODY}", "`c` has a default"),
        (f"def kernel(a, c, a_base):\n{BODY}", "a name is taken"),
        ("def kernel(a, c): c.store([0], tl.exp(a.load([0])))\n", "its body stands in the line of its `def`"),
        ("def kernel(a, c):\n    c.store([0], a.load([0]))\n", "it does not name `triton.language`"),
    ],
)
def test_what_cannot_be_said_in_parts_stays(function: str, reason: str) -> None:
    done = lower(function, {"a": 2, "c": 2})
    assert done.text == HEADER + function
    assert done.functions == ()
    assert reason in done.kept["kernel"].message


def test_a_kernel_that_gets_none_stays() -> None:
    done = lower(f"def other(a, c):\n{BODY}", {"a": 2})
    assert (done.functions, dict(done.kept)) == ((), {})


def test_parameters_become_parts_of_which_the_descriptor_is_made() -> None:
    done = lower(f"def kernel(a: tl.tensor_descriptor, n, c):\n{BODY}", {"a": 2, "c": 1})
    assert done.functions == ("kernel",)
    assert done.text.removeprefix(HEADER) == (
        "def kernel(a_base, a_size_0, a_size_1, a_stride_0, a_block_0: tl.constexpr, a_block_1: tl.constexpr, n, "
        "c_base, c_size_0, c_block_0: tl.constexpr):\n"
        '    """Twice."""\n'
        "    # from the first row on\n"
        "    a = tl.make_tensor_descriptor(a_base, [a_size_0, a_size_1], [a_stride_0, 1], [a_block_0, a_block_1])\n"
        "    c = tl.make_tensor_descriptor(c_base, [c_size_0], [1], [c_block_0])\n"
        "    c.store([0, 0], tl.exp(a.load([0, 0])))\n"
    )


def test_each_has_lines_of_its_own_where_parameters_have() -> None:
    done = lower(f"def kernel(\n    a, c,\n    n,\n):\n{BODY}", {"a": 1, "c": 1})
    assert done.text.removeprefix(HEADER).startswith(
        "def kernel(\n    a_base, a_size_0,\n    a_block_0: tl.constexpr,\n"
        "    c_base, c_size_0,\n    c_block_0: tl.constexpr,\n    n,\n):\n"
    )
