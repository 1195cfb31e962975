"""Operations, regions and blocks: `parse_module` turns generic MLIR text into a `Module`.

One pass. Values, blocks and aliases may be used before the text defines them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tt2gl.ir.attributes import Attribute
from tt2gl.ir.lexer import STRING_TEXT, UndefinedError, unescape
from tt2gl.ir.operations import UNKNOWN, Block, Location, Module, Operation, Region, Value
from tt2gl.ir.parse_locations import LocationParser
from tt2gl.ir.types import FunctionType, Type

_VALUE = rf"%(?:[\w.$-]++|{STRING_TEXT})"
_RESULT = rf"{_VALUE}(?::\d++)?"
_USED = rf"{_VALUE}(?:#\d++)?"
_HEAD = re.compile(
    rf"(?:(?P<results>{_RESULT}(?:, {_RESULT})*+) = )?"
    rf'"(?P<name>[A-Za-z_][\w.$-]*+)"\((?P<operands>(?:{_USED}(?:, {_USED})*+)?)\)'
    r"(?:\[(?P<successors>[^\]]*+)\])?(?P<properties> <(?=\{))?"
)
_NAME_OF_VALUE = re.compile(_USED)
_LABEL = re.compile(r"\^([\w.$-]++)")
# The types of an operation, to its location or the end of the line; with a string in them, they are read each time.
_SIGNATURE = re.compile(r'\([^"\nl]*+(?:l(?!oc\()[^"\nl]*+)*+(?=loc\(|\s*$)', re.MULTILINE)
_LOCATION = re.compile(r"\s*+loc\((#[A-Za-z_$][\w$.-]*+|unknown)\)")


@dataclass(slots=True)
class _Use:
    """An operand whose value the text has not defined yet."""

    operation: Operation
    index: int
    name: str
    type: Type
    position: int


@dataclass(slots=True)
class _Scope:
    """What is defined in a region, and what is used in it before it is defined."""

    values: dict[str, Value] = field(default_factory=dict)
    uses: list[_Use] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)
    # Where blocks are named as successors, and those that are there.
    named: dict[str, int] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)


def parse_module(text: str) -> Module:
    """The module that `text` says, in MLIR's generic form. Raises `ParseError`, with the line, for anything else."""
    return _ModuleParser(text).module()


