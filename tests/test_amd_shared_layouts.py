"""Layouts of LDS: the numbers of Triton's passes, and the helpers that give the same in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tt2gl.amd_shared_layouts import (
    BANKED_SOURCE,
    IN_THREADS_SOURCE,
    ROTATING_SOURCE,
    SharedLinear,
    banked,
    banked_source,
    is_turned,
    read_rotating,
    rotating,
    rotating_source,
    turned_in_threads,
)
from tt2gl.formulas import Tile, Width
from tt2gl.ir.attributes import DialectAttr
from tt2gl.layouts import COALESCED_BLOCKS_SOURCE, Blocked, coalesced_blocks, coalesced_source
from tt2gl.shared_layouts import Swizzled

BITS = Width("a.bits", (16, 16))


def blocked(size: Sequence[int], lanes: Sequence[int], warps: Sequence[int]) -> DialectAttr:
    parts = {"sizePerThread": size, "threadsPerWarp": lanes, "warpsPerCTA": warps, "order": (1, 0)}
    return DialectAttr("ttg.blocked", tuple((name, tuple(value)) for name, value in parts.items()))


def linear(register: Any, lane: Any, warp: Any) -> DialectAttr:
    return DialectAttr("ttg.linear", (("register", register), ("lane", lane), ("warp", warp), ("block", ())))


# A tile of 32x128 halves on gfx942, with four waves: as loaded, as stored.
LOADED = blocked((2, 8), (4, 16), (4, 1))
STORED = linear(
    ((1, 0), (0, 1), (0, 2), (0, 4)),
    ((0, 8), (0, 16), (0, 32), (0, 64), (2, 0), (4, 0)),
    ((8, 0), (16, 0)),
)


class _Words:
    """Stands in for Gluon in helpers: blocked layouts are values, others the arguments that they are made of."""

    @staticmethod
    def BlockedLayout(*parts: Sequence[int]) -> Blocked:
        return Blocked(*(tuple(part) for part in parts))

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: (name, *arguments)


def helper(name: str, *sources: str) -> Any:
    """A helper of a converted file."""
    names: dict[str, Any] = {
        "gl": _Words(),
        "gluon": type("gluon", (), {"constexpr_function": lambda function: function}),
    }
    for source in sources:
        exec(source, names)
    return names[name]


# ------------------------------------------------------------------------------------------------- what is none


def test_other_encodings_are_not_rotating() -> None:
    parts = (("vec", 4), ("perPhase", 2), ("maxPhase", 8), ("order", (0, 1)))
    assert read_rotating(DialectAttr("ttg.swizzled_shared", parts), (32, 128)) is None
    assert read_rotating(None, (32, 128)) is None


def test_a_tile_that_is_stored_as_it_is_loaded_is_not_turned() -> None:
    assert not is_turned(LOADED, None, (32, 128))
    assert not is_turned(LOADED, linear(((0, 1), (0, 2), (0, 4), (1, 0)), (), ()), (32, 128))
    assert not is_turned(STORED, STORED, (32, 128))


# ---------------------------------------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize(
    ("shape", "order", "vec", "banks", "expected"),
    [
        ((128, 32), (1, 0), 4, 32, (4, 2, 8)),
        ((128, 32), (1, 0), 8, 64, (8, 4, 4)),
        ((32, 128), (1, 0), 8, 64, (8, 1, 16)),
        ((128, 32), (1, 0), 8, 32, (8, 2, 4)),
    ],
)
def test_banks(
    shape: tuple[int, int], order: tuple[int, int], vec: int, banks: int, expected: tuple[int, int, int]
) -> None:
    assert banked(shape, order, 16, vec, banks) == Swizzled(*expected, order)
    assert helper("banked_layout", BANKED_SOURCE)(shape, order, 16, vec, banks) == (
        "SwizzledSharedLayout",
        *expected,
        order,
    )


def test_a_text_for_tiles_of_several_sizes() -> None:
    tile = Tile(("M", "K"), ((128, 32), (64, 64)))
    values = [Swizzled(4, 2, 8, (1, 0)), Swizzled(4, 1, 16, (1, 0))]
    found = banked_source(values, tile, [BITS])
    assert (found.source, found.helpers, found.exact) == (
        "banked_layout([M, K], [1, 0], a.bits, 4)",
        (BANKED_SOURCE,),
        True,
    )


def test_rotating_memory() -> None:
    parts = (("vec", 4), ("perPhase", 1), ("maxPhase", 16), ("order", (0, 1)))
    read = read_rotating(DialectAttr("ttg.amd_rotating_shared", parts), (64, 128))
    assert read == rotating((64, 128), (0, 1), 16, 4)
    # Columns of 64 halves; the 16th row begins one piece further, as its block does.
    assert read is not None
    assert read.offset_bases[:6] == tuple((1 << bit, 0) for bit in range(6))
    assert read.offset_bases[6:] == ((4, 1), (8, 2), (16, 4), (32, 8), (4, 16), (8, 32), (16, 64))
    made = helper("rotating_layout", ROTATING_SOURCE)((64, 128), (0, 1), 16, 4)
    assert made == ("SharedLinearLayout", [list(basis) for basis in read.offset_bases])
    found = rotating_source([read], [(0, 1)], Tile(("64", "N"), ((64, 128),)), [Width("a.bits", (16,))])
    assert (found.source, found.exact) == ("rotating_layout([64, N], [0, 1], a.bits, 4)", True)
    assert SharedLinear(((1, 0),)).source() == "gl.SharedLinearLayout([[1, 0]])"


def test_elements_turned_in_their_threads() -> None:
    assert is_turned(LOADED, STORED, (32, 128))
    layout = coalesced_blocks((32, 128), (1, 0), 16, 4, 64)
    assert layout == Blocked((2, 8), (4, 16), (4, 1), (1, 0))
    found = turned_in_threads(layout, (32, 128))
    made = helper("turned_in_threads_layout", IN_THREADS_SOURCE)(layout, (32, 128))
    bases = [[list(basis) for basis in part] for part in (found.registers, found.lanes, found.warps)]
    assert made == ("DistributedLinearLayout", *bases, [], (32, 128))
    assert helper("turned_in_threads_layout", IN_THREADS_SOURCE)("an operand's", (32, 128)) == "an operand's"


@pytest.mark.parametrize(("shape", "size"), [((64, 128), [4, 8]), ((64, 64), [2, 8]), ((16, 128), [1, 8])])
def test_rows_of_a_thread(shape: tuple[int, int], size: list[int]) -> None:
    assert coalesced_blocks(shape, (1, 0), 16, 4, 64).size_per_thread == tuple(size)
    made = helper("coalesced_blocks", coalesced_source(64), COALESCED_BLOCKS_SOURCE)(shape, (1, 0), 16, 4)
    assert made == coalesced_blocks(shape, (1, 0), 16, 4, 64)


def test_rows_of_a_thread_whose_accesses_are_narrower_than_its_elements_would_have_them() -> None:
    one_by_one = coalesced_blocks((32, 64), (1, 0), 128, 4, 64, column_bits=16)
    assert one_by_one == Blocked((4, 1), (1, 64), (4, 1), (1, 0))
    made = helper("coalesced_blocks", coalesced_source(64), COALESCED_BLOCKS_SOURCE)
    assert made((32, 64), (1, 0), 128, 4, column_bits=16) == one_by_one
