"""The decorator that takes the parts of the host's descriptors: what it refuses, what it passes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import libcst as cst
import pytest

from tt2gl.rewrite.host_parts import HOST_PARTS_SOURCE, with_parts
from tt2gl.rewrite.imports import with_instructions

Code = Callable[[cst.CSTNode], str]


@dataclass
class Descriptor:
    base: object
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"


class Jit:
    arg_names = ("n", "a_base", "a_size_0", "a_size_1", "a_stride_0", "a_block_0", "a_block_1", "B")

    def run(self, **kwargs: Any) -> dict[str, Any]:
        return kwargs


@pytest.fixture
def kernel() -> Any:
    from triton.runtime.jit import KernelInterface

    names: dict[str, Any] = {"KernelInterface": KernelInterface}
    exec(HOST_PARTS_SOURCE, names)
    return names["with_parts_of"](a=2)(Jit())


def test_what_lies_outside_must_be_zero(kernel: Any) -> None:
    with pytest.raises(AssertionError, match="zeros outside"):
        kernel.run(1, Descriptor("x", [3, 4], [4, 1], [2, 4], padding="nan"))


def test_a_descriptor_is_passed_in_parts(kernel: Any) -> None:
    parts = {"a_base": "x", "a_size_0": 3, "a_size_1": 4, "a_stride_0": 8, "a_block_0": 2, "a_block_1": 4}
    assert kernel.arg_names == ["n", "a", "B"]
    host = Descriptor("x", [3, 4], [8, 1], [2, 4])
    assert kernel.run(7, host, B=2, grid=(1,)) == {"n": 7, "B": 2, "grid": (1,), **parts}
    assert kernel.run(7, a=host) == {"n": 7, **parts}


def test_it_stands_within_the_authors_decorators_and_around_others(code: Code) -> None:
    kernel = cst.parse_statement("@triton.autotune([], [])\n@triton.heuristics({})\n@gluon.jit\ndef kernel(a): pass\n")
    assert isinstance(kernel, cst.FunctionDef)
    made = code(with_parts(kernel, [("a", 2), ("c", 1)], 1)).splitlines()
    assert made[:3] == ["@triton.autotune([], [])", "@with_parts_of(a=2, c=1)", "@triton.heuristics({})"]


def test_what_kernels_are_is_imported_for_it() -> None:
    port = f"from triton.experimental.gluon import language as gl\n\n\n{HOST_PARTS_SOURCE}"
    made = with_instructions(port)
    assert made.count("from triton.runtime.jit import KernelInterface\n") == 1
    assert with_instructions(made) == made
