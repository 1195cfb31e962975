"""The types of values, as plain frozen objects that compare by content."""

from __future__ import annotations

from dataclasses import dataclass

from tt2gl.ir.attributes import Attribute


@dataclass(frozen=True)
class IntegerType:
    """`i32`, `ui8`, `si64`: `width` in bits; signless unless said."""

    width: int
    signedness: str = ""

    def __str__(self) -> str:
        return f"{self.signedness}i{self.width}"


@dataclass(frozen=True)
class IndexType:
    """`index`: as wide as an address."""

    def __str__(self) -> str:
        return "index"


@dataclass(frozen=True)
class FloatType:
    """`f16`, `bf16`, `tf32`, `f8E4M3FN`: named as MLIR names them."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class NoneType:
    """`none`."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True)
class PointerType:
    """`!tt.ptr<f16>` or `!llvm.ptr<3>` (no pointee): an address in a numbered space (1 is global)."""

    pointee: Type | None
    space: int = 1

    def __str__(self) -> str:
        return f"!tt.ptr<{self.pointee}>" if self.space == 1 else f"!tt.ptr<{self.pointee}, {self.space}>"


@dataclass(frozen=True)
class TensorType:
    """`tensor<128x64xf16, #blocked>`: `encoding` is the layout, None before layouts are given."""

    shape: tuple[int, ...]
    element: Type
    encoding: Attribute | None = None

    def __str__(self) -> str:
        inner = "x".join((*map(str, self.shape), str(self.element)))
        return f"tensor<{inner}>" if self.encoding is None else f"tensor<{inner}, {self.encoding}>"


@dataclass(frozen=True)
class VectorType:
    """`vector<4xi32>`."""

    shape: tuple[int, ...]
    element: Type

    def __str__(self) -> str:
        return f"vector<{'x'.join((*map(str, self.shape), str(self.element)))}>"


@dataclass(frozen=True)
class MemDescType:
    """`!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable, 4x64x64>`: a view of shared or tensor memory.

    `alloc_shape` is the shape of the allocation that the view is of; equal to `shape` where not printed.
    """

    shape: tuple[int, ...]
    element: Type
    encoding: Attribute
    space: Attribute
    mutable: bool
    alloc_shape: tuple[int, ...]

    def __str__(self) -> str:
        inner = "x".join((*map(str, self.shape), str(self.element)))
        return f"!ttg.memdesc<{inner}, {self.encoding}, {self.space}{', mutable' * self.mutable}>"


@dataclass(frozen=True)
class DescriptorType:
    """`!tt.tensordesc<...>` and its im2col kin (`kind`, the type's name): a descriptor of tiles of a global tensor."""

    kind: str
    block: TensorType

    def __str__(self) -> str:
        return f"!{self.kind}<{self.block}>"


@dataclass(frozen=True)
class FunctionType:
    """`(i32, f32) -> f32`."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.results))})"


@dataclass(frozen=True)
class TupleType:
    """`tuple<i32, f32>`."""

    types: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True)
class DialectType:
    """Any other type of a dialect, such as `!ttg.async.token`: its name and what stands between the brackets."""

    name: str
    body: str = ""

    def __str__(self) -> str:
        return f"!{self.name}<{self.body}>" if self.body else f"!{self.name}"


Type = (
    IntegerType
    | IndexType
    | FloatType
    | NoneType
    | PointerType
    | TensorType
    | VectorType
    | MemDescType
    | DescriptorType
    | FunctionType
    | TupleType
    | DialectType
)


def element_type(kind: Type) -> Type:
    """The type of one element: a tensor's, a view's, or the scalar type itself."""
    return kind.element if isinstance(kind, (TensorType, VectorType, MemDescType)) else kind


def shape_of(kind: Type) -> tuple[int, ...]:
    """The shape of a tensor or view; a scalar's is ()."""
    return kind.shape if isinstance(kind, (TensorType, VectorType, MemDescType)) else ()
