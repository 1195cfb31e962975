"""Types: `tensor<128x64xf16, #blocked>`, `!tt.ptr<f32>`, `(i32) -> f32`, ... as the objects of `types`."""

from __future__ import annotations

import re
from abc import abstractmethod

from tt2gl.ir.attributes import Attribute
from tt2gl.ir.lexer import STRING_TEXT, Cursor
from tt2gl.ir.types import (
    DescriptorType,
    DialectType,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemDescType,
    NoneType,
    PointerType,
    TensorType,
    TupleType,
    Type,
    VectorType,
)

_KEYWORD = re.compile(
    r"(?:(?P<sign>[su])?i(?P<width>\d+)|(?P<float>bf16|tf32|f\d+\w*)|(?P<word>[A-Za-z_]\w*))(?![\w.])"
)
_DIMENSIONS = re.compile(r"(?:\d++x)*+")
_SHAPE = re.compile(r"\d++(?:x\d++)*+")
_DIALECT = re.compile(r"!([A-Za-z_$][\w$.-]*+)")
# A closing bracket that is no arrow, an opening one, or a string to go past.
_BRACKET = re.compile(rf"{STRING_TEXT}|->|[<>]")

DESCRIPTORS = ("tt.tensordesc", "ttng.tensordesc_im2col")


class TypeParser(Cursor):
    """Reads types. Equal types of one text become the same object."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._types: dict[Type, Type] = {}

    @abstractmethod
    def attribute(self) -> Attribute:
        """The attribute that comes next."""

    @abstractmethod
    def type_alias(self, name: str, position: int) -> Type:
        """What `!name`, read at `position`, stands for."""

    def type(self) -> Type:
        """The type that comes next. Raises `ParseError` where none does."""
        made = self._type()
        return self._types.setdefault(made, made)

    def function_type(self) -> FunctionType:
        """`(a, b) -> c` or `(a) -> (b, c)`."""
        inputs = self._type_list()
        self.expect("->")
        results = self._type_list() if self.at("(") else (self.type(),)
        return FunctionType(inputs, results)

    def balanced(self) -> str:
        """The text in angle brackets that comes next, without them; the cursor goes past it."""
        self.expect("<")
        start, depth = self.position, 1
        for found in _BRACKET.finditer(self.text, start):
            depth += {"<": 1, ">": -1}.get(found[0], 0)
            if not depth:
                self.position = found.end()
                return self.text[start : found.start()]
        raise self.error("`<` without its `>`", start - 1)

    def _type_list(self) -> tuple[Type, ...]:
        self.expect("(")
        types: list[Type] = []
        while not self.take(")"):
            if types:
                self.expect(",")
            types.append(self.type())
        return tuple(types)

    def _type(self) -> Type:
        self.skip()
        start = self.position
        if self.text.startswith("!", start):
            return self._dialect_type()
        if self.text.startswith("(", start):
            return self.function_type()
        found = self.match(_KEYWORD)
        if found is None:
            raise self.error("expected a type")
        if found["width"]:
            return IntegerType(int(found["width"]), found["sign"] or "")
        if found["float"]:
            return FloatType(found["float"])
        match found["word"]:
            case "index":
                return IndexType()
            case "none":
                return NoneType()
            case "tensor":
                self.expect("<")
                return self._tensor()
            case "vector":
                self.expect("<")
                vector = VectorType(self._dimensions(), self.type())
                self.expect(">")
                return vector
            case "tuple":
                return self._tuple()
        raise self.error(f"unknown type `{found[0]}`", start)

    def _dimensions(self) -> tuple[int, ...]:
        found = self.match(_DIMENSIONS)
        return tuple(map(int, found[0].split("x")[:-1])) if found else ()

    def _tensor(self) -> TensorType:
        """A tensor from behind its `<`, to behind its `>`."""
        shape, element = self._dimensions(), self.type()
        encoding = self.attribute() if self.take(",") else None
        self.expect(">")
        return TensorType(shape, element, encoding)

    def _tuple(self) -> TupleType:
        self.expect("<")
        types: list[Type] = []
        while not self.take(">"):
            if types:
                self.expect(",")
            types.append(self.type())
        return TupleType(tuple(types))

    def _dialect_type(self) -> Type:
        start = self.position
        found = self.match(_DIALECT)
        if found is None:
            raise self.error("expected a type")
        name = found[1]
        if "." not in name:
            return self.type_alias(name, start)
        if name == "tt.ptr":
            return self._pointer()
        if name == "llvm.ptr":
            return PointerType(None, int(self.balanced()) if self.at("<") else 0)
        if name == "ttg.memdesc":
            return self._memory()
        if name in DESCRIPTORS:
            return self._descriptor(name)
        return DialectType(name, self.balanced() if self.text.startswith("<", self.position) else "")

    def _pointer(self) -> PointerType:
        self.expect("<")
        pointee = self.type()
        space = self.integer() if self.take(",") else 1
        self.expect(">")
        return PointerType(pointee, space)

    def _memory(self) -> MemDescType:
        self.expect("<")
        shape, element = self._dimensions(), self.type()
        self.expect(",")
        encoding = self.attribute()
        self.expect(",")
        space = self.attribute()
        mutable, allocated = False, shape
        while self.take(","):
            if self.take("mutable"):
                mutable = True
            elif (found := self.match(_SHAPE)) is not None:
                allocated = tuple(map(int, found[0].split("x")))
            else:
                raise self.error("expected `mutable` or the shape of the allocation")
        self.expect(">")
        return MemDescType(shape, element, encoding, space, mutable, allocated)

    def _descriptor(self, kind: str) -> DescriptorType:
        """Its block is a tensor type in brackets, or, from Triton 3.8 on, what would stand in those."""
        self.expect("<")
        if not self.take("tensor<"):
            return DescriptorType(kind, self._tensor())
        block = self._tensor()
        self.expect(">")
        return DescriptorType(kind, block)
