"""The closed formula of coalesced accesses: Triton's own, one that covers its tile, and the same in converted files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.analysis.facts import Access
from tt2gl.analysis.kernel import observe_job
from tt2gl.isolate import map_isolated, preload
from tt2gl.launches import Launch, Options
from tt2gl.layouts import (
    ACCESS_BITS,
    NARROWED_SOURCE,
    PAIRED_SOURCE,
    WIDENED_SOURCE,
    Blocked,
    coalesced,
    coalesced_source,
)
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.targets import get_target

COPY = """
import triton
import triton.language as tl


@triton.jit
def rank1(x_ptr, S0: tl.constexpr, B0: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B0) * S0, 1)


@triton.jit
def rank2(x_ptr, S0: tl.constexpr, S1: tl.constexpr, B0: tl.constexpr, B1: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, B0)[:, None] * S0 + tl.arange(0, B1)[None, :] * S1, 1)


@triton.jit
def rank3(
    x_ptr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr
):
    rows = tl.arange(0, B0)[:, None, None] * S0 + tl.arange(0, B1)[None, :, None] * S1
    tl.store(x_ptr + rows + tl.arange(0, B2)[None, None, :] * S2, 1)
"""

SHAPES = [(128,), (1024,), (4096,), (32, 64), (128, 16), (16, 256), (2, 1024), (64, 64), (8, 16, 32), (4, 4, 256)]

POINTERS = {8: "*i8", 16: "*i16", 32: "*i32", 64: "*i64"}

Case = tuple[tuple[int, ...], int, int, int, str]


def cases() -> list[Case]:
    """Shapes with each dimension the fastest; widths, warps and targets in turn, so that each meets each.

    How the other dimensions follow differs between versions: the pass sorts by contiguity, which is one for all.
    """
    turns = itertools.cycle(itertools.product(POINTERS, (1, 4, 8), ("sm90", "gfx942", "sm80")))
    made: list[Case] = []
    for shape in SHAPES:
        for fastest in range(len(shape)):
            for bits, warps, target in itertools.islice(turns, 5):
                made.append((shape, fastest, bits, warps, target))
    return made


def name_of(case: Case) -> str:
    """A case as an id: `32x64 along 1, 16 bits, 4 warps, sm90`."""
    shape, fastest, bits, warps, target = case
    return f"{'x'.join(map(str, shape))} along {fastest}, {bits} bits, {warps} warps, {target}"


def launch_of(shape: Sequence[int], fastest: int, bits: int, num_warps: int) -> Launch:
    """A launch that stores a tile which is dense along dimension `fastest`."""
    constexprs = {f"B{place}": extent for place, extent in enumerate(shape)}
    # The others are far apart, as rows of a matrix larger than the tile are.
    constexprs |= {f"S{place}": 1 if place == fastest else 4096 << place for place in range(len(shape))}
    signature = {"x_ptr": POINTERS[bits]} | dict.fromkeys(constexprs, "constexpr")
    return Launch("copies.py", f"rank{len(shape)}", signature, constexprs, ("x_ptr",), Options(num_warps=num_warps))


@pytest.fixture(scope="module")
def triton_says(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Access]:
    """What Triton's Coalesce pass makes of each case."""
    path = Path(tmp_path_factory.mktemp("layouts")) / "copies.py"
    path.write_text(COPY)
    source = read_source(path)
    preload()
    jobs = []
    for shape, fastest, bits, warps, target in cases():
        kernel = slice_kernel(source, f"rank{len(shape)}", target=target)
        jobs.append((kernel, launch_of(shape, fastest, bits, warps), target, True))
    found: dict[str, Access] = {}
    for case, outcome in zip(cases(), map_isolated(observe_job, jobs, family=lambda *job: job[2]), strict=True):
        assert outcome.value is not None, outcome.error
        (found[name_of(case)],) = outcome.value.accesses.values()
    return found


def fits(case: Case) -> bool:
    """Whether a tile has an element for every thread; smaller ones take their reader's layout, not the formula's."""
    shape, _, _, warps, target = case
    return math.prod(shape) >= warps * get_target(target).warp_size


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=name_of(case)) for case in cases() if fits(case)])
def test_the_formula_is_that_of_the_coalesce_pass(triton_says: dict[str, Access], case: Case) -> None:
    shape, fastest, bits, warps, target = case
    access = triton_says[name_of(case)]
    expected = Blocked(access.size_per_thread, access.threads_per_warp, access.warps_per_cta, access.order)
    assert access.order[0] == fastest
    assert coalesced(shape, access.order, bits, warps, get_target(target).warp_size) == expected


