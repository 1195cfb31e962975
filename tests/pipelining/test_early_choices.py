"""Loads under conditions beside copies that are waited for: first those that stay, then those that are made before."""

from __future__ import annotations

import ast
import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.early_choices import with_early_choices

HEAD = "def kernel(b_ptr, n, USE: gl.constexpr):\n"
WAIT = "async_copy.wait_group(1)\n"
PRODUCT = "s = warpgroup_mma(k_smem, q_buf.index(slot), zeros)\n"
CHOICE = "b = gl.load(b_ptr + k) if k % 64 > 0 else 0.0\n"


def block(test: str, *lines: str) -> str:
    return f"if {test}:\n" + textwrap.indent("".join(lines), "    ")


def loop(*lines: str) -> str:
    return HEAD + "    for k in range(0, n):\n" + textwrap.indent("".join(lines), "        ")


def moved(text: str) -> str:
    module = cst.parse_module(text)
    (function,) = module.body
    assert isinstance(function, cst.FunctionDef)
    tree = ast.parse("def unknown(x):\n    gl.store(x, 1)\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return module.with_changes(body=[with_early_choices(function, {"unknown": tree})]).code


@pytest.mark.once
@pytest.mark.parametrize(
    "text",
    [
        # The compilation decides it.
        loop(WAIT, PRODUCT, block("USE", "b = gl.load(b_ptr + k) if USE else 0.0\n", "s *= b\n")),
        # It loads nothing.
        loop(WAIT, PRODUCT, block("USE", "b = k if k % 64 > 0 else 0\n", "s *= b\n")),
        # Whether it is made at all is decided in the loop.
        loop(WAIT, PRODUCT, block("k > 3", CHOICE, "s *= b\n")),
        # It needs a tile, or what is computed behind the wait.
        loop(WAIT, PRODUCT, "p = slot\n", block("USE", "b = gl.load(b_ptr + p) if k > 0 else 0.0\n", "s *= b\n")),
        # It reads a tile, or does more than load.
        loop(WAIT, PRODUCT, block("USE", "b = c_buf.load() if k > 0 else 0.0\n", "s *= b\n")),
        loop(
            WAIT, PRODUCT, block("USE", "b = gl.load(b_ptr + gl.atomic_add(b_ptr, 1)) if k > 0 else 0.0\n", "s *= b\n")
        ),
        # Its name is read or bound above.
        loop(WAIT, PRODUCT, "s += b\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "b = 1.0\n", block("USE", CHOICE, "s *= b\n")),
        # Memory may be written above, or others' writes waited for.
        loop(WAIT, PRODUCT, "gl.store(b_ptr + k, s)\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "gl.atomic_add(b_ptr, 1)\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "unknown(b_ptr)\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "tma.async_copy_shared_to_global(b_desc, [k], b_smem)\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "mbarrier.wait(bar, 0)\n", block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, PRODUCT, "gl.barrier()\n", block("USE", CHOICE, "s *= b\n")),
        # Nothing is waited for, or no product of Hopper's.
        loop(PRODUCT, block("USE", CHOICE, "s *= b\n")),
        loop(WAIT, "s = mma_v2(a, b_buf.index(slot), s)\n", block("USE", CHOICE, "s *= b\n")),
    ],
)
def test_stays(text: str) -> None:
    assert moved(text) == text


@pytest.mark.once
def test_what_is_loaded_under_a_condition_is_loaded_before_the_wait() -> None:
    text = loop(WAIT, "fence_async_shared()\n", PRODUCT, block("USE", "c = c_buf.load()\n", CHOICE, "s *= b\n"))
    made = loop(
        block("USE", CHOICE), WAIT, "fence_async_shared()\n", PRODUCT, block("USE", "c = c_buf.load()\n", "s *= b\n")
    )
    assert moved(text) == made
    assert moved(made) == made
