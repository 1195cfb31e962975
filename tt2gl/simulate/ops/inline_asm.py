"""`tt.elementwise_inline_asm`: assembly of which each run makes a few elements of the result.

Elements narrower than 32 bits are packed into registers, as many at a time as the operation says. Which elements share
a run depends on the layout; here it is neighbours in the last dimension, which is the same to a text that is
elementwise, as it must be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tt2gl.simulate.ptx_instructions  # noqa: F401 (registers the instructions)
from tt2gl.ir.operations import Operation
from tt2gl.ir.types import IntegerType, PointerType, Type, element_type, shape_of
from tt2gl.simulate.assembly_registers import Register, read, width
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.gcn import as_ptx
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.ptx import Machine, UnknownAssembly
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

_CLOCKS = ("clock", "clock64", "clock_hi", "globaltimer", "globaltimer_lo", "globaltimer_hi")


@handles("tt.elementwise_inline_asm")
def _inline_assembly(run: Run, operation: Operation, *operands: Array) -> Any:
    text: str = operation.attributes["asm_string"]
    at_once = int(operation.attributes["packed_element"])
    shape = shape_of(operation.results[0].type)
    count = max((operand.shape[0] for operand in operands), default=run.count)
    elements = max(1, math.prod(shape))
    groups = -(-elements // at_once)
    registers: dict[str, Register] = {}
    results = [_element(result.type) for result in operation.results]
    number = sum(_registers(kind, at_once)[0] for kind in results)
    for operand, value in zip(operands, operation.operands, strict=True):
        kind = _element(value.type)
        whole = np.broadcast_to(operand.reshape(operand.shape[0], -1), (count, elements))
        if groups * at_once > elements:
            whole = np.concatenate([whole, np.repeat(whole[:, -1:], groups * at_once - elements, axis=1)], axis=1)
        each = whole.reshape(count, groups, at_once)
        for register in _split(each, kind, at_once):
            registers[f"${number}"] = register
            number += 1
    machine = Machine(run.arithmetic, registers, _special(run, count))
    try:
        machine.run(as_ptx(text) or text)
    except UnknownAssembly as error:
        raise Unsupported(operation, f"the simulator does not know `{error}`") from error
    outputs, number = [], 0
    for kind in results:
        used, lanes = _registers(kind, at_once)
        found = [_result(machine, number + index, kind, lanes, (count, groups)) for index in range(used)]
        number += used
        together = np.stack([lane for register in found for lane in register], axis=-1)
        outputs.append(together.reshape(count, -1)[:, :elements].reshape(count, *shape))
    return packed(operation, outputs)


def _element(kind: Type) -> Type:
    element = element_type(kind)
    return IntegerType(64) if isinstance(element, PointerType) else element


def _registers(kind: Type, at_once: int) -> tuple[int, int]:
    """How many registers hold the elements of one run, and how many elements each holds."""
    lanes = min(max(1, 32 // width(kind)), at_once)
    return at_once // lanes, lanes


def _split(each: Array, kind: Type, at_once: int) -> list[Register]:
    used, lanes = _registers(kind, at_once)
    return [Register(tuple(each[..., index * lanes + lane] for lane in range(lanes)), kind) for index in range(used)]


def _special(run: Run, count: int) -> dict[str, Array]:
    still = np.zeros((1, 1), np.int64)
    own = run.programs.ids.astype(np.int64)[:, None]
    return {**dict.fromkeys(_CLOCKS, still), "smid": own if len(own) in (1, count) else own[:1]}


def _result(machine: Machine, number: int, kind: Type, lanes: int, shape: tuple[int, int]) -> list[Array]:
    register = machine.registers.get(f"${number}")
    if register is None:
        # Nothing was written there, as by a fence that needs a result to exist.
        register = Register((np.zeros((1, 1), np.int64),), IntegerType(64))
    return [np.broadcast_to(lane, shape) for lane in read(machine.arithmetic, register, kind, lanes)]
