"""Padded LDS, and who copies there directly: read from Triton's encodings, written as one text for several launches."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dots.written import frozen, names
from tt2gl.formulas import Tile, Width
from tt2gl.ir.attributes import DialectAttr
from tt2gl.padded_layouts import (
    DIRECT_SOURCE,
    SPACED_SOURCE,
    STAGGERED_SOURCE,
    Padded,
    direct,
    direct_source,
    padded_source,
    read_padded,
    spaced,
    staggered,
)
from tt2gl.tensor_memory_layouts import Bases, Linear

# As Triton 3.9 prints what it makes of matmuls for gfx950: shape, order, bits, dimension of K, rows of one
# instruction, padding, and the rows that are written side by side, one of each wave's, and by later turns.
A_32 = (((128, 32), (1, 0), 16, 1, 8, 32), 8, [[4, 0], [8, 0], [16, 0], [32, 0], [1, 0], [2, 0], [64, 0]])
B_128 = (((32, 128), (1, 0), 16, 0, 8, 32), 32, [[4, 0], [8, 0], [1, 0], [2, 0], [16, 0]])
A_64 = (((128, 64), (1, 0), 16, 1, 8, 32), 8, [[64, 0], [32, 0], [16, 0], [1, 0], [2, 0], [4, 0], [8, 0]])
B_TURNED = (((32, 64), (0, 1), 16, 0, 8, 32), 8, [[0, 4], [0, 8], [0, 16], [0, 32], [0, 1], [0, 2]])


def without_last(dim: int, layout: Linear) -> Linear:
    assert (dim, layout.shape[2:]) == (2, (1,))

    def flat(part: Bases) -> Bases:
        assert all(basis[2:] == (0,) for basis in part)
        return tuple(basis[:2] for basis in part)

    return Linear(flat(layout.registers), flat(layout.lanes), flat(layout.warps), (), layout.shape[:2])


def with_padding(num_warps: int, *helpers: str) -> dict[str, Any]:
    made = names(num_warps, helpers)

    def identity(pairs: Any, shape: Any, order: Any) -> Padded:
        steps = [(dim, 1 << bit) for dim in order for bit in range(shape[dim].bit_length() - 1)]
        bases = tuple(tuple(step if place == dim else 0 for place in range(len(shape))) for dim, step in steps)
        return Padded(frozen(pairs), bases, frozen(shape))

    def padded(pairs: Any, bases: Any, programs: Any, shape: Any) -> Padded:
        assert programs == []
        found = Padded(frozen(pairs), frozen(bases), frozen(shape))
        # Gluon's own has lists.
        return SimpleNamespace(offset_bases=bases, shape=shape, value=found)  # type: ignore[return-value]

    padded.with_identity_for = identity  # type: ignore[attr-defined]
    made["gl"].PaddedSharedLayout = padded
    made["gl"].SliceLayout = without_last
    return made


def test_other_encodings_and_tiles_of_several_programs_are_not_read() -> None:
    shared = DialectAttr("ttg.swizzled_shared", (("vec", 8),))
    several = DialectAttr("ttg.padded_shared", (("0", ((512, 8),)), ("offset", ()), ("block", ((1, 0),))))
    assert [read_padded(each, (4, 4)) for each in (shared, several, None)] == [None] * 3


@pytest.mark.parametrize("case", [((32, 32), 16, 32), ((16, 64), 8, 32), ((16, 32), 16, 32), ((64, 64), 32, 16)])
def test_small_tiles_and_wide_elements_have_no_such_layout(case: tuple[tuple[int, int], int, int]) -> None:
    shape, bits, rows = case
    assert staggered(shape, (1, 0), bits, 1, 128 // bits, rows) is None


@pytest.mark.parametrize("case", [A_32, B_128, A_64, B_TURNED])
def test_staggered_memory_is_tritons(case: tuple[tuple[Any, ...], int, list[list[int]]]) -> None:
    given, padding, rows = case
    shape, (fast, _) = given[0], given[1]
    columns = [[0, 0] for _ in range(shape[fast].bit_length() - 1)]
    for bit, column in enumerate(columns):
        column[fast] = 1 << bit
    made = staggered(*given)
    assert made == Padded(((512, padding),), frozen([*columns, *rows]), shape)


def test_read_and_written_both_ways() -> None:
    plain = DialectAttr("ttg.padded_shared", (("0", ((128, 8),)), ("order", (1, 0)), ("shape", (2, 4))))
    found = read_padded(plain, (2, 4))
    assert found == Padded(((128, 8),), ((0, 1), (0, 2), (1, 0)), (2, 4))
    assert found.source() == "gl.PaddedSharedLayout.with_identity_for([[128, 8]], [2, 4], [1, 0])"
    moved = DialectAttr("ttg.padded_shared", (("0", ((4, 2),)), ("offset", ((0, 1), (1, 0), (0, 2))), ("block", ())))
    found = read_padded(moved, (2, 4))
    assert found is not None
    assert found.source() == "gl.PaddedSharedLayout([[4, 2]], [[0, 1], [1, 0], [0, 2]], [], [2, 4])"


def test_converted_files_carry_the_same_formulas() -> None:
    made = with_padding(4, STAGGERED_SOURCE, SPACED_SOURCE, DIRECT_SOURCE)
    extents, seen = (16, 32, 64, 128, 256), 0
    for shape in itertools.product(extents, extents):
        for order, bits, k_dim in itertools.product(((1, 0), (0, 1)), (8, 16), (0, 1)):
            assert made["spaced_layout"](list(shape), order, bits, k_dim=k_dim) == spaced(shape, order, bits, k_dim)
            for rows, wide in itertools.product((16, 32), (128, 64)):
                given = (order, bits, k_dim, wide // bits, rows)
                expected = staggered(shape, *given)
                if expected is None:
                    continue
                seen += 1
                assert sorted(map(sum, expected.offset_bases)) == sorted(
                    1 << bit for extent in shape for bit in range(extent.bit_length() - 1)
                )
                there = made["staggered_layout"](list(shape), *given)
                assert there.value == expected
                assert made["direct_layout"](there, 128 // bits, 4) == direct(expected, 128 // bits, 4)
    assert seen > 200


def test_waves_write_side_by_side_and_idle_ones_what_others_write() -> None:
    shared = staggered((16, 64), (1, 0), 16, 0, 8, 16)
    assert shared is not None
    layout = direct(shared, 8, 4)
    assert (layout.registers, layout.lanes) == (shared.offset_bases[:3], shared.offset_bases[3:9])
    assert layout.warps == (*shared.offset_bases[9:], (0, 0))


def test_one_text_for_launches_of_other_tiles_and_types() -> None:
    tile = Tile(("M", "K"), ((128, 32), (128, 64), (128, 128)))
    width = Width("a_ptr.dtype.element_ty.primitive_bitwidth", (16, 16, 8))
    values = [
        staggered(shape, (1, 0), bits, 1, 128 // bits, 32)
        for shape, bits in zip(tile.shapes, width.values, strict=True)
    ]
    known = [value for value in values if value is not None]
    assert len(set(known)) == 3
    found = padded_source(known, tile, [Width("16", (16,) * 3), width])
    parts = f"[M, K], [1, 0], {width.source}, k_dim=1, k_width=128 // {width.source}, rows=32"
    assert (found.source, found.exact) == (f"staggered_layout({parts})", True)
    for bits in (128, 32):
        copied = [direct(value, bits // each, 4) for value, each in zip(known, width.values, strict=True)]
        made = direct_source(copied, tile, [width], [4] * 3)
        assert (made.exact, f", {bits} // " in made.source.split("rows=")[1]) == (True, True)
        assert made.helpers == (STAGGERED_SOURCE, DIRECT_SOURCE)


def test_the_padding_of_wmma() -> None:
    values = [spaced((128, 32), (1, 0), 16, 0)]
    assert values[0].paddings == ((128, 16),)
    found = padded_source(values, Tile(("M", "K"), ((128, 32),)), [Width("16", (16,))])
    assert (found.source, found.helpers) == ("spaced_layout([M, K], [1, 0], 16, k_dim=0)", (SPACED_SOURCE,))
