"""Fences that another makes needless: first those that must stay."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.fences import with_reads_above_fences, with_single_fences


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


def above(body: str) -> str:
    """A kernel's body with reads above its fences."""
    function = cst.parse_module(f"def kernel():\n{textwrap.indent(textwrap.dedent(body), '    ')}").body[0]
    assert isinstance(function, cst.FunctionDef)
    made = cst.Module([with_reads_above_fences(function, "{}_1".format)]).code
    return textwrap.dedent(made.partition("\n")[2])


PRODUCT = "    qk = warpgroup_mma(q_smem.load(lhs), k, qk, is_async=True)  # scores\n"


@pytest.mark.parametrize(
    "body",
    [
        f"for i in range(n):\n{PRODUCT}    fence_async_shared()\n",
        f"for i in range(n):\n    fence_async_shared()\n    acc = warpgroup_mma(p, v, acc)\n{PRODUCT}",
        "for i in range(n):\n    fence_async_shared()\n    qk = warpgroup_mma(q, k, qk)\n",
        f"for i in range(n):\n    fence_async_shared()\n    if a:\n    {PRODUCT}",
    ],
    ids=["no fence above", "another product first", "no read", "in a branch"],
)
def test_fences_that_stay(body: str) -> None:
    assert above(body) == body


def test_an_operand_in_registers_is_read_above_the_fence() -> None:
    head = "for i in range(n):\n    async_copy.wait_group(1)\n"
    tile = "    k = k_buf.index(slot)\n"
    assert above(f"{head}    fence_async_shared()\n{tile}    # q times k\n{PRODUCT}    qk += 1\n") == (
        f"{head}{tile}    # q times k\n    q_lhs_1 = q_smem.load(lhs)\n    fence_async_shared()\n"
        + PRODUCT.replace("q_smem.load(lhs)", "q_lhs_1")
        + "    qk += 1\n"
    )


@pytest.mark.parametrize("made", ["gl.convert_layout(bias, qk_layout) / scale", "gl.load(bias_ptrs)"])
def test_a_sum_that_is_loaded_or_converted_is_made_above_the_fence(made: str) -> None:
    head = "    fence_async_shared()\n    k = k_buf.index(slot)\n"
    product = "    qk = warpgroup_mma({}, k, {}, is_async=True)\n"
    assert above(f"for i in range(n):\n{head}{product.format('q_smem', made)}") == (
        f"for i in range(n):\n    k = k_buf.index(slot)\n    qk_before_1 = {made}\n    fence_async_shared()\n"
        + product.format("q_smem", "qk_before_1")
    )
    assert above(f"for i in range(n):\n{head}{product.format('q_smem.load(lhs)', made)}") == (
        f"for i in range(n):\n    k = k_buf.index(slot)\n    q_lhs_1 = q_smem.load(lhs)\n    qk_before_1 = {made}\n"
        "    fence_async_shared()\n" + product.format("q_lhs_1", "qk_before_1")
    )


def test_a_sum_that_stays_in_registers_stays_in_its_product() -> None:
    body = "for i in range(n):\n    fence_async_shared()\n    acc = warpgroup_mma(p, v, acc * alpha[:, None])\n"
    assert above(body) == body
