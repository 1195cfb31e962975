"""Hypothesis strategies: types, attributes and whole modules, and what to compare two modules by."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tt2gl.ir.attributes import UNIT, Dense, DialectAttr, FloatAttr, Symbol
from tt2gl.ir.constants import float_from_bits
from tt2gl.ir.operations import UNKNOWN, Block, Location, Operation, Region, Value
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

texts = st.text(st.characters(codec="utf-8"), max_size=6)
sizes = st.integers(1, 4096)
shapes = st.lists(sizes, max_size=3).map(tuple)
keys = st.sampled_from(["order", "vec", "isTransposed", "a", "parent", "block_2"])

integers = st.builds(IntegerType, st.sampled_from([1, 8, 16, 32, 64]), st.sampled_from(["", "s", "u"]))
floats = st.sampled_from(["f16", "bf16", "f32", "f64", "tf32", "f8E4M3FN", "f8E5M2", "f4E2M1FN"]).map(FloatType)
pointers = st.builds(PointerType, st.one_of(integers, floats), st.integers(1, 5))
scalars = st.one_of(integers, floats, pointers, st.just(IndexType()), st.just(PointerType(None, 3)))

parameters = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9999), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3).map(lambda made: DialectAttr("ttg.slice", tuple(made.items()))),
    ),
    max_leaves=5,
)
encodings = st.dictionaries(keys, parameters, max_size=3).map(lambda made: DialectAttr("ttg.any", tuple(made.items())))
tensors = st.builds(TensorType, shapes, scalars, st.none() | encodings)
views = st.builds(
    MemDescType, shapes, scalars, encodings, st.just(DialectAttr("ttg.shared_memory")), st.booleans(), shapes
).filter(lambda kind: bool(kind.shape) and bool(kind.alloc_shape))
descriptors = st.builds(DescriptorType, st.sampled_from(["tt.tensordesc", "ttng.tensordesc_im2col"]), tensors)
values = st.one_of(
    scalars,
    tensors,
    views,
    descriptors,
    st.builds(VectorType, st.lists(sizes, min_size=1, max_size=2).map(tuple), scalars),
    st.sampled_from([NoneType(), DialectType("ttg.async.token"), DialectType("llvm.struct", "(i32, f32)")]),
)
types = st.recursive(
    values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda kinds: TupleType(tuple(kinds))),
        st.builds(FunctionType, st.lists(inner, max_size=2).map(tuple), st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=4,
)

decimals = st.builds(
    FloatAttr, st.just("f32"), st.floats(allow_nan=False, allow_infinity=False).map(lambda x: float(f"{x:e}"))
)
patterns = st.one_of(
    st.integers(0, 2**32 - 1).map(lambda bits: float_from_bits("f32", bits)),
    st.integers(0, 255).map(lambda bits: float_from_bits("f8E4M3FN", bits)),
)
dense = st.one_of(
    st.integers(-9, 99).map(lambda n: Dense(TensorType((64,), IntegerType(32)), (n,))),
    st.lists(st.booleans(), min_size=2, max_size=5).map(
        lambda b: Dense(TensorType((len(b),), IntegerType(1)), tuple(b))
    ),
    patterns.filter(lambda f: f.kind == "f32").map(lambda f: Dense(TensorType((2, 2), FloatType("f32")), (f,))),
    st.just(Dense(TensorType((0,), IntegerType(32)), ())),
).map(lambda made: made if made.elements else Dense(made.type, ()))
symbols = st.lists(texts.filter(lambda name: "::" not in name and ":" not in name), min_size=1, max_size=2).map(
    lambda parts: Symbol("::".join(parts))
)
leaves = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64),
    texts,
    decimals,
    patterns,
    dense,
    symbols,
    types,
    encodings,
    st.just(UNIT),
)
attributes = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)

places = st.builds(Location, texts.filter(bool), st.integers(1, 999), st.integers(0, 120), texts, st.none())
locations = st.recursive(
    st.one_of(st.just(UNKNOWN), places, texts.map(lambda name: Location(name=name))),
    lambda inner: st.builds(lambda callee, caller: callee._replace(caller=caller), places, inner),
    max_leaves=3,
)

# What a module is made of is drawn from few: its shape is what such a test is about.
_BLOCKED = DialectAttr("ttg.blocked", (("sizePerThread", (1, 8)), ("order", (1, 0))))
_KINDS = (
    IntegerType(32),
    FloatType("f16"),
    PointerType(FloatType("bf16")),
    TensorType((4, 64), PointerType(FloatType("f32")), _BLOCKED),
    MemDescType((2, 64), FloatType("f16"), _BLOCKED, DialectAttr("ttg.shared_memory"), True, (4, 64)),
    FunctionType((IntegerType(1),), ()),
)
_kinds: st.SearchStrategy[Type] = st.sampled_from(_KINDS)
_FILE = Location("kernel.py", 3, 7)
_places = st.sampled_from(
    [
        UNKNOWN,
        _FILE,
        Location("a", 12),
        _FILE._replace(name="mask"),
        Location("b.py", 1, 2, "x", _FILE._replace(caller=_FILE)),
    ]
)
_attributes = st.dictionaries(
    st.sampled_from(["value", "axis", "odd name", "tt.divisibility"]),
    st.sampled_from([1, True, "text }> : (", (1, 2), _BLOCKED, {"deep": {"deeper": UNIT}}, UNIT, *_KINDS]),
    max_size=3,
)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """A module: regions use what they define, in any order, and what is around them."""
    return _finished(draw, (), [], [], 0)


def _results(draw: st.DrawFn, number: int, place: Location) -> tuple[Value, ...]:
    kinds = draw(st.lists(_kinds, max_size=3))
    stem = draw(st.sampled_from([str(number), f"x_{number}", f"arg{number}.y-"]))
    names = [stem] if len(kinds) == 1 else [f"{stem}#{index}" for index in range(len(kinds))]
    return tuple(Value(name, kind, place) for name, kind in zip(names, kinds, strict=True))


def _finished(
    draw: st.DrawFn, results: tuple[Value, ...], visible: list[Value], blocks: list[Block], depth: int
) -> Operation:
    operands = tuple(draw(st.lists(st.sampled_from(visible), max_size=3))) if visible else ()
    count = 1 if not depth else draw(st.integers(0, 2)) if depth < 3 else 0
    return Operation(
        draw(st.sampled_from(["arith.addi", "scf.for", "ttg.local_load", "tt.reduce.return"]))
        if depth
        else "builtin.module",
        operands,
        results,
        draw(_attributes),
        tuple(_region(draw, visible, depth + 1) for _ in range(count)),
        tuple(draw(st.lists(st.sampled_from(blocks), max_size=2))) if blocks else (),
        results[0].location if results else draw(_places),
    )


def _region(draw: st.DrawFn, visible: list[Value], depth: int) -> Region:
    """Names go on from what is visible, so that regions beside each other use the same ones again."""
    region, inside = Region(), list(visible)
    planned: list[tuple[Block, tuple[Value, ...]]] = []
    for index in range(draw(st.integers(1, 2)) if depth > 1 else 1):
        arguments = tuple(
            Value(f"a{len(inside) + n}", kind, draw(_places))
            for n, kind in enumerate(draw(st.lists(_kinds, max_size=2)))
        )
        inside += arguments
        region.blocks.append(Block(arguments, [], f"bb{index}"))
        for _ in range(draw(st.integers(1, 3))):
            results = _results(draw, len(inside), draw(_places))
            inside += results
            planned.append((region.blocks[-1], results))
    labelled = [block for block in region.blocks if block.label]
    for block, results in planned:
        block.operations.append(_finished(draw, results, inside, labelled, depth))
    return region


def described(operation: Operation) -> Any:
    """All of an operation as values that compare by content; what it refers to by where that was met first."""
    numbers: dict[int, int] = {}

    def number(thing: object) -> int:
        return numbers.setdefault(id(thing), len(numbers))

    def value(v: Value) -> Any:
        return number(v), v.name, v.type, v.location

    def one(op: Operation) -> Any:
        return (
            op.name,
            [value(v) for v in op.results],
            [value(v) for v in op.operands],
            dict(op.attributes),
            [number(block) for block in op.successors],
            op.location,
            [
                [
                    (number(b), b.label, [value(v) for v in b.arguments], [one(o) for o in b.operations])
                    for b in r.blocks
                ]
                for r in op.regions
            ],
        )

    return one(operation)
