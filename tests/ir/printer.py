"""Prints the objects of `tt2gl.ir` as MLIR does in generic form: the other half of the parser's round trips."""

from __future__ import annotations

from typing import Any

from tt2gl.ir.attributes import UNIT, Dense, DialectAttr, FloatAttr, Symbol
from tt2gl.ir.operations import UNKNOWN, Block, Location, Operation, Region, Value
from tt2gl.ir.types import (
    DescriptorType,
    FunctionType,
    MemDescType,
    PointerType,
    TensorType,
    TupleType,
    Type,
    VectorType,
)


def quoted(text: str) -> str:
    """A string as MLIR prints it: what is not printable ASCII, and its two special signs, as bytes."""
    plain = (chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(plain)}"'


def print_type(kind: Type) -> str:
    """A type with its encoding written out."""
    match kind:
        case TensorType(shape, element, encoding):
            inner = "x".join((*map(str, shape), print_type(element)))
            return f"tensor<{inner}>" if encoding is None else f"tensor<{inner}, {print_attribute(encoding)}>"
        case VectorType(shape, element):
            return f"vector<{'x'.join((*map(str, shape), print_type(element)))}>"
        case PointerType(None, space):
            return f"!llvm.ptr<{space}>" if space else "!llvm.ptr"
        case PointerType(pointee, space) if pointee is not None:
            return f"!tt.ptr<{print_type(pointee)}>" if space == 1 else f"!tt.ptr<{print_type(pointee)}, {space}>"
        case MemDescType(shape, element, encoding, space, mutable, allocated):
            parts = ["x".join((*map(str, shape), print_type(element))), print_attribute(encoding)]
            parts += [print_attribute(space), *["mutable"] * mutable]
            parts += ["x".join(map(str, allocated))] if allocated != shape else []
            return f"!ttg.memdesc<{', '.join(parts)}>"
        case DescriptorType(name, block):
            return f"!{name}<{print_type(block)}>"
        case FunctionType(inputs, results):
            return print_signature(inputs, results)
        case TupleType(types):
            return f"tuple<{', '.join(map(print_type, types))}>"
    return str(kind)


def print_signature(inputs: tuple[Type, ...], results: tuple[Type, ...]) -> str:
    """`(i32) -> f32`, the one result without brackets unless it is a function type."""
    texts = [print_type(kind) for kind in results]
    bare = len(texts) == 1 and not isinstance(results[0], FunctionType)
    return f"({', '.join(map(print_type, inputs))}) -> " + (texts[0] if bare else f"({', '.join(texts)})")


def print_attribute(value: Any, *, typed: bool = True) -> str:
    """An attribute; integers without their type where not `typed`, as within a dialect's attribute."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : i64" if typed else str(value)
        case str():
            return quoted(value)
        case FloatAttr(kind, number, bits):
            return f"{_float(number, bits)} : {kind}"
        case tuple():
            return f"[{', '.join(print_attribute(item, typed=typed) for item in value)}]"
        case dict():
            return print_dictionary(value)
        case Symbol(name):
            return "::".join(f"@{quoted(part)}" for part in name.split("::"))
        case Dense(kind, elements):
            texts = [_float(e.value, e.bits) if isinstance(e, FloatAttr) else str(e).lower() for e in elements]
            inner = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
            return f"dense<{inner}> : {print_type(kind)}"
        case DialectAttr(name, parameters):
            inner = ", ".join(f"{key} = {print_attribute(item, typed=False)}" for key, item in parameters)
            return f"#{name}<{{{inner}}}>" if parameters else f"#{name}"
    return "unit" if value is UNIT else print_type(value)


def _float(number: float, bits: int | None) -> str:
    return f"{number:e}" if bits is None else f"0x{bits:X}"


def print_dictionary(entries: dict[str, Any]) -> str:
    """`{name = value, flag}`; a name that is not bare is quoted."""
    texts = [
        f"{name if name.isidentifier() and name.isascii() else quoted(name)}"
        + ("" if value is UNIT else f" = {print_attribute(value)}")
        for name, value in entries.items()
    ]
    return f"{{{', '.join(texts)}}}"


class Printer:
    """Prints one module; every other location becomes an alias, defined before the module or behind it."""

    def __init__(self) -> None:
        self._aliases: dict[Location, str] = {}

    def module(self, operation: Operation) -> str:
        """The whole text."""
        body = self._operation(operation, "")
        lines = [f"{alias} = loc({self._place(place)})" for place, alias in self._aliases.items()]
        half = len(lines) // 2
        return "\n".join([*lines[:half], body, *lines[half:], ""])

    def _operation(self, operation: Operation, indent: str) -> str:
        groups: dict[str, int] = {}
        for result in operation.results:
            name = result.name.partition("#")[0]
            groups[name] = groups.get(name, 0) + 1
        names = [f"%{name}:{count}" if count > 1 else f"%{name}" for name, count in groups.items()]
        head = f"{', '.join(names)} = " if names else ""
        text = f'{indent}{head}"{operation.name}"({", ".join(f"%{value.name}" for value in operation.operands)})'
        if operation.successors:
            text += f"[{', '.join(f'^{block.label}' for block in operation.successors)}]"
        # Half of the attributes as properties, half as discardable ones.
        entries = list(operation.attributes.items())
        half = len(entries) // 2
        text += f" <{print_dictionary(dict(entries[:half]))}>" if entries[:half] else ""
        if operation.regions:
            text += f" ({', '.join(self._region(region, indent) for region in operation.regions)})"
        text += f" {print_dictionary(dict(entries[half:]))}" if entries[half:] else ""
        kinds = tuple(v.type for v in operation.operands), tuple(v.type for v in operation.results)
        return f"{text} : {print_signature(*kinds)}{self._location(operation.location)}"

    def _region(self, region: Region, indent: str) -> str:
        lines = ["{"]
        for block in region.blocks:
            lines += [self._label(block, indent)] if block.label else []
            lines += [self._operation(operation, indent + "  ") for operation in block.operations]
        return "\n".join([*lines, f"{indent}}}"])

    def _label(self, block: Block, indent: str) -> str:
        arguments = ", ".join(self._argument(value) for value in block.arguments)
        return f"{indent}^{block.label}{f'({arguments})' if arguments else ''}:  // no predecessors"

    def _argument(self, value: Value) -> str:
        return f"%{value.name}: {print_type(value.type)}{self._location(value.location)}"

    def _location(self, place: Location) -> str:
        if place == UNKNOWN:
            return " loc(unknown)"
        if place not in self._aliases and len(place.name) % 2:
            return f" loc({self._place(place)})"
        return f" loc({self._aliases.setdefault(place, f'#loc{len(self._aliases)}')})"

    def _place(self, place: Location) -> str:
        if place.caller is not None:
            callee = place._replace(caller=None)
            return f"callsite({self._place(callee)} at {self._place(place.caller)})"
        if place.name:
            inner = place._replace(name="")
            return f"{quoted(place.name)}({self._place(inner)})" if inner != UNKNOWN else quoted(place.name)
        return f"{quoted(place.file)}:{place.line}:{place.column}" if place != UNKNOWN else "unknown"
