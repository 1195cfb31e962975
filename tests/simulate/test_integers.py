"""Integers wrap, divide and shift as the hardware's; against Python's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.operations import I1, I8, I16, I32, I64, apply, of
from tt2gl.ir.types import IntegerType

pytestmark = pytest.mark.once

WIDTHS = [I8, I16, I32, I64]


def signed(value: int, width: int) -> int:
    """A value wrapped to a signed integer of a width."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def quotient(a: int, b: int) -> int:
    """Towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def in_pairs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs."""
    return list(zip(values[::2], values[1::2], strict=True))


# Of signed operands, unsigned ones and the width.
BINARY: dict[str, Callable[[int, int, int, int, int], int]] = {
    "addi": lambda a, b, ua, ub, w: a + b,
    "subi": lambda a, b, ua, ub, w: a - b,
    "muli": lambda a, b, ua, ub, w: a * b,
    "divsi": lambda a, b, ua, ub, w: quotient(a, b) if b else -1,
    "divui": lambda a, b, ua, ub, w: ua // ub if b else -1,
    "ceildivsi": lambda a, b, ua, ub, w: -(-a // b) if b else -1,
    "ceildivui": lambda a, b, ua, ub, w: -(-ua // ub) if b else -1,
    "floordivsi": lambda a, b, ua, ub, w: a // b if b else -1,
    "remsi": lambda a, b, ua, ub, w: a - quotient(a, b) * b if b else a,
    "remui": lambda a, b, ua, ub, w: ua % ub if b else a,
    "andi": lambda a, b, ua, ub, w: a & b,
    "ori": lambda a, b, ua, ub, w: a | b,
    "xori": lambda a, b, ua, ub, w: a ^ b,
    "shli": lambda a, b, ua, ub, w: a << ub if ub < w else 0,
    "shrsi": lambda a, b, ua, ub, w: a >> min(ub, w - 1),
    "shrui": lambda a, b, ua, ub, w: ua >> ub if ub < w else 0,
    "minsi": lambda a, b, ua, ub, w: min(a, b),
    "maxsi": lambda a, b, ua, ub, w: max(a, b),
    "minui": lambda a, b, ua, ub, w: min(ua, ub),
    "maxui": lambda a, b, ua, ub, w: max(ua, ub),
}


@pytest.mark.parametrize("kind", WIDTHS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operations(name: str, kind: IntegerType) -> None:
    least = -(1 << kind.width - 1)
    edges = [0, 1, -1, 2, -2, least, least + 1, -least - 1, kind.width - 1, kind.width, kind.width + 1]
    random = [signed(int(value), kind.width) for value in np.random.default_rng(0).integers(0, 1 << 62, 400) * 5]
    pairs = [*product(edges, edges), *in_pairs(random), *product(random[:40], edges)]
    a, b = (of(kind, *side) for side in zip(*pairs, strict=True))
    found = apply(f"arith.{name}", a, b, types=[kind, kind], results=[kind])
    mask = (1 << kind.width) - 1
    expected = [signed(BINARY[name](x, y, x & mask, y & mask, kind.width), kind.width) for x, y in pairs]
    assert found.dtype == a.dtype
    assert found.tolist() == expected


@pytest.mark.parametrize("name", BINARY)
def test_a_boolean_is_an_integer_of_one_bit(name: str) -> None:
    a, b = of(I1, 0, 0, 1, 1), of(I1, 0, 1, 0, 1)
    found = apply(f"arith.{name}", a, b, types=[I1, I1], results=[I1])
    # Signed, a true bit is -1; a shift by one bit or more shifts everything out.
    expected = [BINARY[name](-x, -y, x, y, 1) & 1 for x, y in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert found.dtype == bool
    assert found.tolist() == [bool(value) for value in expected]


@pytest.mark.parametrize("kind", [I1, *WIDTHS], ids=str)
@given(data=st.data())
def test_comparisons(kind: IntegerType, data: st.DataObject) -> None:
    whole = st.integers(-(1 << kind.width - 1), (1 << kind.width - 1) - 1)
    x, y = data.draw(whole), data.draw(whole)
    u, v = x & (1 << kind.width) - 1, y & (1 << kind.width) - 1
    expected = [x == y, x != y, x < y, x <= y, x > y, x >= y, u < v, u <= v, u > v, u >= v]
    a, b = of(kind, x), of(kind, y)
    found = [apply("arith.cmpi", a, b, types=[kind] * 2, results=[I1], predicate=n)[0] for n in range(10)]
    assert found == expected


@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
def test_upper_halves_of_products(a: int, b: int) -> None:
    for kind in (I32, I64):
        x, y = signed(a, kind.width), signed(b, kind.width)
        mask = (1 << kind.width) - 1
        p, q = of(kind, x), of(kind, y)
        unsigned_high = signed((x & mask) * (y & mask) >> kind.width, kind.width)
        assert apply("tt.mulhiui", p, q, types=[kind] * 2, results=[kind]).tolist() == [unsigned_high]
        low, high = apply("arith.mulsi_extended", p, q, types=[kind] * 2, results=[kind] * 2)
        assert (low[0], high[0]) == (signed(x * y, kind.width), signed(x * y >> kind.width, kind.width))
        low, high = apply("arith.mului_extended", p, q, types=[kind] * 2, results=[kind] * 2)
        assert (low[0], high[0]) == (signed(x * y, kind.width), unsigned_high)
        total, over = apply("arith.addui_extended", p, q, types=[kind] * 2, results=[kind, I1])
        assert (total[0], bool(over[0])) == (signed(x + y, kind.width), (x & mask) + (y & mask) > mask)


def test_extension_and_truncation() -> None:
    bytes_ = of(I8, -1, 5)
    assert apply("arith.extsi", bytes_, types=[I8], results=[I32]).tolist() == [-1, 5]
    assert apply("arith.extui", bytes_, types=[I8], results=[I32]).tolist() == [255, 5]
    assert apply("arith.trunci", of(I32, 0x1FF, 5), types=[I32], results=[I8]).tolist() == [-1, 5]
    assert apply("arith.trunci", of(I32, 2, 5), types=[I32], results=[I1]).tolist() == [False, True]
    assert apply("arith.extsi", of(I1, 1, 0), types=[I1], results=[I64]).tolist() == [-1, 0]
    assert apply("arith.extui", of(I1, 1, 0), types=[I1], results=[I64]).tolist() == [1, 0]
    assert apply("arith.index_cast", of(I32, -3), types=[I32], results=[I64]).tolist() == [-3]
    assert apply("math.absi", of(I32, -3, -(2**31)), types=[I32], results=[I32]).tolist() == [3, -(2**31)]


def test_a_common_divisor_gives_what_an_array_of_it_gives() -> None:
    a = np.random.default_rng(0).integers(-(2**31), 2**31, 1000).astype(np.int32)
    for name in ("divsi", "divui", "remsi", "remui", "floordivsi"):
        for divisor in (1, 7, -7, 64, -(2**31)):
            one = apply(f"arith.{name}", a, of(I32, divisor), types=[I32] * 2, results=[I32])
            many = apply(f"arith.{name}", a, np.full(1000, divisor, np.int32), types=[I32] * 2, results=[I32])
            assert np.array_equal(one, many), (name, divisor)
