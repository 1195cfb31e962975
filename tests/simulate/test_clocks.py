"""What clocks know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.simulate.clocks import Clock

pytestmark = pytest.mark.once

clocks = st.builds(
    lambda seen, fenced: Clock(dict(seen), dict(fenced)),
    st.dictionaries(st.integers(0, 4), st.integers(1, 9)),
    st.dictionaries(st.integers(0, 4), st.integers(1, 9)),
)
moments = st.tuples(st.integers(0, 4), st.integers(1, 9))


@given(clocks, clocks, moments)
def test_who_joins_knows_what_either_knew(one: Clock, other: Clock, moment: tuple[int, int]) -> None:
    both = one.copy()
    both.join(other)
    assert both.knows(*moment) == (one.knows(*moment) or other.knows(*moment))
    assert both.fenced_at(*moment) == (one.fenced_at(*moment) or other.fenced_at(*moment))


@given(clocks, moments, moments)
def test_an_epoch_known_means_those_before(clock: Clock, moment: tuple[int, int], other: tuple[int, int]) -> None:
    before = clock.knows(*other)
    clock.learn(*moment)
    lane, epoch = moment
    assert all(clock.knows(lane, earlier) for earlier in range(1, epoch + 1))
    assert clock.knows(*other) or not before


@given(clocks, moments)
def test_a_fence_covers_what_was_known_then(clock: Clock, moment: tuple[int, int]) -> None:
    clock.fence()
    known = clock.knows(*moment)
    clock.learn(5, 1)
    assert clock.fenced_at(*moment) == known
    assert not clock.fenced_at(5, 1)


def test_a_copy_goes_its_own_way() -> None:
    clock = Clock({0: 1})
    copy = clock.copy()
    copy.learn(0, 5)
    assert not clock.knows(0, 2)
