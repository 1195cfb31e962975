"""Straight-line PTX, as inline assembly has it: statements read and run one by one.

Known are moves and packing, predicates and selection, logic, shifts, byte permutation, integer and float arithmetic
(packed halves too), the approximate functions (as the nearest value) and conversions. Branches, memory and whatever
else is not known raise `UnknownAssembly`. A clock does not move while a program runs, and each program has a
multiprocessor of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tt2gl.ir.types import FloatType, IntegerType, Type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.assembly_registers import Register, read
from tt2gl.simulate.values import Array


class UnknownAssembly(Exception):
    """An instruction, operand or modifier that is not known; the message shows it."""


_INTEGER = {f"{letter}{bits}": (IntegerType(bits), 1) for letter in "bus" for bits in (8, 16, 32, 64)}
_FLOAT: dict[str, tuple[Type, int]] = {
    "f16": (FloatType("f16"), 1),
    "bf16": (FloatType("bf16"), 1),
    "f32": (FloatType("f32"), 1),
    "f64": (FloatType("f64"), 1),
    "tf32": (FloatType("tf32"), 1),
    "f16x2": (FloatType("f16"), 2),
    "bf16x2": (FloatType("bf16"), 2),
    "f32x2": (FloatType("f32"), 2),
    "e4m3x2": (FloatType("f8E4M3FN"), 2),
    "e5m2x2": (FloatType("f8E5M2"), 2),
}
TYPES: dict[str, tuple[Type, int]] = {**_INTEGER, **_FLOAT, "pred": (IntegerType(1), 1)}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(
    r"(?:@(?P<negated>!?)(?P<guard>[\w%$]+)\s+)?(?P<opcode>[a-z]\w*(?:\.\w+)*)\s*(?P<operands>.*)", re.DOTALL
)
_OPERAND = re.compile(r"\{[^}]*\}|[^,{}]+")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+(?:\.\d*)?(?:[eE]-?\d+)?)U?")

Instruction = Callable[["Machine", "Statement"], None]

INSTRUCTIONS: dict[str, Instruction] = {}


def instruction(*names: str) -> Callable[[Instruction], Instruction]:
    """Register what runs the instructions of these names."""

    def register(function: Instruction) -> Instruction:
        INSTRUCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


class Statement:
    """One instruction: its name, what follows it between dots, its operands, and the predicate that guards it."""

    def __init__(self, text: str) -> None:
        match = _STATEMENT.fullmatch(text)
        if match is None:
            raise UnknownAssembly(text)
        self.text = " ".join(text.split())
        parts: list[str] = match["opcode"].split(".")
        self.name, self.modifiers = parts[0], parts[1:]
        self.operands = [operand.strip() for operand in _OPERAND.findall(match["operands"]) if operand.strip()]
        self.guard, self.negated = match["guard"], bool(match["negated"])

    @property
    def types(self) -> list[str]:
        """The types among the modifiers."""
        return [modifier for modifier in self.modifiers if modifier in TYPES]

    @property
    def kind(self) -> tuple[Type, int]:
        """The last type, which most instructions have alone. Raises UnknownAssembly where there is none."""
        if not self.types:
            raise UnknownAssembly(self.text)
        return TYPES[self.types[-1]]

    @property
    def signed(self) -> bool:
        """Whether the last type is a signed integer."""
        return bool(self.types) and self.types[-1].startswith("s")

    def only(self, *allowed: str) -> None:
        """Check that no modifier but types and these is there. Raises UnknownAssembly."""
        if not set(self.modifiers) <= {*allowed, *self.types}:
            raise UnknownAssembly(self.text)


def statements(text: str) -> list[Statement]:
    """The statements of a text; declarations and the braces around scopes are left out."""
    found = []
    for part in _COMMENT.sub(" ", text).replace("\\n", "\n").split(";"):
        part = part.strip()
        while part.startswith("{") and "}" not in part:
            part = part[1:].strip()
        while part.startswith("}"):
            part = part[1:].strip()
        if part and not part.startswith(".reg"):
            found.append(Statement(part))
    return found


class Machine:
    """The registers of a run of statements. `special` has what `%name` registers hold."""

    def __init__(self, arithmetic: Arithmetic, registers: Mapping[str, Register], special: Mapping[str, Array]) -> None:
        self.arithmetic = arithmetic
        self.registers = dict(registers)
        self.special = special

    def run(self, text: str) -> None:
        """Run a text. Raises UnknownAssembly."""
        for statement in statements(text):
            function = INSTRUCTIONS.get(statement.name)
            if function is None:
                raise UnknownAssembly(statement.text)
            try:
                function(self, statement)
            except ValueError as error:
                # Too many operands or too few, or a number that is none.
                raise UnknownAssembly(statement.text) from error

    def read(self, operand: str, kind: Type, count: int = 1) -> tuple[Array, ...]:
        """An operand as lanes of a type: a register, a list of them, a number or a special register."""
        if operand.startswith("{"):
            return self._packed(operand, kind, count)
        if operand in self.registers:
            return read(self.arithmetic, self.registers[operand], kind, count)
        if _NUMBER.fullmatch(operand):
            return self._number(operand, kind, count)
        if operand.removeprefix("%") in self.special:
            value = self.special[operand.removeprefix("%")]
            return read(self.arithmetic, Register((value,), IntegerType(64)), kind, count)
        raise UnknownAssembly(operand)

    def one(self, operand: str, kind: Type) -> Array:
        """An operand as one lane."""
        return self.read(operand, kind)[0]

    def write(self, statement: Statement, target: str, lanes: Sequence[Array], kind: Type) -> None:
        """Write a register, in those threads for which the statement's guard holds."""
        if target.startswith("{"):
            self._unpack(statement, target, Register(tuple(lanes), kind))
            return
        if statement.guard:
            guard = self.one(statement.guard, IntegerType(1)) ^ statement.negated
            before = self.read(target, kind, len(lanes)) if target in self.registers else lanes
            lanes = [np.where(guard, new, old) for new, old in zip(lanes, before, strict=True)]
        if target != "_":
            self.registers[target] = Register(tuple(lanes), kind)

    def _number(self, text: str, kind: Type, count: int) -> tuple[Array, ...]:
        text = text.rstrip("U")
        if text[:2] in ("0f", "0F", "0d", "0D"):
            bits = IntegerType(4 * len(text) - 8)
            held = np.array([int(text[2:], 16)], f"u{bits.width // 8}").view(f"i{bits.width // 8}")
            return read(self.arithmetic, Register((held,), bits), kind, count)
        if isinstance(kind, FloatType) and not text.lower().startswith("0x"):
            value = self.arithmetic.from_bits(np.array([float(text)]), FloatType("f64"))
            return (self.arithmetic.convert(value, FloatType("f64"), kind),) * count
        number = int(float(text)) if "." in text else int(text, 0)
        held = np.array([number & (1 << 64) - 1], np.uint64).view(np.int64)
        return read(self.arithmetic, Register((held,), IntegerType(64)), kind, count)

    def _packed(self, operand: str, kind: Type, count: int) -> tuple[Array, ...]:
        parts = operand[1:-1].replace(",", " ").split()
        if len(parts) == count:
            return tuple(self.one(part, kind) for part in parts)
        known = [self.registers.get(part) for part in parts]
        first = known[0]
        if first is None:
            raise UnknownAssembly(operand)
        # The parts share the register equally; each is read as what it is, so that floats stay floats.
        lanes = tuple(lane for part in parts for lane in self.read(part, first.kind, len(first.lanes)))
        return read(self.arithmetic, Register(lanes, first.kind), kind, count)

    def _unpack(self, statement: Statement, target: str, whole: Register) -> None:
        parts = target[1:-1].replace(",", " ").split()
        kind, count = whole.kind, len(whole.lanes)
        if count != len(parts):
            kind = IntegerType(whole.width // len(parts))
            lanes = read(self.arithmetic, whole, kind, len(parts))
        else:
            lanes = whole.lanes
        for part, lane in zip(parts, lanes, strict=True):
            self.write(statement, part, (lane,), kind)


@instruction("mov")
def _move(machine: Machine, statement: Statement) -> None:
    statement.only()
    target, source = statement.operands
    kind, count = statement.kind
    total = count * (kind.width if isinstance(kind, IntegerType) else 0)
    if source in machine.registers and machine.registers[source].width == total:
        register = machine.registers[source]
    elif source.startswith("{"):
        parts = source[1:-1].replace(",", " ").split()
        first = machine.registers.get(parts[0])
        if first is None or first.width * len(parts) != total:
            each = IntegerType(total // len(parts))
            register = Register(tuple(machine.one(part, each) for part in parts), each)
        else:
            lanes = tuple(lane for part in parts for lane in machine.read(part, first.kind, len(first.lanes)))
            register = Register(lanes, first.kind)
    else:
        register = Register(machine.read(source, kind, count), kind)
    machine.write(statement, target, register.lanes, register.kind)


@instruction("setp", "set")
def _set_predicate(machine: Machine, statement: Statement) -> None:
    comparison, *rest = statement.modifiers
    if statement.name == "set" or len(statement.operands) != 3 or set(rest) - {*statement.types, "ftz"}:
        raise UnknownAssembly(statement.text)
    kind, count = statement.kind
    a, b = (machine.read(operand, kind, count) for operand in statement.operands[1:])
    found = [_compared(machine, statement, comparison, x, y, kind) for x, y in zip(a, b, strict=True)]
    for target, value in zip(statement.operands[0].split("|"), found, strict=True):
        machine.write(statement, target.strip(), (value,), IntegerType(1))


def _compared(machine: Machine, statement: Statement, comparison: str, a: Array, b: Array, kind: Type) -> Array:
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    if isinstance(kind, FloatType):
        base = comparison.removesuffix("u") if comparison not in ("nan", "num") else comparison
        predicate = {"nan": "uno", "num": "ord", "ne": "one"}.get(comparison, f"o{base}")
        if comparison.endswith("u") and base in names:
            predicate = f"u{base}"
        if base not in (*names, "nan", "num"):
            raise UnknownAssembly(statement.text)
        return machine.arithmetic.compare(predicate, a, b, kind)
    comparison = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison, comparison)
    if comparison not in names:
        raise UnknownAssembly(statement.text)
    if not statement.signed and comparison not in ("eq", "ne"):
        a, b = (side.view(f"u{side.dtype.itemsize}") for side in (a, b))
    tests = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    return np.asarray(tests[names.index(comparison)](a, b))


@instruction("selp")
def _select(machine: Machine, statement: Statement) -> None:
    statement.only()
    target, a, b, predicate = statement.operands
    kind, count = statement.kind
    chosen = machine.one(predicate, IntegerType(1))
    sides = zip(machine.read(a, kind, count), machine.read(b, kind, count), strict=True)
    machine.write(statement, target, [np.where(chosen, x, y) for x, y in sides], kind)


@instruction("griddepcontrol")
def _grid_dependency(machine: Machine, statement: Statement) -> None:
    """Kernels run one after the other: there is nothing to wait for."""
    if statement.modifiers not in (["wait"], ["launch_dependents"]):
        raise UnknownAssembly(statement.text)
