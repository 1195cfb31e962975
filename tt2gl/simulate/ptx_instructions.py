"""PTX's instructions that compute: logic, arithmetic, functions, conversions (see `ptx`). Importing registers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate import integers
from tt2gl.simulate.arithmetic import Rounding
from tt2gl.simulate.microscaling import e2m1_codes, e2m1_values
from tt2gl.simulate.ptx import TYPES, Machine, Statement, UnknownAssembly, instruction
from tt2gl.simulate.values import Array

F16, F32 = FloatType("f16"), FloatType("f32")
I8 = IntegerType(8)
I32 = IntegerType(32)

# ----------------------------------------------------------------------------------------------------------- bits

_LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@instruction(*_LOGIC)
def _logic(machine: Machine, statement: Statement) -> None:
    statement.only()
    kind, _ = statement.kind
    a, b = (machine.one(operand, kind) for operand in statement.operands[1:])
    machine.write(statement, statement.operands[0], [_LOGIC[statement.name](a, b)], kind)


@instruction("not")
def _not(machine: Machine, statement: Statement) -> None:
    statement.only()
    kind, _ = statement.kind
    machine.write(statement, statement.operands[0], [~machine.one(statement.operands[1], kind)], kind)


@instruction("lop3")
def _three_way_logic(machine: Machine, statement: Statement) -> None:
    """Any function of three bits: the bit 4a + 2b + c of a table, which is a number or an operand of the text."""
    statement.only()
    target, *sources = statement.operands
    a, b, c, table = (machine.one(source, I32) for source in sources)
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape, table.shape), np.int32)
    for row in range(8):
        term = (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        result |= term & -(table >> row & 1)
    machine.write(statement, target, [result], I32)


@instruction("prmt")
def _permute(machine: Machine, statement: Statement) -> None:
    statement.only()
    target, *sources = statement.operands
    a, b, selector = (machine.one(source, I32) for source in sources)
    machine.write(statement, target, [integers.permute_bytes(a, b, selector)], I32)


@instruction("shl", "shr")
def _shift(machine: Machine, statement: Statement) -> None:
    statement.only()
    kind, _ = statement.kind
    target, source, amount = statement.operands
    value, by = machine.one(source, kind), machine.one(amount, I32)
    # Amounts are clamped to the width.
    held = np.minimum(integers.unsigned(by), 8 * value.dtype.itemsize).astype(value.dtype)
    function = integers.shift_left
    if statement.name == "shr":
        function = integers.shift_right if statement.signed else integers.shift_right_unsigned
    machine.write(statement, target, [function(value, held)], kind)


@instruction("bfe")
def _extract(machine: Machine, statement: Statement) -> None:
    statement.only()
    if statement.types[-1] not in ("u32", "u64"):
        raise UnknownAssembly(statement.text)
    kind, _ = statement.kind
    target, source, *places = statement.operands
    value = machine.one(source, kind)
    start, length = (machine.one(place, kind) & value.dtype.type(0xFF) for place in places)
    ones = integers.shift_left(np.full_like(length, -1), length)
    machine.write(statement, target, [integers.shift_right_unsigned(value, start) & ~ones], kind)


@instruction("popc", "clz", "brev")
def _count(machine: Machine, statement: Statement) -> None:
    statement.only()
    kind, _ = statement.kind
    value = machine.one(statement.operands[1], kind)
    if statement.name == "brev":
        machine.write(statement, statement.operands[0], [integers.reverse_bits(value)], kind)
        return
    found = integers.leading_zeros(value) if statement.name == "clz" else np.bitwise_count(integers.unsigned(value))
    machine.write(statement, statement.operands[0], [found.astype(np.int32)], I32)


# ----------------------------------------------------------------------------------------------------- arithmetic

_TWO = {
    "add": ("add", integers.add, integers.add),
    "sub": ("sub", integers.subtract, integers.subtract),
    "mul": ("mul", integers.multiply, integers.multiply),
    "div": ("div", integers.divide, integers.divide_unsigned),
    "rem": ("rem", integers.remainder, integers.remainder_unsigned),
    "min": ("minnum", integers.minimum, integers.minimum_unsigned),
    "max": ("maxnum", integers.maximum, integers.maximum_unsigned),
    "copysign": ("copysign", integers.add, integers.add),
}
_FLOAT_MODIFIERS = ("rn", "approx", "full", "ftz", "NaN")


@instruction(*_TWO)
def _arithmetic(machine: Machine, statement: Statement) -> None:
    kind, count = statement.kind
    target, *sources = statement.operands
    if len(sources) != 2:
        raise UnknownAssembly(statement.text)
    function, signed, unsigned = _TWO[statement.name]
    if isinstance(kind, FloatType):
        statement.only(*_FLOAT_MODIFIERS)
        if "NaN" in statement.modifiers:
            function = {"minnum": "minimum", "maxnum": "maximum"}.get(function, function)
        sides = [_inputs(machine, statement, source, kind, count) for source in sources]
        lanes = [machine.arithmetic.binary(function, x, y, kind) for x, y in zip(*sides, strict=True)]
        machine.write(statement, target, _outputs(machine, statement, lanes, kind), kind)
        return
    if statement.name == "copysign":
        raise UnknownAssembly(statement.text)
    statement.only("lo", "hi", "wide")
    a, b = (machine.one(source, kind) for source in sources)
    if "wide" in statement.modifiers or "hi" in statement.modifiers:
        _upper_product(machine, statement, a, b, kind)
        return
    machine.write(statement, target, [(signed if statement.signed else unsigned)(a, b)], kind)


def _upper_product(machine: Machine, statement: Statement, a: Array, b: Array, kind: Type) -> None:
    if "hi" in statement.modifiers:
        high = integers.multiply_high(a, b, signed=statement.signed)
        machine.write(statement, statement.operands[0], [high], kind)
        return
    bits = 16 * a.dtype.itemsize
    wide = [integers.extend(side, np.dtype(f"i{bits // 8}"), signed=statement.signed) for side in (a, b)]
    machine.write(statement, statement.operands[0], [wide[0] * wide[1]], IntegerType(bits))


@instruction("mad", "fma")
def _multiply_add(machine: Machine, statement: Statement) -> None:
    kind, count = statement.kind
    target, *sources = statement.operands
    if isinstance(kind, FloatType):
        statement.only("rn", "ftz", "relu")
        sides = [_inputs(machine, statement, source, kind, count) for source in sources]
        lanes = [machine.arithmetic.fma(x, y, z, kind) for x, y, z in zip(*sides, strict=True)]
        machine.write(statement, target, _outputs(machine, statement, lanes, kind), kind)
        return
    statement.only("lo")
    a, b, c = (machine.one(source, kind) for source in sources)
    machine.write(statement, target, [a * b + c], kind)


_ONE = {
    "abs": "absf",
    "neg": "neg",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "ex2": "exp2",
    "lg2": "log2",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
}


@instruction(*_ONE, "rcp")
def _function(machine: Machine, statement: Statement) -> None:
    kind, count = statement.kind
    target, source = statement.operands
    if isinstance(kind, IntegerType):
        if statement.name not in ("abs", "neg"):
            raise UnknownAssembly(statement.text)
        value = machine.one(source, kind)
        machine.write(statement, target, [np.abs(value) if statement.name == "abs" else -value], kind)
        return
    statement.only("rn", "approx", "ftz")
    lanes = []
    for lane in _inputs(machine, statement, source, kind, count):
        if statement.name == "rcp":
            one = machine.read("1.0", kind)[0]
            lanes.append(machine.arithmetic.binary("div", np.broadcast_to(one, lane.shape), lane, kind))
        else:
            lanes.append(machine.arithmetic.unary(_ONE[statement.name], lane, kind))
    machine.write(statement, target, _outputs(machine, statement, lanes, kind), kind)


def _inputs(machine: Machine, statement: Statement, source: str, kind: Type, count: int) -> list[Array]:
    return [_flushed(machine, statement, lane, kind) for lane in machine.read(source, kind, count)]


def _outputs(machine: Machine, statement: Statement, lanes: Sequence[Array], kind: Type) -> list[Array]:
    result = [_flushed(machine, statement, lane, kind) for lane in lanes]
    if "relu" in statement.modifiers:
        zero = machine.read("0.0", kind)[0]
        result = [machine.arithmetic.binary("maximum", lane, zero, kind) for lane in result]
    return result


def _flushed(machine: Machine, statement: Statement, lane: Array, kind: Type) -> Array:
    """With `.ftz`, subnormal numbers become zeros of their sign."""
    if "ftz" not in statement.modifiers or machine.arithmetic.name != "ieee" or kind != F32:
        return lane
    tiny = np.abs(lane) < np.finfo(np.float32).smallest_normal
    return np.where(tiny, np.copysign(np.float32(0), lane), lane)


# ---------------------------------------------------------------------------------------------------- conversions

_WHOLE = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


@instruction("cvt")
def _convert(machine: Machine, statement: Statement) -> None:
    if "e2m1x2" in statement.modifiers:
        _convert_four_bits(machine, statement)
        return
    statement.only(*_WHOLE, "rn", "rz", "rna", "satfinite", "ftz", "sat", "relu")
    if len(statement.types) != 2 or "sat" in statement.modifiers:
        raise UnknownAssembly(statement.text)
    (target, count), (source, source_count) = (TYPES[name] for name in statement.types)
    # Of two operands the first is the upper lane.
    operands = statement.operands[:0:-1]
    lanes = [lane for operand in operands for lane in machine.read(operand, source, source_count)]
    if len(lanes) != count:
        raise UnknownAssembly(statement.text)
    lanes = [_converted(machine, statement, lane, source, target) for lane in lanes]
    machine.write(statement, statement.operands[0], _outputs(machine, statement, lanes, target), target)


def _convert_four_bits(machine: Machine, statement: Statement) -> None:
    """Pairs of 4-bit floats in a byte, from float32 or to float16."""
    target, *sources = statement.operands
    arithmetic = machine.arithmetic
    if statement.modifiers == ["rn", "satfinite", "e2m1x2", "f32"]:
        high, low = (_four_bits(machine, machine.one(source, F32)) for source in sources)
        machine.write(statement, target, [(low | high << 4).view(np.int8)], I8)
    elif statement.modifiers == ["rn", "f16x2", "e2m1x2"]:
        codes = integers.unsigned(machine.one(sources[0], I8))
        values = [e2m1_values(part, arithmetic) for part in (codes & 15, codes >> 4)]
        machine.write(statement, target, [arithmetic.convert(value, F32, F16) for value in values], F16)
    else:
        raise UnknownAssembly(statement.text)


def _four_bits(machine: Machine, lane: Array) -> Array:
    if machine.arithmetic.name == "ieee":
        return e2m1_codes(lane)
    # What has no bits gets some that depend on it alone.
    return (machine.arithmetic.bitcast(lane, F32, I32) & 15).astype(np.uint8)


def _converted(machine: Machine, statement: Statement, lane: Array, source: Type, target: Type) -> Array:
    arithmetic = machine.arithmetic
    from_signed, to_signed = (name.startswith("s") for name in reversed(statement.types))
    whole = next((_WHOLE[modifier] for modifier in statement.modifiers if modifier in _WHOLE), None)
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if target.width > source.width:
            return integers.extend(lane, np.dtype(f"i{target.width // 8}"), signed=from_signed)
        return lane.astype(f"i{target.width // 8}")
    if isinstance(source, IntegerType):
        return arithmetic.from_integer(lane, from_signed, source, target)
    if whole is not None:
        lane = arithmetic.unary(whole, lane, source)
    if isinstance(target, IntegerType):
        return arithmetic.to_integer(lane, to_signed, source, target)
    rounding: Rounding = "rtz" if "rz" in statement.modifiers else "rtne"
    return arithmetic.convert(lane, source, target, rounding)
