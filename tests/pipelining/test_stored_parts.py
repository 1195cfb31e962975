"""Offsets that stores behind loops write by, a scalar and the rest: those that stay as they are first."""

from __future__ import annotations

import pytest

from tt2gl.pipelining.stored_parts import with_stored_parts

KERNEL = """\
@gluon.jit
def kernel(a_ptr, M, stride, at: gl.constexpr, BLOCK: gl.constexpr):
    pid = gl.program_id(0)
    offs_m = {rows}
    offs_n = gl.arange(0, BLOCK, layout=at)
    acc = gl.zeros([BLOCK, BLOCK], gl.float32, at)
    for k in {span}:
        acc = gl.amd.rdna4.{product}(acc, acc, acc)
    a_offsets = {made}
    gl.amd.cdna3.buffer_store({stored}, mask=offs_m[:, None] < M)
"""

# A loop of two products more.
LOOP = "range(0, M):\n" + "        acc = gl.amd.rdna4.wmma(acc, acc, acc)\n" * 2 + "    for k in "


def written(
    rows: str = "pid * BLOCK + gl.arange(0, BLOCK, layout=at)",
    span: str = "range(0, M)",
    made: str = "offs_m[:, None] * stride + offs_n[None, :]",
    stored: str = "acc, a_ptr, a_offsets",
    product: str = "wmma",
    kernels: tuple[str, ...] = ("kernel",),
) -> tuple[str, str]:
    """The kernel as it is, and as it is written."""
    text = KERNEL.format(rows=rows, span=span, made=made, stored=stored, product=product)
    return text, with_stored_parts(text, kernels)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"rows": "(pid * BLOCK + gl.arange(0, BLOCK, layout=at)) % M"}, id="rows start over"),
        pytest.param({"made": "offs_n[:, None] * stride + offs_n[None, :]"}, id="the same in all programs"),
        pytest.param({"made": "offs_m[:, None] * stride + offs_n[None, :]  # rows"}, id="a comment"),
        pytest.param({"span": "gl.static_range(4)"}, id="no loop is left"),
        pytest.param({"made": "offs_m[:, None] * stride\n    a_offsets += offs_n[None, :]"}, id="made in steps"),
        pytest.param({"stored": "acc, a_ptr + offs_m[:, None]"}, id="pointers"),
        pytest.param({"product": "mfma"}, id="more registers"),
        pytest.param({"span": LOOP + "range(0, M)"}, id="three products"),
        pytest.param({"kernels": ()}, id="another kernel"),
        pytest.param(
            {"rows": "pid * BLOCK + M * gl.arange(0, BLOCK, layout=at)\n    M += 1"}, id="rows of what changes"
        ),
        pytest.param({"rows": "pid * BLOCK + gl.load(a_ptr + offs)"}, id="rows that are loaded"),
    ],
)
def test_offsets_that_stay_as_they_are(given: dict[str, str]) -> None:
    before, after = written(**given)  # type: ignore[arg-type]
    assert after == before


APART = "pid * BLOCK * stride + (gl.arange(0, BLOCK, layout=at)[:, None] * stride + offs_n[None, :])"


def test_offsets_of_a_store_behind_a_loop_are_apart() -> None:
    before, after = written()
    assert after == before.replace("offs_m[:, None] * stride + offs_n[None, :]", APART)


def test_offsets_that_have_no_name() -> None:
    before, after = written(made="0", stored="acc, a_ptr, offs_m[:, None] * stride + offs_n[None, :]")
    assert after == before.replace("offs_m[:, None] * stride + offs_n[None, :]", APART)


def test_offsets_on_several_lines() -> None:
    before, after = written(made="(\n        offs_m[:, None] * stride\n        + offs_n[None, :]\n    )")
    assert APART in after
    assert "offs_m[:, None] * stride" not in after
    assert after.count("mask=offs_m[:, None] < M") == before.count("mask=offs_m[:, None] < M") == 1
    compile(after, "kernel.py", "exec")
