"""What final TTGIR says of tensor memory: what its tiles are loaded into, and which products start from nothing."""

from __future__ import annotations

import pytest

from tt2gl.analysis.tensor_memory import TensorMemoryUses
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Block, Location, Module, Operation, Region, Value
from tt2gl.ir.types import FloatType, IntegerType, MemDescType, TensorType, Type

MEMORY = DialectAttr("ttng.tensor_memory_encoding", (("blockM", 128),))
ROWS, HALVES = DialectAttr("ttg.linear", (("lane", 1),)), DialectAttr("ttg.linear", (("lane", 2),))
FLAG = IntegerType(1)


def memory(shape: tuple[int, ...] = (128, 64)) -> Value:
    return Value("m", MemDescType(shape, FloatType("f32"), MEMORY, "ttng.tensor_memory", True, shape))


def tensor(layout: DialectAttr, shape: tuple[int, ...] = (128, 64)) -> Value:
    return Value("t", TensorType(shape, FloatType("f32"), layout))


def made(
    name: str, operands: tuple[Value, ...] = (), *results: Value, line: int = 0, **attributes: object
) -> Operation:
    return Operation(name, operands, results, attributes, location=Location("kernel.py", line, 4))


def flag(value: bool) -> Operation:
    return made("arith.constant", (), Value("c", FLAG), value=value)


def uses(*operations: Operation) -> TensorMemoryUses:
    kernel = Operation("tt.func", regions=(Region([Block(operations=list(operations))]),))
    results = {id(result): operation for operation in operations for result in operation.results}
    return TensorMemoryUses(Module(Operation("builtin.module"), {"kernel": kernel}), results)


def test_memory_that_nobody_reads_or_writes_has_no_registers() -> None:
    held = memory()
    assert uses(made("ttng.tmem_alloc", (), held)).registers(held) is None


def test_a_part_of_a_tile_says_nothing_of_the_whole() -> None:
    held, part = memory(), memory((128, 32))
    view = made("ttng.tmem_subslice", (held,), part)
    found = uses(made("ttng.tmem_alloc", (), held), view, made("ttng.tmem_load", (held,), tensor(ROWS, (128, 32))))
    assert found.registers(held) is None


@pytest.mark.parametrize("said", ["N", "offset"])
def test_a_tile_that_is_loaded_column_by_column_has_all_of_their_registers(said: str) -> None:
    held, first, second = memory(), memory((128, 32)), memory((128, 32))
    half = DialectAttr("ttg.linear", (("register", ((0, 1),)), ("lane", ((1, 0),)), ("warp", ()), ("block", ())))
    views = [made("ttng.tmem_subslice", (held,), part, **{said: at}) for part, at in ((first, 0), (second, 32))]
    loads = [made("ttng.tmem_load", (part,), tensor(half, (128, 32))) for part in (first, second)]
    store = made("ttng.tmem_store", (tensor(HALVES), held, Value("p", FLAG)))
    found = uses(store, *views, *loads)
    registers = found.registers(held)
    assert registers is not None
    assert registers.get("register") == ((0, 1), (0, 32))
    assert found.in_parts(held)
    # One of them alone says nothing, and a load of the whole says more.
    for fewer in (uses(store, *views, loads[0]), uses(*views, *loads, made("ttng.tmem_load", (held,), tensor(HALVES)))):
        assert fewer.registers(held) == HALVES
        assert not fewer.in_parts(held)


def test_what_is_loaded_counts_before_what_is_stored() -> None:
    held, kept = memory(), Value("p", FLAG)
    store = made("ttng.tmem_store", (tensor(HALVES), held, kept))
    assert uses(store).registers(held) == HALVES
    assert uses(made("ttng.tmem_alloc", (tensor(HALVES),), held)).registers(held) == HALVES
    assert uses(store, made("ttng.tmem_load", (held,), tensor(ROWS))).registers(held) == ROWS


def test_a_view_of_memory_is_that_memory() -> None:
    whole, slot = memory((2, 128, 64)), memory()
    found = uses(made("ttg.memdesc_index", (whole,), slot), made("ttng.tmem_load", (slot,), tensor(ROWS)))
    assert found.registers(slot) == ROWS


def test_a_product_starts_from_nothing_where_no_copy_of_it_adds() -> None:
    kinds: tuple[Type, Type] = (tensor(ROWS).type, tensor(ROWS).type)
    operands = (*(Value("x", kind) for kind in kinds), memory())
    no, yes = flag(False), flag(True)

    def product(flagged: Operation, line: int) -> Operation:
        return made("ttng.tc_gen5_mma", (*operands, *flagged.results, *yes.results), line=line)

    peeled, again, alone = product(no, 7), product(yes, 7), product(no, 8)
    found = uses(no, yes, peeled, again, alone)
    assert [found.from_zero(each) for each in (peeled, again, alone)] == [False, False, True]
