from __future__ import annotations

import itertools
import math
import random

import pytest

from tests.report.page.samples import BLOCKED, SWIZZLED
from tt2gl.report.page.places import Bases, places_of


def test_bases_that_reach_too_little_have_no_places() -> None:
    assert places_of({"reg": ((0, 1),), "lane": ((0, 2),)}, (2, 4)) is None
    assert places_of({"reg": ((1,),), "lane": ((1,),)}, (4,)) is None


def placed(bases: Bases, found: dict[str, int], rank: int) -> tuple[int, ...]:
    """The element that registers, lanes and so on hold: the linear layout itself."""
    total = [0] * rank
    for name, each in bases.items():
        for bit, basis in enumerate(each):
            if found[name] >> bit & 1:
                total = [have ^ part for have, part in zip(total, basis, strict=True)]
    return tuple(total)


@pytest.mark.parametrize("seed", range(20))
def test_an_element_is_where_the_bases_put_it(seed: int) -> None:
    generator = random.Random(seed)
    shape = generator.choice([(16,), (8, 4), (2, 4, 8), (1, 32)])
    bits = int(math.log2(math.prod(shape)))
    bases: dict[str, list[tuple[int, ...]]] = {"reg": [], "lane": [], "warp": []}
    # Random bases, which may depend on each other; more than bits, so that most reach all.
    for _ in range(bits + 3):
        bases[generator.choice(list(bases))].append(tuple(generator.randrange(extent) for extent in shape))
    places = places_of(bases, shape)
    reached = {
        placed(bases, dict(zip(bases, combination, strict=True)), len(shape))
        for combination in itertools.product(*(range(1 << len(each)) for each in bases.values()))
    }
    assert (places is None) == (len(reached) < math.prod(shape))
    if places is not None:
        assert places.copies == 1 << 3
        for element in itertools.product(*map(range, shape)):
            assert placed(bases, places.where(element), len(shape)) == element


def test_neighbours_in_one_warp() -> None:
    places = places_of(BLOCKED.bases, BLOCKED.shape)
    assert places is not None
    assert (places.granule("warp", 0), places.granule("warp", 1)) == (4, 32)
    assert places.copies == 1
    assert places.where((5, 6)) == {"reg": 2, "lane": 9, "warp": 1, "block": 0}


def test_offsets_of_a_swizzled_tile() -> None:
    places = places_of(SWIZZLED.bases, SWIZZLED.shape)
    assert places is not None
    # Row 3 begins at 192; its first eight elements are swapped with the fourth eight.
    assert places.where((3, 0))["offset"] == 192 + 24
    assert places.where((3, 24))["offset"] == 192
