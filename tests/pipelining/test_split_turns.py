"""Loops each turn of which does halves of two iterations, run as Python beside the author's."""

from __future__ import annotations

import ast
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest

from tt2gl.pipeline import LoopRings, Ring, pipelined

HEAD = "@gluon.jit\ndef kernel(k_ptr, v_ptr, q, n, m_i, l_i, acc, STEP: gl.constexpr, FLAG: gl.constexpr):\n"

ATTENTION = """
for i in range(0, n, STEP):
    k = _tt2gl_ring_k(k_ptr + i, mask=i < n).load(one)
    qk = mfma(q, k, gl.zeros([8], gl.float32, one)) * 3
    if FLAG:
        qk += i
    m_new = gl.maximum(m_i, qk)
    p = qk - m_new
    alpha = m_i - m_new
    l_i = l_i * alpha + p
    acc = acc * alpha
    v = _tt2gl_ring_v(v_ptr + i, mask=i < n).load(other)
    acc = mfma(p.to(v.dtype), v, acc)
    m_i = m_new
"""

STEPPED = """
for i in range(0, n, STEP):
    k = _tt2gl_ring_k(k_ptr, mask=i < n).permute((1, 0)).load(one)
    qk = mfma(q, k, gl.zeros([8], gl.float32, one))
    p = qk * 2
    l_i += p
    v = _tt2gl_ring_v(v_ptr, mask=i < n).load(other)
    acc = mfma(p, v, acc)
    q += 1
    k_ptr += STEP
    v_ptr += 2 * STEP
"""


def written(body: str, *, split: bool = True) -> str:
    rings = tuple(Ring(name, "t", ("8",), "shared", False, registers=True, split=split) for name in "kv")
    text = HEAD + textwrap.indent(body, "    ")
    made = pipelined(text, [LoopRings("kernel", 2, rings, "2 - 1")], "copy")
    ast.parse(made)
    return textwrap.dedent(made.removeprefix(HEAD))


class Number(float):
    """A tile of one element."""

    def to(self, dtype: object) -> Number:
        return self

    def __add__(self, other: float) -> Number:
        return Number(float(self) + other)

    def __sub__(self, other: float) -> Number:
        return Number(float(self) - other)

    def __mul__(self, other: float) -> Number:
        return Number(float(self) * other)


class Slot:
    """The one slot of a ring."""

    dtype = None
    tile = Number(float("nan"))

    def index(self, place: int) -> Slot:
        assert place == 0
        return self

    def permute(self, order: tuple[int, ...]) -> Slot:
        assert order == (1, 0)
        return self

    def store(self, tile: Number) -> None:
        self.tile = tile

    def load(self, layout: object = None) -> Number:
        return self.tile

    def _keep_alive(self) -> None:
        pass


class Tile(Number):
    """A tile that was loaded from memory, or is read from a ring."""

    dtype = None

    def permute(self, order: tuple[int, ...]) -> Tile:
        return self

    def load(self, layout: object) -> Tile:
        return self


def run(body: str, n: int, *, flag: bool) -> list[float]:
    """What a body leaves of its sums; loads where there is no iteration fail."""

    def load(place: int, mask: bool = True) -> Number:
        if not mask:
            return Number(0)
        assert 0 <= place < 2 * n
        return Tile(place * place % 7 + 1)

    gl = SimpleNamespace(
        load=load, maximum=lambda a, b: Number(max(a, b)) if isinstance(a, Number) else max(a, b),
        zeros=lambda *_: Number(0), cdiv=lambda a, b: -(-a // b), static_range=range, to_tensor=lambda value: value,
        where=lambda test, a, b: a if test else b, allocate_shared_memory=lambda *_: Slot(), float32=None,
    )  # fmt: skip
    names: dict[str, Any] = {
        "gl": gl, "mfma": lambda a, b, c: Number(a * b + c), "k_ptr": 0, "v_ptr": 0, "q": Number(2), "n": n,
        "m_i": Number(-9), "l_i": Number(1), "acc": Number(1), "STEP": 2, "FLAG": flag, "one": None, "other": None,
        "shared": None, "t": None, "_tt2gl_ring_k": load, "_tt2gl_ring_v": load,
    }  # fmt: skip
    exec(compile(body, "body", "exec"), names)
    return [names[name] for name in ("l_i", "acc", "m_i")]


@pytest.mark.parametrize("body", [ATTENTION, STEPPED])
@pytest.mark.parametrize("flag", [False, True])
def test_they_compute_what_the_author_does_however_few_iterations_there_are(body: str, flag: bool) -> None:
    made = written(body)
    assert "for s in gl.static_range(3)" in made
    for n in range(12):
        assert run(made, n, flag=flag) == run(body, n, flag=flag), n


def test_a_product_stands_beside_the_reads_and_loads_of_the_others_tile() -> None:
    made = written(ATTENTION)
    loop = made[made.index("for i in range(0, drain, STEP)") :]
    order = ["qk = mfma(q, k,", "l_i =", "acc = acc * alpha", "k_buf.index(0).store(k_next)", "v = v_buf.index(0)"]
    order += ["ahead = i + 3 * STEP", "k_next =", "acc = mfma(p.to(v_buf.dtype), v, acc)", "m_i = m_new", "p ="]
    order += ["v_buf.index(0).store(v_next)", "k = k_buf.index(0)", "ahead = i + 2 * STEP", "v_next ="]
    assert [loop.index(each) for each in order] == sorted(loop.index(each) for each in order)


def test_pointers_step_from_tile_to_tile_and_tiles_are_turned_in_memory() -> None:
    made = written(STEPPED)
    assert "    k_ptr += STEP\n    k_next = gl.load(k_ptr, mask=ahead < n)\n" in made
    assert made.count("k = k_buf.index(0).permute((1, 0)).load(one)\n") == 4


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (
            "    m_i = m_new",
            "    m_i = m_new\n    q = acc",
        ),  # the first product needs the second
        ("    m_i = m_new", "    gl.store(k_ptr, m_new)"),  # what others load may be what is stored
        ("    l_i = l_i * alpha + p", "    l_i = l_i * alpha + p + qk"),  # made anew before it is read
        ("    acc = mfma(p.to(v.dtype), v, acc)", "    acc = mfma(q, v, acc)"),  # nothing of the first is needed
    ],
)
def test_what_cannot_be_parted_has_loads_one_iteration_ahead(line: str, instead: str) -> None:
    made = written(ATTENTION.replace(line, instead))
    assert "static_range(3)" not in made
    assert "k_next" in made


def test_nothing_is_parted_that_triton_does_not() -> None:
    assert "static_range(3)" not in written(ATTENTION, split=False)
