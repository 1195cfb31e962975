"""Global memory: loads and stores agree with a loop over elements, however addresses and masks are laid out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tt2gl.ir.operations import UNKNOWN
from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import Finding, SimulationError
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.memory import Memory
from tt2gl.simulate.values import Array, byte_size

F16, F32 = FloatType("f16"), FloatType("f32")
MASKS = ("none", "bounds", "columns", "rows", "random", "all")


def places(seed: int, row_step: int, column_step: int, count: int) -> tuple[np.random.Generator, Array]:
    """Element numbers of the tiles of a few programs, some of them outside a tensor of `count`."""
    random = np.random.default_rng(seed)
    programs, rows, columns = int(random.integers(1, 4)), int(random.choice([1, 4, 16])), int(random.choice([4, 8, 16]))
    first = random.integers(-3, count + 3, size=(programs, 1, 1)) // int(random.choice([1, 4]))
    return random, first + np.arange(rows)[:, None] * row_step + np.arange(columns) * column_step


def masked(random: np.random.Generator, index: Array, count: int, kind: str) -> Array | None:
    rows, columns = index.shape[1:]
    if kind == "bounds":
        return (index >= 0) & (index < count)
    if kind == "columns":
        return np.broadcast_to(np.arange(columns) < random.integers(0, columns + 1), index.shape)
    if kind == "rows":
        return np.broadcast_to((np.arange(rows) < random.integers(0, rows + 1))[:, None], (1, rows, columns))
    if kind == "random":
        return np.asarray(random.random(index.shape) < 0.7)
    return None if kind == "none" else np.ones(index.shape, bool)


spaced = given(
    seed=st.integers(0, 1 << 30),
    row_step=st.integers(0, 40),
    column_step=st.sampled_from([0, 1, 2, 16, 17]),
    count=st.integers(1, 400),
    kind=st.sampled_from(MASKS),
    other=st.booleans(),
)


@spaced
def test_a_load_finds_what_a_loop_finds(
    seed: int, row_step: int, column_step: int, count: int, kind: str, other: bool
) -> None:
    random, index = places(seed, row_step, column_step, count)
    found: list[Finding] = []
    memory = Memory(Ieee(), found.append)
    values = random.standard_normal(count).astype(np.float32)
    allocation = memory.add("x", F32, values)
    mask = masked(random, index, count, kind)
    fill = random.standard_normal(index.shape).astype(np.float32) if other else None
    loaded = memory.load(allocation.address + 4 * index, mask, F32, UNKNOWN, fill)
    active = np.ones(index.shape, bool) if mask is None else np.broadcast_to(mask, index.shape)
    inside = (index >= 0) & (index < count)
    expected = np.where(inside, values[np.clip(index, 0, count - 1)], np.float32(np.nan))
    expected = np.where(active, expected, np.float32(np.nan) if fill is None else fill)
    np.testing.assert_array_equal(loaded, expected)
    assert bool(found) == bool((active & ~inside).any())
    if (active & inside).any() or not active.any():
        assert allocation.loaded == bool(active.any())


@spaced
def test_a_store_writes_what_a_loop_writes(
    seed: int, row_step: int, column_step: int, count: int, kind: str, other: bool
) -> None:
    random, index = places(seed, row_step, column_step, count)
    found: list[Finding] = []
    memory = Memory(Ieee(), found.append)
    allocation = memory.add("x", F32, np.zeros(count, np.float32))
    mask = masked(random, index, count, kind)
    # Elements that come twice get the same value, so that no order matters.
    values = (index * 0.5).astype(np.float32) if other else np.ones((1, 1, 1), np.float32)
    memory.store(allocation.address + 4 * index, values, mask, F32, UNKNOWN)
    active = np.ones(index.shape, bool) if mask is None else np.broadcast_to(mask, index.shape)
    reached = active & (index >= 0) & (index < count)
    expected, written = np.zeros(count, np.float32), np.zeros(count, bool)
    expected[index[reached]] = np.broadcast_to(values, index.shape)[reached]
    written[index[reached]] = True
    np.testing.assert_array_equal(allocation.elements, expected)
    np.testing.assert_array_equal(allocation.written, written)
    assert bool(found) == bool((active & ~reached).any())


def test_of_equal_addresses_the_last_store_stays() -> None:
    memory = Memory(Ieee(), lambda finding: None)
    allocation = memory.add("x", F32, np.zeros(4, np.float32))
    address = np.full((2, 3), allocation.address, np.int64)
    memory.store(address, np.arange(6, dtype=np.float32).reshape(2, 3), None, F32, UNKNOWN)
    assert list(allocation.elements) == [5, 0, 0, 0]


def test_several_tensors_in_one_access() -> None:
    memory = Memory(Ieee(), lambda finding: None)
    tensors = [memory.add(name, F32, np.full(8, number, np.float32)) for number, name in enumerate("ab")]
    address = np.array([[tensor.address + 4 * index for tensor in tensors for index in range(8)]])
    assert memory.load(address, None, F32, UNKNOWN).tolist() == [[0.0] * 8 + [1.0] * 8]


def test_an_address_between_elements_is_misaligned() -> None:
    found: list[Finding] = []
    memory = Memory(Ieee(), found.append)
    allocation = memory.add("x", F32, np.zeros(64, np.float32))
    memory.load(allocation.address + 2 + 4 * np.arange(16)[None], None, F32, UNKNOWN)
    assert [finding.kind for finding in found] == ["misaligned"]


def test_elements_can_be_read_and_written_as_another_type() -> None:
    memory = Memory(Ieee(), lambda finding: None)
    allocation = memory.add("x", F32, np.arange(16, dtype=np.float32))
    address = allocation.address + 4 * np.arange(16)[None]
    bits = memory.load(address, None, IntegerType(32), UNKNOWN)
    assert bits[0].view(np.float32).tolist() == list(range(16))
    memory.store(address[:, :8], bits[:, 8:], None, IntegerType(32), UNKNOWN)
    assert allocation.elements.tolist() == [*range(8, 16)] * 2
    assert allocation.written.tolist() == [True] * 8 + [False] * 8


def test_rollback_undoes_stores_of_every_kind() -> None:
    memory = Memory(Ieee(), lambda finding: None)
    allocation = memory.add("x", F32, np.arange(32, dtype=np.float32))
    memory.checkpoint()
    for address in (np.arange(16)[None], np.arange(16)[None] ** 2 % 32):
        memory.store(allocation.address + 4 * address, np.full(1, -1, np.float32), None, F32, UNKNOWN)
    memory.rollback()
    assert allocation.elements.tolist() == list(range(32))
    assert not allocation.written.any()


@pytest.mark.parametrize("kind", [F16, IntegerType(32)], ids=str)
@pytest.mark.parametrize("step", [1, 3])
def test_the_field_reads_no_float_as_another_type(kind: Type, step: int) -> None:
    memory = Memory(Field(), lambda finding: None)
    allocation = memory.add("x", F32, np.zeros(64, np.float32))
    address = allocation.address + step * byte_size(kind) * np.arange(8)[None]
    with pytest.raises(SimulationError, match=f"cannot read x .f32. as {kind}"):
        memory.load(address, None, kind, UNKNOWN)