class _ModuleParser(LocationParser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._scopes = [_Scope()]
        self._signatures: dict[str, FunctionType] = {}
        self._known_locations: dict[str, Location] = {"unknown": UNKNOWN}

    def module(self) -> Module:
        """The whole text."""
        top: Operation | None = None
        while True:
            self.skip()
            if self.position == len(self.text):
                break
            if self.text[self.position] in "#!":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
                continue
            if top is not None:
                raise self.error("expected one operation, the module")
            top = self._operation()
            if top.name != "builtin.module" or len(top.regions) != 1:
                raise self.error("expected a `builtin.module`", 0)
        if top is None:
            raise self.error("expected a module")
        self._leave(self._scopes.pop())
        self.finish_aliases()
        body = top.regions[0].blocks[0].operations if top.regions[0].blocks else []
        functions = {f.attributes["sym_name"]: f for f in body if f.name.endswith(".func")}
        return Module(top, functions)

    def _operation(self) -> Operation:
        self.skip()
        start = self.position
        head = _HEAD.match(self.text, start)
        if head is None:
            raise self.error("expected an operation in generic form")
        self.position = head.end()
        results, name, operands, successors, properties = head.groups()
        attributes: dict[str, Attribute] = {}
        if properties:
            attributes = self.dictionary()
            self.expect(">")
        blocks = tuple(self._successor(label.strip(), start) for label in successors.split(",")) if successors else ()
        regions = self._regions() if self.text.startswith(" (", self.position) else ()
        if self.text.startswith(" {", self.position):
            attributes = attributes | self.dictionary()
        types = self._signature()
        if regions and name.endswith(".func") and not isinstance(attributes.get("sym_name"), str):
            raise self.error("a function without a name", start)
        operation = Operation(name, (), (), attributes, regions, blocks, self._place())
        operation.operands = self._operands(operation, operands, types.inputs, head.start("operands"))
        if results or types.results:
            operation.results = self._results(results or "", types.results, operation.location, start)
        return operation

    def _signature(self) -> FunctionType:
        self.expect(":")
        self.skip()
        found = _SIGNATURE.match(self.text, self.position)
        if found is None:
            return self.function_type()
        known = self._signatures.get(found[0])
        if known is None:
            known = self._signatures[found[0]] = self.function_type()
        else:
            self.position = found.end()
        return known

    def _place(self) -> Location:
        """The location behind an operation or argument, if there is one."""
        found = _LOCATION.match(self.text, self.position)
        if found is None:
            return self.location() if self.at("loc(") else UNKNOWN
        known = self._known_locations.get(found[1])
        if known is None:
            known = self._known_locations[found[1]] = self.location()
        self.position = found.end()
        return known

    def _operands(self, operation: Operation, text: str, types: tuple[Type, ...], position: int) -> tuple[Value, ...]:
        if not text:
            names = []
        elif '"' in text:
            names = _NAME_OF_VALUE.findall(text)
        else:
            names = text.split(", ")
        if len(names) != len(types):
            raise self.error(f"{len(names)} operands and {len(types)} types of them", position)
        found: list[Value] = []
        local = self._scopes[-1].values
        for index, (name, kind) in enumerate(zip(names, types, strict=True)):
            value = local.get(name) or self._outer(name)
            if value is None:
                self._scopes[-1].uses.append(_Use(operation, index, name, kind, position))
                value = Value(name, kind)
            elif value.type is not kind and value.type != kind:
                raise self.error(f"`{name}` is a `{value.type}`, used as a `{kind}`", position)
            found.append(value)
        return tuple(found)

    def _outer(self, name: str) -> Value | None:
        for scope in reversed(self._scopes):
            if name in scope.values:
                return scope.values[name]
        return None

    def _results(self, text: str, types: tuple[Type, ...], location: Location, position: int) -> tuple[Value, ...]:
        if len(types) == 1 and ":" not in text and text:
            return (self._define(text, types[0], location, position),)
        names: list[str] = []
        for part in text.split(", ") if text else []:
            name, _, count = part.rpartition(":") if ":" in part else (part, "", "")
            names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
        if len(names) != len(types):
            raise self.error(f"{len(names)} results and {len(types)} types of them", position)
        return tuple(self._define(name, kind, location, position) for name, kind in zip(names, types, strict=True))

    def _define(self, name: str, kind: Type, location: Location, position: int) -> Value:
        values = self._scopes[-1].values
        if name in values:
            raise self.error(f"`{name}` is defined twice", position)
        plain = name[1:] if name[1] != '"' else unescape(name[1:])
        values[name] = made = Value(plain, kind, location)
        return made

    def _successor(self, label: str, position: int) -> Block:
        scope = self._scopes[-1]
        scope.named.setdefault(label[1:], position)
        return scope.blocks.setdefault(label[1:], Block(label=label[1:]))

    def _regions(self) -> tuple[Region, ...]:
        self.expect("(")
        regions = [self._region()]
        while self.take(","):
            regions.append(self._region())
        self.expect(")")
        return tuple(regions)

    def _region(self) -> Region:
        self.expect("{")
        scope = _Scope()
        self._scopes.append(scope)
        region = Region()
        while not self.take("}"):
            if (label := self.match(_LABEL)) is not None:
                region.blocks.append(self._block(scope, label[1], label.start()))
                continue
            if not region.blocks:
                region.blocks.append(Block())
            region.blocks[-1].operations.append(self._operation())
        self._scopes.pop()
        self._leave(scope)
        return region

    def _block(self, scope: _Scope, label: str, position: int) -> Block:
        """A block's label and arguments; its operations follow."""
        block = scope.blocks.setdefault(label, Block(label=label))
        if label in scope.defined:
            raise self.error(f"block `^{label}` is defined twice", position)
        scope.defined.add(label)
        arguments: list[Value] = []
        if self.take("("):
            while not self.take(")"):
                if arguments:
                    self.expect(",")
                name = self.match(_NAME_OF_VALUE)
                if name is None:
                    raise self.error("expected an argument")
                self.expect(":")
                kind = self.type()
                arguments.append(self._define(name[0], kind, self._place(), name.start()))
        self.expect(":")
        block.arguments = tuple(arguments)
        return block

    def _leave(self, scope: _Scope) -> None:
        """Settle what was used in a region before it was defined, or leave it to the region around."""
        for label, position in scope.named.items():
            if label not in scope.defined:
                raise self.error(f"block `^{label}` is not defined", position, UndefinedError)
        for use in scope.uses:
            value = scope.values.get(use.name)
            if value is None:
                if not self._scopes:
                    raise self.error(f"`{use.name}` is not defined", use.position, UndefinedError)
                self._scopes[-1].uses.append(use)
                continue
            if value.type != use.type:
                raise self.error(f"`{use.name}` is a `{value.type}`, used as a `{use.type}`", use.position)
            operands = list(use.operation.operands)
            operands[use.index] = value
            use.operation.operands = tuple(operands)
