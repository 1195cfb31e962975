"""Fences that another makes needless: first those that must stay."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.fences import with_single_fences


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(a, b, acc):\n" + textwrap.indent(textwrap.dedent(body), "    "))
    assert isinstance(function, cst.FunctionDef)
    code = cst.Module([with_single_fences(function)]).code
    return textwrap.dedent(code.removeprefix("def kernel(a, b, acc):\n"))


@pytest.mark.parametrize(
    "between",
    [
        "acc = warpgroup_mma(a, b, acc)",
        "acc = helper(a)",
        "if acc:\n    acc = warpgroup_mma(a, b, acc)",
        "for k in range(3):\n    acc = warpgroup_mma(a, b, acc)",
        "tma.async_copy_shared_to_global(a, [0, 0], b)",
        "mbarrier.arrive(b)",
        "gl.warp_specialize([(one, (a,)), (other, (b,))], [4], [24])",
    ],
)
def test_fences_that_something_reads_behind(between: str) -> None:
    body = f"fence_async_shared()\n{between}\nfence_async_shared()\nacc = warpgroup_mma(a, b, acc)\n"
    assert written(body) == body


@pytest.mark.parametrize(
    "body",
    [
        "fence_async_shared()\nacc = warpgroup_mma(a, b, acc)\n",
        "fence_async_shared()\nif acc:\n    fence_async_shared()\n",
        "if acc:\n    fence_async_shared()\nfence_async_shared()\n",
        "fence_async_shared()\nif acc:\n    fence_async_shared()\nelse:\n    acc = warpgroup_mma(a, b, acc)\n",
        "fence_async_shared()\nif acc:\n    fence_async_shared()\nelif a:\n    fence_async_shared()\n",
        "fence_async_shared()\nif helper(a):\n    fence_async_shared()\nelse:\n    fence_async_shared()\n",
        "# for the first\nfence_async_shared()\nfence_async_shared()\n",
    ],
)
def test_fences_of_other_blocks_and_with_words_stay(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize(
    "between",
    [
        "a = gl.allocate_shared_memory(b.dtype, [64, 64], shared, b.to(gl.float16))",
        "async_copy.wait_group(1)",
        "b = tl.cumsum(ring.index(slot).load(layout), axis=0)",
        "a = ring.index(slot).load(layout)\nb = ring.index(slot).permute((1, 0))",
        "if EVEN:\n    a = gl.load(b)\nelse:\n    a = gl.load(b, mask=acc < 3)",
    ],
)
def test_the_last_of_several_is_enough(between: str) -> None:
    after = f"{between}\nfence_async_shared()\nacc = warpgroup_mma(a, b, acc)\n"
    assert written(f"fence_async_shared()\n{after}") == after


def test_one_in_each_branch_is_enough() -> None:
    after = (
        "if EVEN:\n    a = gl.load(b)\n    fence_async_shared()\nelif acc < 3:\n    fence_async_shared()\n"
        "else:\n    fence_async_shared()\nacc = warpgroup_mma(a, b, acc)\n"
    )
    assert written(f"fence_async_shared()\n{after}") == after


def test_in_loops() -> None:
    body = "for k in range(3):\n    {}x = gl.load(b)\n    fence_async_shared()\n    acc = warpgroup_mma(a, x, acc)\n"
    assert written(body.format("fence_async_shared()\n    ")) == body.format("")
