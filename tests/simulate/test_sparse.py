"""Memory of which only what is touched is held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tt2gl.ir.operations import Location
from tt2gl.ir.types import FloatType, IntegerType
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.sparse import Sheet, SparseMemory

HERE = Location("kernel.py", 1)
I16, F32 = IntegerType(16), FloatType("f32")
LENGTH = 2**31
FAR = LENGTH - 3


@pytest.fixture
def findings() -> list[Finding]:
    return []


@pytest.fixture
def memory(findings: list[Finding]) -> SparseMemory:
    """Two tensors: one of 2**31 elements that repeat five, one of three."""
    made = SparseMemory(Ieee(), findings.append)
    made.add("large", I16, np.arange(5, dtype=np.int16), length=LENGTH)
    made.add("small", F32, np.array([1, 2, 3], np.float32))
    return made


def at(memory: SparseMemory, tensor: int, *places: int) -> Any:
    """Addresses of elements, for one program."""
    held = memory.allocations[tensor]
    return held.address + held.size * np.array([places], np.int64)


def test_elements_repeat_and_hold_what_was_written(memory: SparseMemory, findings: list[Finding]) -> None:
    where = at(memory, 0, 3, FAR, 70_000, FAR + 2)
    np.testing.assert_array_equal(memory.load(where, None, I16, HERE), [[3, FAR % 5, 0, (FAR + 2) % 5]])
    memory.store(at(memory, 0, FAR, 1), np.array([[9, 8]], np.int16), None, I16, HERE)
    np.testing.assert_array_equal(memory.load(at(memory, 0, 0, 1, FAR), None, I16, HERE), [[0, 8, 9]])
    np.testing.assert_array_equal(memory.load(at(memory, 1, 0, 2), None, F32, HERE), [[1, 3]])
    places, values = memory.allocations[0].stored()
    assert places.tolist() == [1, FAR]
    assert values.tolist() == [8, 9]
    assert findings == []


def test_what_is_touched_is_told(memory: SparseMemory) -> None:
    memory.load(at(memory, 0, 7, 70_000, FAR), np.array([[True, True, False]]), I16, HERE)
    memory.store(at(memory, 0, 9), np.zeros((1, 1), np.int16), None, I16, HERE)
    touched = memory.allocations[0].touched
    assert (touched.low, touched.high, touched.elements) == (14, 140_002, 3)


def test_what_lies_outside_is_a_fault(memory: SparseMemory, findings: list[Finding]) -> None:
    memory.load(at(memory, 0, LENGTH - 1, LENGTH), None, I16, HERE)
    assert [each.message for each in findings] == [f"load outside large (byte {2 * LENGTH} of {2 * LENGTH})"]


def test_elements_may_be_read_as_another_type(memory: SparseMemory) -> None:
    where = memory.allocations[0].address + 4 * np.array([[10**9 // 2]], np.int64)
    assert memory.load(where, None, IntegerType(32), HERE).tolist() == [[0 + (1 << 16)]]


def test_going_back(memory: SparseMemory) -> None:
    memory.store(at(memory, 0, 4), np.full((1, 1), 7, np.int16), None, I16, HERE)
    memory.checkpoint()
    memory.store(at(memory, 0, 4, FAR), np.full((1, 2), 6, np.int16), None, I16, HERE)
    memory.rollback()
    sheet = memory.allocations[0]
    assert isinstance(sheet, Sheet)
    assert [part.tolist() for part in sheet.stored()] == [[4], [7]]
    np.testing.assert_array_equal(memory.load(at(memory, 0, FAR), None, I16, HERE), [[FAR % 5]])