@st.composite
def tiles(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, int]:
    """A tile's extents, an order, bits, warps and lanes."""
    shape = draw(st.lists(st.integers(0, 11).map(lambda power: 1 << power), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    bits = draw(st.sampled_from([1, 8, 16, 32, 64, 128]))
    return shape, list(order), bits, draw(st.sampled_from([1, 2, 4, 8, 16, 32])), draw(st.sampled_from([32, 64]))


@given(tiles())
def test_every_thread_has_its_place(tile: tuple[list[int], list[int], int, int, int]) -> None:
    shape, order, bits, warps, lanes = tile
    layout = coalesced(shape, order, bits, warps, lanes)
    assert math.prod(layout.threads_per_warp) == lanes
    assert math.prod(layout.warps_per_cta) == warps
    assert layout.order == tuple(order)


@given(tiles())
def test_no_element_is_held_twice_where_there_is_one_for_every_thread(
    tile: tuple[list[int], list[int], int, int, int],
) -> None:
    shape, order, bits, warps, lanes = tile
    layout = coalesced(shape, order, bits, warps, lanes)
    parts = zip(layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, strict=True)
    block = [size * threads * wide for size, threads, wide in parts]
    if math.prod(shape) >= warps * lanes:
        assert all(covered <= extent for covered, extent in zip(block, shape, strict=True))


@given(tiles())
def test_a_thread_holds_at_most_one_access_along_the_fastest_dimension(
    tile: tuple[list[int], list[int], int, int, int],
) -> None:
    shape, order, bits, warps, lanes = tile
    size = coalesced(shape, order, bits, warps, lanes).size_per_thread
    assert size[order[0]] * bits <= ACCESS_BITS
    assert math.prod(size) == size[order[0]]


@pytest.fixture(scope="module")
def written() -> dict[int, Callable[..., Blocked]]:
    """The formula as converted files carry it, by lanes."""

    def blocked(size: list[int], threads: list[int], warps: list[int], order: list[int]) -> Blocked:
        return Blocked(tuple(size), tuple(threads), tuple(warps), tuple(order))

    made: dict[int, Callable[..., Blocked]] = {}
    for lanes in (32, 64):
        names = {
            "gluon": SimpleNamespace(constexpr_function=lambda function: function),
            "gl": SimpleNamespace(BlockedLayout=blocked),
        }
        exec(coalesced_source(lanes), names)
        made[lanes] = names["coalesced"]  # type: ignore[assignment]
    return made


@given(tile=tiles())
def test_converted_files_carry_the_same_formula(
    written: dict[int, Callable[..., Blocked]], tile: tuple[list[int], list[int], int, int, int]
) -> None:
    shape, order, bits, warps, lanes = tile
    assert written[lanes](shape, order, bits, warps) == coalesced(shape, order, bits, warps, lanes)


def test_a_layout_as_source() -> None:
    assert Blocked((1, 8), (4, 8), (4, 1), (1, 0)).source() == "gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])"


def test_a_pair_puts_its_two_elements_in_one_thread() -> None:
    blocked = lambda *parts: tuple(map(tuple, parts))  # noqa: E731
    names = {
        "gluon": SimpleNamespace(constexpr_function=lambda function: function),
        "gl": SimpleNamespace(BlockedLayout=blocked),
    }
    exec(PAIRED_SOURCE, names)
    layout = Blocked((1, 8), (4, 8), (4, 1), (1, 0))
    assert names["paired"](layout) == ((1, 8, 2), (4, 8, 1), (4, 1, 1), (2, 1, 0))  # type: ignore[operator]


def test_what_is_widened_stays_in_its_thread() -> None:
    names = {
        "gluon": SimpleNamespace(constexpr_function=lambda function: function),
        "gl": SimpleNamespace(BlockedLayout=Blocked),
    }
    exec(WIDENED_SOURCE, names)
    layout = Blocked((1, 8), (4, 8), (4, 1), (1, 0))
    made = names["widened"](layout, 1, 4)  # type: ignore[operator]
    assert made == Blocked([1, 32], (4, 8), (4, 1), (1, 0))  # type: ignore[arg-type]


def test_what_is_narrowed_stays_in_its_thread() -> None:
    names = {
        "gluon": SimpleNamespace(constexpr_function=lambda function: function),
        "gl": SimpleNamespace(BlockedLayout=Blocked),
    }
    exec(NARROWED_SOURCE, names)
    layout = Blocked((1, 8), (4, 8), (4, 1), (1, 0))
    made = names["narrowed"](layout, 1, 4)  # type: ignore[operator]
    assert made == Blocked([1, 2], (4, 8), (4, 1), (1, 0))  # type: ignore[arg-type]
