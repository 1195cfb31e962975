"""Names that nobody has yet."""

from __future__ import annotations

import pytest

from tt2gl.names import claimed, unused


@pytest.mark.parametrize(("taken", "name"), [(set(), "x"), ({"x"}, "x_2"), ({"x", "x_2"}, "x_3"), ({"x_2"}, "x")])
def test_a_free_name(taken: set[str], name: str) -> None:
    assert unused("x", taken) == name


def test_a_claimed_name_is_taken_from_then_on() -> None:
    taken = {"x"}
    assert [claimed("x", taken), claimed("x", taken)] == ["x_2", "x_3"]
