"""Which accesses conflict, and which of those nothing orders."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tt2gl.ir.operations import Location, Operation
from tt2gl.simulate.accesses import Access, History, Proxy, Region
from tt2gl.simulate.clocks import Clock
from tt2gl.simulate.findings import Finding

SLOT = Region(0, (64,), (4,), 4)
NEXT = Region(256, (64,), (4,), 4)
BOTH = Region(0, (2, 64), (256, 4), 4)


def touched(region: Region) -> set[int]:
    places = itertools.product(*(range(extent) for extent in region.shape))
    starts = [region.offset + sum(i * s for i, s in zip(place, region.strides, strict=True)) for place in places]
    return {start + byte for start in starts for byte in range(region.size)}


regions = st.builds(
    lambda offset, sizes, strides: Region(offset, sizes, strides, 2),
    st.integers(0, 8).map(lambda element: 2 * element),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.permutations([2, 8, 10]).map(lambda strides: (strides[0], strides[1])),
)


@given(regions, regions)
def test_regions_overlap_where_they_share_a_byte(one: Region, other: Region) -> None:
    assert one.overlaps(other) == bool(touched(one) & touched(other))
    assert not one.covers(other) or touched(other) <= touched(one)
    assert one.end == max(touched(one)) + 1
    assert set(one.starts.tolist()) == {byte for byte in touched(one) if byte % 2 == 0}


class Told:
    """A history, and who accesses it: partition `lane` at its epoch 1, who knows the lanes given."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.history = History("smem", self.findings.append)
        self._line = 0

    def access(
        self, lane: int, region: Region, *, write: bool, knows: Clock | None = None, proxy: Proxy = "generic"
    ) -> None:
        self._line += 1
        clock = knows.copy() if knows is not None else Clock()
        operation = Operation("ttg.local_store" if write else "ttg.local_load", location=Location("", self._line))
        self.history.add(Access(lane, 1, write, proxy, operation), region, clock)

    @property
    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.findings]


def test_reads_do_not_conflict() -> None:
    told = Told()
    told.access(1, SLOT, write=False)
    told.access(2, SLOT, write=False)
    assert told.kinds == []


def test_a_write_conflicts_with_reads_and_writes_that_it_does_not_know() -> None:
    for first in (True, False):
        told = Told()
        told.access(1, SLOT, write=first)
        told.access(2, SLOT, write=True)
        assert told.kinds == ["race"]
        assert (told.findings[0].location.line, told.findings[0].buffer) == (2, "smem")
        assert told.findings[0].other == Location("", 1)


def test_what_is_known_is_ordered() -> None:
    told = Told()
    told.access(1, SLOT, write=True)
    told.access(2, SLOT, write=False, knows=Clock({1: 1}))
    told.access(3, SLOT, write=True, knows=Clock({1: 1, 2: 1}))
    assert told.kinds == []


def test_slots_do_not_conflict_but_each_does_with_the_whole() -> None:
    told = Told()
    told.access(1, SLOT, write=True)
    told.access(2, NEXT, write=True)
    assert told.kinds == []
    told.access(3, BOTH, write=False, knows=Clock({1: 1}))
    assert told.kinds == ["race"]


def test_a_buffer_has_one_race() -> None:
    told = Told()
    for lane in range(1, 5):
        told.access(lane, SLOT, write=True)
    assert told.kinds == ["race"]


def test_the_async_proxy_needs_a_fence_after_a_generic_write() -> None:
    told = Told()
    told.access(1, SLOT, write=True)
    told.access(2, SLOT, write=False, knows=Clock({1: 1}, {1: 1}), proxy="async")
    assert told.kinds == []
    told.access(3, SLOT, write=False, knows=Clock({1: 1}), proxy="async")
    assert told.kinds == ["missing-fence"]


def test_no_fence_is_needed_for_what_was_written_over_since() -> None:
    told = Told()
    told.access(1, BOTH, write=True)
    told.access(2, SLOT, write=True, knows=Clock({1: 1}), proxy="async")
    told.access(3, SLOT, write=False, knows=Clock({1: 1, 2: 1}), proxy="async")
    assert told.kinds == []
    told.access(3, NEXT, write=False, knows=Clock({1: 1, 2: 1}), proxy="async")
    assert told.kinds == ["missing-fence"]


def test_long_loops_leave_little_behind() -> None:
    told = Told()
    clock = Clock({1: 1, 2: 1})
    for step in range(2000):
        told.access(1 + step % 2, (SLOT, NEXT)[step % 2], write=step % 3 == 0, knows=clock)
    assert told.kinds == []
    assert told.history.remembered <= 8
