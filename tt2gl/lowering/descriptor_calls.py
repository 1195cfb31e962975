"""The calls that make tensor descriptors and load, store and add through them, read from their syntax.

What is not written out in a call, and uses of descriptors other than these, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.lowering.expressions import Expression, expression
from tt2gl.lowering.pointer_calls import Refused

_MAKE = re.compile(r"(^|\.)(language|tl)(\.core)?\.(_experimental_)?make_tensor_descriptor$")
_FUNCTION = re.compile(r"(^|\.)(language|tl)(\.core)?\.(_experimental_)?(load|store)_tensor_descriptor$")
_ATOMICS = tuple(f"atomic_{kind}" for kind in ("add", "min", "max", "and", "or", "xor"))
_METHODS = ("load", "store", "gather", "scatter", *_ATOMICS)
_SIGNATURES: Mapping[str, tuple[str, ...]] = {
    "make": ("base", "shape", "strides", "block_shape", "padding_option"),
    "load": ("offsets",),
    "store": ("offsets", "value"),
    "gather": ("x_offsets", "y_offset"),
    "scatter": ("value", "x_offsets", "y_offset"),
    **dict.fromkeys(_ATOMICS, ("offsets", "value")),
}


@dataclass(frozen=True, eq=False)
class Extent:
    """One dimension of a descriptor: how far it reaches, its stride, and the block's extent."""

    bound: Expression
    stride: Expression
    block: Expression


@dataclass(frozen=True, eq=False)
class Descriptor:
    """`tl.make_tensor_descriptor(...)`; `language` is what stands for `tl`, `other` what a load finds outside."""

    node: cst.Call
    language: str
    base: Expression
    extents: tuple[Extent, ...]
    other: str


@dataclass(frozen=True, eq=False)
class Transfer:
    """A load (`value` is None), store or atomic of a block through the descriptor of that name; `kind`: which.

    Of a gather or scatter the first offset is that of each row.
    """

    node: cst.Call
    name: str
    kind: str
    offsets: tuple[Expression, ...]
    value: Expression | None


def is_make(qualified: Collection[str]) -> bool:
    """Whether one of the names that a call's function resolves to is Triton's `make_tensor_descriptor`."""
    return any(_MAKE.search(name) for name in qualified)


def read_make(node: cst.Call, module: cst.Module) -> Descriptor:
    """A call of `make_tensor_descriptor`. Raises Refused where its lists are not written out."""
    given = _arguments(node, "make", node.args)
    columns = [_elements(node, given, name) for name in ("shape", "strides", "block_shape")]
    if len({len(column) for column in columns}) != 1:
        raise Refused(node, "its shape, strides and block shape differ in length")
    if "base" not in given or not isinstance(node.func, cst.Attribute):
        raise Refused(node, "it has no base, or is not called as an attribute of `triton.language`")
    extents = tuple(Extent(*(expression(part, module) for part in parts)) for parts in zip(*columns, strict=True))
    language = module.code_for_node(node.func.value)
    return Descriptor(node, language, expression(given["base"], module), extents, _other(given.get("padding_option")))


def transferred(node: cst.Call, qualified: Collection[str]) -> cst.BaseExpression | None:
    """The descriptor that a call loads, stores or adds through, if it looks like such a call."""
    if any(_FUNCTION.search(name) for name in qualified):
        return node.args[0].value if node.args and node.args[0].keyword is None else None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS:
        return node.func.value
    return None


def read_transfer(node: cst.Call, name: str, module: cst.Module) -> Transfer:
    """A load, store or atomic through a descriptor. Raises Refused where its offsets are not written out."""
    assert isinstance(node.func, cst.Attribute)
    called = node.func.attr.value
    method = called in _METHODS
    kind = called if method else "store" if "store" in called else "load"
    given = _arguments(node, kind, node.args if method else node.args[1:])
    if missing := [each for each in _SIGNATURES[kind] if each not in given]:
        raise Refused(node, f"a {kind} through it has no `{missing[0]}`")
    by_row = kind in ("gather", "scatter")
    parts = [given["x_offsets"], given["y_offset"]] if by_row else _elements(node, given, "offsets")
    offsets, value = tuple(expression(part, module) for part in parts), given.get("value")
    return Transfer(node, name, kind, offsets, expression(value, module) if value is not None else None)


def _arguments(node: cst.Call, kind: str, args: Sequence[cst.Arg]) -> dict[str, cst.BaseExpression]:
    names = _SIGNATURES[kind]
    given: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(args):
        if arg.star or (arg.keyword is None and index >= len(names)):
            raise Refused(node, "its arguments are not those known")
        given[arg.keyword.value if arg.keyword is not None else names[index]] = arg.value
    if not given.keys() <= set(names):
        raise Refused(node, "its arguments are not those known")
    return given


def _elements(node: cst.Call, given: Mapping[str, cst.BaseExpression], name: str) -> list[cst.BaseExpression]:
    value = given.get(name)
    if not isinstance(value, (cst.Tuple, cst.List)):
        raise Refused(node, f"its `{name}` is not written out as a list")
    if any(isinstance(element, cst.StarredElement) for element in value.elements):
        raise Refused(node, f"its `{name}` is unpacked")
    return [element.value for element in value.elements]


def _other(padding: cst.BaseExpression | None) -> str:
    if padding is None:
        return "0.0"
    said = padding.evaluated_value if isinstance(padding, cst.SimpleString) else None
    if said not in ("zero", "nan"):
        raise Refused(padding, "its `padding_option` is not written out")
    return "0.0" if said == "zero" else 'float("nan")'
