"""Prologues whose offsets are a scalar and what a tile adds to it: those that stay as they are first."""

from __future__ import annotations

import pytest

from tt2gl.pipelining.uniform_parts import with_uniform_parts

KERNEL = """\
@gluon.jit
def kernel(a_ptr, M, stride, at: gl.constexpr, BLOCK: gl.constexpr, STAGES: gl.constexpr):
    pid = gl.program_id(0)
    offs_m = {rows}
    offs_k = gl.arange(0, BLOCK, layout=at)
    a_offsets = {made}
    {more}
    for k in gl.static_range({span}):
        if k > 0:
            a_offsets += {step}
        a_held = gl.amd.cdna3.buffer_load(a_ptr, a_offsets)
    for k in range(0, M):
        a_offsets += {step}
        a_held = gl.amd.cdna3.buffer_load(a_ptr, a_offsets)
"""


def written(
    rows: str = "pid * BLOCK + gl.arange(0, BLOCK, layout=at)",
    made: str = "offs_m[:, None] * stride + offs_k[None, :]",
    more: str = "pass",
    span: str = "STAGES - 1",
    step: str = "BLOCK",
    load: str = "gl.amd.cdna3.buffer_load(a_ptr, a_offsets)",
    kernels: tuple[str, ...] = ("kernel",),
) -> tuple[str, str]:
    """The kernel as it is, and as it is written."""
    text = KERNEL.format(rows=rows, made=made, more=more, span=span, step=step)
    text = text.replace("gl.amd.cdna3.buffer_load(a_ptr, a_offsets)", load)
    return text, with_uniform_parts(text, kernels)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"rows": "(pid * BLOCK + gl.arange(0, BLOCK, layout=at)) % M"}, id="rows start over"),
        pytest.param({"made": "offs_k[:, None] * stride + offs_k[None, :]"}, id="the same in all programs"),
        pytest.param({"more": "a_offsets += M"}, id="it goes on before"),
        pytest.param({"more": "gl.store(a_ptr, a_offsets)"}, id="it is read before"),
        pytest.param({"step": "offs_k[None, :]"}, id="the step is a tensor"),
        pytest.param({"step": "gl.load(a_ptr)"}, id="the step is loaded"),
        pytest.param({"made": "offs_m[:, None] * stride + offs_k[None, :]  # rows"}, id="a comment"),
        pytest.param({"span": "1, STAGES"}, id="not counted from zero"),
        pytest.param({"load": "gl.load(a_offsets)"}, id="pointers"),
        pytest.param({"more": "pid += 1"}, id="what a scalar is made of changes"),
        pytest.param(
            {"rows": "some\n    some, offs_m = 1, pid * BLOCK + f(some)"}, id="a tuple that changes what it reads"
        ),
        pytest.param({"made": "f(stride)[:, None] + (BLOCK + g(M)[None, :])"}, id="sums that may have few bits"),
        pytest.param({"kernels": ()}, id="another kernel"),
    ],
)
def test_prologues_that_stay_as_they_are(given: dict[str, str]) -> None:
    before, after = written(**given)  # type: ignore[arg-type]
    assert after == before


@pytest.mark.parametrize(
    ("given", "base", "rest", "step"),
    [
        (
            {},
            "pid * BLOCK * stride",
            "gl.arange(0, BLOCK, layout=at)[:, None] * stride + offs_k[None, :]",
            "(k - 1) * BLOCK",
        ),
        (
            {"made": "(offs_m[:, None] + M) * stride + offs_k[None, :]", "step": "BLOCK + stride"},
            "(pid * BLOCK + M) * stride",
            "gl.arange(0, BLOCK, layout=at)[:, None] * stride + offs_k[None, :]",
            "(k - 1) * (BLOCK + stride)",
        ),
        (
            {"made": "offs_k[:, None] * stride + offs_m[None, :]", "span": "0, (STAGES - 1) * BLOCK, BLOCK"},
            "pid * BLOCK",
            "offs_k[:, None] * stride + gl.arange(0, BLOCK, layout=at)[None, :]",
            "(k // BLOCK - 1) * BLOCK",
        ),
    ],
)
def test_a_prologue_adds_its_steps_to_a_scalar(given: dict[str, str], base: str, rest: str, step: str) -> None:
    _, after = written(**given)  # type: ignore[arg-type]
    assert f"    a_offsets_base = {base}\n    a_offsets_rest = {rest}\n" in after, after
    by = written(**given)[0].split("a_offsets += ")[1].split("\n")[0]  # type: ignore[arg-type]
    assert (
        "        a_offsets = a_offsets_base + a_offsets_rest\n        if k > 0:\n"
        f"            a_offsets = a_offsets_base + {step} + (a_offsets_rest + {by})\n"
    ) in after, after
    assert after.count("a_offsets += ") == 1


def test_what_a_tuple_gives_is_followed_but_for_what_it_reads_itself() -> None:
    before, _ = written()
    rows = "pid * BLOCK + gl.arange(0, BLOCK, layout=at)"
    text = before.replace(f"offs_m = {rows}", f"start, offs_m = pid.to(gl.int64), {rows}")
    assert "    a_offsets_base = pid * BLOCK * stride\n" in with_uniform_parts(text, ("kernel",))
    swapped = text.replace("start, offs_m = pid.to(gl.int64)", "pid, offs_m = pid + 1")
    assert with_uniform_parts(swapped, ("kernel",)) == swapped


def test_other_steps_of_a_prologue_stay() -> None:
    more = "b = a_ptr"
    before, _ = written(more=more)
    text = before.replace(
        "            a_offsets += BLOCK\n", "            a_offsets += BLOCK\n            b += BLOCK\n", 1
    )
    after = with_uniform_parts(text, ("kernel",))
    assert (
        "        a_offsets = a_offsets_base + a_offsets_rest\n        if k > 0:\n            a_offsets = " in after
    ), after
    assert "            b += BLOCK\n" in after
