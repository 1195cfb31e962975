"""Names that a function may be given."""

from __future__ import annotations

import ast

import pytest

from tt2gl.pipelining.naming import fresh_names

FILE = ast.parse("""
import numpy as slot
if flag:
    steps = 4
class Case:
    each = 3
def other(more):
    for s in range(more):
        a_buf = s
def kernel(a_ptr, n):
    phase = 0
""")
KERNEL = FILE.body[-1]


@pytest.mark.parametrize("wanted", ["more", "s", "a_buf"])
def test_names_of_other_functions_are_free(wanted: str) -> None:
    assert isinstance(KERNEL, ast.FunctionDef)
    assert fresh_names(FILE, KERNEL)(wanted) == wanted


@pytest.mark.parametrize("wanted", ["slot", "steps", "flag", "other", "each", "kernel", "a_ptr", "n", "phase"])
def test_names_of_its_own_and_of_the_file_are_not(wanted: str) -> None:
    assert isinstance(KERNEL, ast.FunctionDef)
    assert fresh_names(FILE, KERNEL)(wanted) == f"{wanted}_2"
