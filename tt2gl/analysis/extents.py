"""What a launch says of a value's extents, and of the elements behind its parameters."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

from tt2gl.analysis.choices import conditional
from tt2gl.analysis.graph import Node, sources
from tt2gl.integers import integer
from tt2gl.launches import Launch

# Types of one bit, as launches spell them.
_TRUTH_VALUES = ("i1", "u1")


def pointee_bits(launch: Launch, name: str) -> int:
    """Bits of what a pointer parameter points to, as its dtype says them; 0 where it is no pointer.

    0 for truth values, too: their dtype says one bit, and they lie in bytes.
    """
    return _pointee_bits(launch.signature.get(name, ""))


# Asked of each parameter for each access under each launch.
@functools.cache
def _pointee_bits(pointer: str) -> int:
    kind = _pointee(pointer)
    if not pointer.startswith("*") or kind in _TRUTH_VALUES:
        return 0
    if kind.startswith("fp8"):
        return 8
    digits = "".join(character for character in kind if character.isdigit())
    return int(digits or 0)


def is_truth(launch: Launch, name: str | None) -> bool:
    """Whether a pointer parameter points to truth values."""
    return pointee(launch, name) in _TRUTH_VALUES


def pointee(launch: Launch, name: str | None) -> str:
    """The type of what a pointer parameter points to; empty where there is none, as where a helper has the pointer."""
    return _pointee(launch.signature.get(name or "", ""))


def _pointee(pointer: str) -> str:
    return pointer.removeprefix("*").removeprefix("k")


def element_bits(launch: Launch, name: str) -> int:
    """Bits of an element of what a pointer or a descriptor parameter points to, 0 where it is neither."""
    kind = launch.signature.get(name, "")
    if not kind.startswith("tensordesc<"):
        return pointee_bits(launch, name)
    element = kind.removeprefix("tensordesc<").partition("[")[0]
    digits = "".join(character for character in element.removeprefix("fp8").removeprefix("bf") if character.isdigit())
    return 8 if element.startswith("fp8") else int(digits or 0)


def named_dims(node: Node, launches: Sequence[Launch], shapes: Mapping[int, tuple[int, ...]]) -> tuple[str, ...]:
    """A node's extents as source: the author's words, else a constexpr of that value, else the number.

    Where they are two under launches that a parameter tells apart, both are said: `(BLOCK_N if PER_ROW else 1)`.
    A launch without the node may have none of an extent, 0 under a flag say, and its layouts are made all the same.
    """
    named: list[str] = []
    for place, text in enumerate(node.dims):
        extents = {index: shape[place] for index, shape in shapes.items() if place < len(shape)}
        if text is not None and all(evaluated(text, launches[i]) in (None, n) for i, n in extents.items()):
            known = integer(_expression(text), {})
            named.append(text if known is None else str(known))
            continue
        if alike := _alike(node, extents, launches):
            named.append(alike)
            continue
        own = node.shape[place]
        said = {i: _said(node, n, [k for k in extents if extents[k] == n], launches) for i, n in extents.items()}
        both = conditional(said, launches)
        named.append(f"({both})" if both is not None else _said(node, own, [*extents], launches))
    empty = [any(evaluated(text, launch) == 0 for launch in launches) for text in named]
    return tuple(f"max({text}, 1)" if none else text for text, none in zip(named, empty, strict=True))


def _alike(node: Node, extents: Mapping[int, int], launches: Sequence[Launch]) -> str | None:
    """A constexpr that is the extent under each launch, where that is not 1 under all."""
    parameters = launches[0].constexprs if any(extent > 1 for extent in extents.values()) else ()
    return _likely(node, [p for p in parameters if all(launches[i].constexprs.get(p) == n for i, n in extents.items())])


def _said(node: Node, extent: int, indices: Sequence[int], launches: Sequence[Launch]) -> str:
    """A constexpr of that value under some launches, else the number."""
    parameters = launches[0].constexprs if extent > 1 else ()
    equal = [p for p in parameters if all(launches[i].constexprs.get(p) == extent for i in indices)]
    return _likely(node, equal) or str(extent)


def _likely(node: Node, equal: Sequence[str]) -> str | None:
    """The first of several constexprs, or the first that is an extent of what the node is made of.

    A launch may have as many heads as rows in a tile; what a mask says of the tile tells which it is.
    """
    if len(equal) > 1:
        used = {text for each in sources(node) for text in each.dims}
        equal = [name for name in equal if name in used] or equal
    return next(iter(equal), None)


def evaluated(text: str, launch: Launch) -> int | None:
    """An extent's value under a launch; None where it takes more than the launch's constexprs to know."""
    return integer(_expression(text), launch.constexprs)


def doubled(text: str) -> str:
    """An extent twice, as source: `BLOCK * 4` of `BLOCK * 2`."""
    match _expression(text):
        case ast.Constant(value=int() as number):
            return str(2 * number)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() as number)):
            return ast.unparse(ast.BinOp(left, ast.Mult(), ast.Constant(2 * number)))
    return ast.unparse(ast.BinOp(_expression(text), ast.Mult(), ast.Constant(2)))


# Few texts, asked for under every launch for each value of those extents.
@functools.lru_cache(maxsize=256)
def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
