"""The calls that make, move and use block pointers, read from their syntax.

Triton's `make_block_ptr` wants tuples of one length, offsets of 32 bits and a compile-time block shape; `load` and
`store` check the dimensions of `boundary_check` alone. What is not written out in the call is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import libcst as cst

from tt2gl.lowering.expressions import Expression, called, expression, literal
from tt2gl.syntax import ACCESSES

_MAKE = re.compile(r"(^|\.)(language|tl)(\.core)?\.make_block_ptr$")


UNKNOWN_CHECK = "its `boundary_check` is not written out"
"""Why block pointers stay where it is open which dimensions are checked."""


class Refused(Exception):
    """Block pointers that stay: `node` is where, `reason` completes "its block pointers stay: ..."."""

    def __init__(self, node: cst.CSTNode, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Dimension:
    """One dimension of a block pointer."""

    bound: Expression
    stride: Expression
    offset: Expression
    block: Expression


@dataclass(frozen=True, eq=False)
class Make:
    """`tl.make_block_ptr(...)`, or a parameter that is given one; `language` is what stands for `tl`.

    `optional`: a parameter that is given None under some flag.
    """

    node: cst.Call | cst.Param
    language: str
    base: Expression
    dimensions: tuple[Dimension, ...]
    optional: bool = False


@dataclass(frozen=True, eq=False)
class Advance:
    """`tl.advance(pointer, offsets)`, or `pointer.advance(offsets)`."""

    node: cst.Call
    pointer: cst.Name
    offsets: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Access:
    """`tl.load` or `tl.store` through a block pointer: a variable, or made on the spot.

    `checked`: the dimensions of its boundary check; `every`: those, if there are no others. `other`: what a load finds
    outside, as source. `where` is the pointer's argument; `check` and `padding` are those arguments, where given, with
    the argument before each.
    """

    node: cst.Call
    language: str
    pointer: cst.Name | Make
    checked: tuple[int, ...]
    other: str | None
    where: cst.Arg
    check: cst.Arg | None
    padding: cst.Arg | None
    every: bool = False


_SIGNATURES = {
    "make_block_ptr": ("base", "shape", "strides", "offsets", "block_shape", "order"),
    "advance": ("base", "offsets"),
    "method": ("offsets",),
    **ACCESSES,
}


def is_make(qualified: Collection[str]) -> bool:
    """Whether one of the names that a call's function resolves to is Triton's `make_block_ptr`."""
    return any(_MAKE.search(name) for name in qualified)


def read_make(node: cst.Call, module: cst.Module) -> Make:
    """A call of `make_block_ptr`. Raises Refused where its tuples are not written out."""
    given = _arguments(node, "make_block_ptr")
    names = ("shape", "strides", "offsets", "block_shape")
    single = any(_length(given.get(name)) == 1 for name in names)
    columns = [_elements(node, given, name, single=single) for name in names]
    if len({len(column) for column in columns}) != 1:
        raise Refused(node, "its shape, strides, offsets and block shape differ in length")
    dimensions = tuple(Dimension(*(expression(part, module) for part in parts)) for parts in zip(*columns, strict=True))
    if "base" not in given:
        raise Refused(node, "it has no base")
    return Make(node, _language(node), expression(given["base"], module), dimensions)


def read_advance(node: cst.Call, module: cst.Module) -> Advance:
    """A call of `advance` on a variable. Raises Refused."""
    method = isinstance(node.func, cst.Attribute) and len(node.args) == 1
    given = _arguments(node, "method" if method else "advance")
    pointer = node.func.value if isinstance(node.func, cst.Attribute) and method else given.get("base")
    if not isinstance(pointer, cst.Name):
        raise Refused(node, "what is advanced is not a variable")
    offsets = tuple(expression(part, module) for part in _elements(node, given, "offsets"))
    return Advance(node, pointer, offsets)


def read_access(node: cst.Call, pointer: cst.Name | Make) -> Access:
    """A load or store through a block pointer. Raises Refused where what it checks or pads with is not written out."""
    name = called(node)
    given = _arguments(node, name)
    named = {arg.keyword.value: arg for arg in node.args if arg.keyword is not None}
    if not {"boundary_check", "padding_option"} & given.keys() <= named.keys():
        raise Refused(node, "its `boundary_check` or `padding_option` is not given by name")
    checked, every = _checked(node, given.get("boundary_check"))
    if every and isinstance(pointer, Make) and len(pointer.dimensions) != len(checked):
        raise Refused(node, UNKNOWN_CHECK)
    other = _other(node, given.get("padding_option")) if name == "load" else None
    where = next(arg for arg in node.args if arg.value is given[_SIGNATURES[name][0]])
    return Access(
        node,
        _language(node),
        pointer,
        checked,
        other,
        where,
        named.get("boundary_check"),
        named.get("padding_option"),
        every,
    )


def is_plain(node: cst.Call) -> bool:
    """Whether a load or store has arguments that those through block pointers have not."""
    given = _arguments(node, called(node))
    return any(name in given and not is_none(given[name]) for name in ("mask", "other"))


def pointer_argument(node: cst.Call, name: str) -> cst.BaseExpression | None:
    """The first argument of a load, store or advance, by place or keyword."""
    first = _SIGNATURES[name][0]
    for index, arg in enumerate(node.args):
        if arg.star:
            return None
        if arg.keyword.value == first if arg.keyword is not None else index == 0:
            return arg.value
    return None


def _arguments(node: cst.Call, name: str) -> dict[str, cst.BaseExpression]:
    given: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(node.args):
        if arg.star:
            raise Refused(node, "its arguments are unpacked")
        if arg.keyword is None and index >= len(_SIGNATURES[name]):
            raise Refused(node, f"`{name}` has too many arguments")
        given[arg.keyword.value if arg.keyword is not None else _SIGNATURES[name][index]] = arg.value
    return given


def _length(value: cst.BaseExpression | None) -> int | None:
    return len(value.elements) if isinstance(value, (cst.Tuple, cst.List)) else None


def _may_be_tuple(value: cst.BaseExpression) -> bool:
    return not value.lpar and not isinstance(value, (cst.BinaryOperation, cst.Integer))


def _elements(
    node: cst.Call, given: dict[str, cst.BaseExpression], name: str, *, single: bool = False
) -> list[cst.BaseExpression]:
    """The elements of a tuple as written; with `single`, Triton takes `(x)` for `(x,)`, and so is it here."""
    value = given.get(name)
    if single and value is not None and _length(value) is None and not _may_be_tuple(value):
        return [value]
    if not isinstance(value, (cst.Tuple, cst.List)):
        raise Refused(node, f"its `{name}` is not written out as a tuple")
    if any(isinstance(element, cst.StarredElement) for element in value.elements):
        raise Refused(node, f"its `{name}` is unpacked")
    return [element.value for element in value.elements]


def _language(node: cst.Call) -> str:
    function = node.func
    if isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name):
        return function.value.value
    raise Refused(node, "it is not called as an attribute of `triton.language`")


def _checked(node: cst.Call, value: cst.BaseExpression | None) -> tuple[tuple[int, ...], bool]:
    """The dimensions checked, and whether they have names, so that they are known only where they are all.

    Triton wants them to differ, so that a block of as many dimensions is checked in each.
    """
    if value is None or is_none(value):
        return (), False
    listed = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
    elements = [element.value for element in listed] if isinstance(value, (cst.Tuple, cst.List)) else [value]
    if any(isinstance(element, cst.StarredElement) for element in listed):
        raise Refused(node, UNKNOWN_CHECK)
    numbers = [literal(element) for element in elements]
    if listed and any(isinstance(element, cst.Name) for element in elements):
        return tuple(range(len(elements))), True
    if any(number is None or number < 0 for number in numbers):
        raise Refused(node, UNKNOWN_CHECK)
    return tuple(sorted({number for number in numbers if number is not None})), False


def _other(node: cst.Call, value: cst.BaseExpression | None) -> str:
    """What Triton leaves open (no padding asked for) its backends fill with zeros: say so.

    What has a name is known when the kernel is compiled: it is asked there.
    """
    if value is None or is_none(value):
        return "0.0"
    if isinstance(value, cst.Name):
        return f'float("nan") if {value.value} == "nan" else 0.0'
    padding = value.evaluated_value if isinstance(value, cst.SimpleString) else None
    if padding in ("", "zero"):
        return "0.0"
    if padding == "nan":
        return 'float("nan")'
    raise Refused(node, "its `padding_option` is not written out")


def is_none(node: cst.BaseExpression) -> bool:
    """Whether an expression is `None`."""
    return isinstance(node, cst.Name) and node.value == "None"
