"""Rule `buffer_ops`: an access by a buffer operation takes a scalar pointer and offsets of 32 bits.

x = tl.load(x_ptr + row * n + cols.to(tl.int64), mask=cols < n, other=0.0)                                    # before
x = gl.amd.cdna3.buffer_load(x_ptr + row * n, cols.to(gl.int64).to(gl.int32), mask=cols < n)                  # after

tl.store(x_ptr + cols, x + 1, mask=cols < n)                                                                  # before
gl.amd.cdna3.buffer_store(gl.cast(x + 1, x_ptr.dtype.element_ty), x_ptr, cols, mask=cols < n)                 # after
"""

from __future__ import annotations

import libcst as cst

from tt2gl.plan import BufferAccess
from tt2gl.rewrite.build import bare, expression
from tt2gl.rewrite.dots import argument
from tt2gl.words import ATOMIC_ADD, SIGNED_ATOMIC_ADD

_RUN_TIME = (cst.Call, cst.Subscript)


def atomic_add_source(module: str) -> str:
    """The function for sums that go by buffer operations of a module under some launches only, by their type."""
    return f'''@gluon.jit
def {ATOMIC_ADD}(ptr, offsets, val, mask=None, sem: gl.constexpr = None, scope: gl.constexpr = None):
    """An atomic sum, by a buffer operation for the types of elements that there is one for."""
    element: gl.constexpr = ptr.dtype.element_ty
    if element == gl.float32 or element == gl.float64:
        return {module}.buffer_atomic_add(ptr, offsets, val, mask=mask, sem=sem, scope=scope)
    else:
        return gl.atomic_add(ptr + offsets, val, mask=mask, sem=sem, scope=scope)
'''


def signed_atomic_add_source(module: str) -> str:
    """The function for sums of signed integers: the buffer operations of a module are of unsigned ones."""
    return f'''@gluon.jit
def {SIGNED_ATOMIC_ADD}(ptr, offsets, val, mask=None, sem: gl.constexpr = None, scope: gl.constexpr = None):
    """An atomic sum by a buffer operation, which adds unsigned integers: those have the same bits."""
    element: gl.constexpr = ptr.dtype.element_ty
    unsigned: gl.constexpr = gl.uint32 if element == gl.int32 else gl.uint64
    base, val = ptr.to(gl.pointer_type(unsigned), bitcast=True), val.to(unsigned, bitcast=True)
    old = {module}.buffer_atomic_add(base, offsets, val, mask=mask, sem=sem, scope=scope)
    return old.to(element, bitcast=True)
'''


def one_side(node: cst.BaseExpression, stays: str) -> cst.BaseExpression:
    """A sum without the scalar pointer on its other side; what stays keeps the sum's parentheses."""
    if not isinstance(node, cst.BinaryOperation):
        return node
    kept = node.left if stays == "left" else node.right
    return kept if kept.lpar or not node.lpar else kept.with_changes(lpar=node.lpar, rpar=node.rpar)


def on_base(offsets: cst.BaseExpression, base: str) -> cst.BaseExpression:
    """Pointers, of a scalar one and offsets."""
    return cst.BinaryOperation(
        cst.Name(base), cst.Add(), bare(offsets), lpar=[cst.LeftParen()], rpar=[cst.RightParen()]
    )


def narrowed(node: cst.BaseExpression, dtype: str) -> cst.BaseExpression:
    """A term of an offset in as many bits as that has."""
    return cast(node, dtype, isinstance(node, _RUN_TIME))


def cast(node: cst.BaseExpression, dtype: str, method: bool) -> cst.BaseExpression:
    """A value of another dtype; what may be a constant of the compilation has no methods."""
    if method and (isinstance(node, (*_RUN_TIME, cst.Name, cst.Attribute)) or node.lpar):
        return cst.Call(cst.Attribute(node, cst.Name("to")), [cst.Arg(expression(dtype))])
    return cst.Call(expression("gl.cast"), [cst.Arg(bare(node)), cst.Arg(expression(dtype))])


def by_buffer(node: cst.Call, access: BufferAccess, base: cst.BaseExpression) -> cst.Call:
    """A load, store or atomic by a buffer operation; its address is an offset already."""
    offset = argument(node, "pointer", 0)
    assert offset is not None
    arguments: list[tuple[str, cst.BaseExpression]] = [("", base), ("", offset)]
    kind = access.function.rpartition(".buffer_")[2]
    if kind == "load":
        given = [("mask", "mask", 1), ("other", "other", 2), ("cache", "cache_modifier", 5)]
    elif kind == "store":
        arguments.insert(0, ("", _stored(node, "value", access)))
        given = [("mask", "mask", 2), ("cache", "cache_modifier", 4)]
    else:
        arguments.append(("", _stored(node, "val", access)))
        given = [("mask", "mask", 2), ("sem", "sem", 3), ("scope", "scope", 4)]
    for name, authors, place in given:
        value = argument(node, authors, place)
        left_out = name == "mask" and not access.masked or name == "other" and not access.keeps_other
        if value is not None and not left_out and not (isinstance(value, cst.Name) and value.value == "None"):
            arguments.append((name, value))
    return node.with_changes(func=expression(access.function), args=_spaced(node, arguments))


def in_ring(node: cst.Call) -> cst.Call:
    """A load by a buffer operation whose tile goes through a ring: its pipeline asks for offsets and hints by name.

    Which operation it is `by` is told too, for tiles that come to registers.
    """
    pointer, offsets, *others = node.args
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    made = [cst.Arg(node.func, keyword=cst.Name("by"), equal=equal, comma=pointer.comma)]
    made.append(offsets.with_changes(keyword=cst.Name("offsets"), equal=equal))
    for each in others:
        is_hint = each.keyword is not None and each.keyword.value == "cache"
        made.append(each.with_changes(keyword=cst.Name("cache_modifier")) if is_hint else each)
    return node.with_changes(args=[pointer, *made])


def _stored(node: cst.Call, name: str, access: BufferAccess) -> cst.BaseExpression:
    value = argument(node, name, 1)
    assert value is not None
    if not access.element or _is_cast(value, access.element):
        return value
    return cast(value, access.element, not access.constant)


def _is_cast(value: cst.BaseExpression, dtype: str) -> bool:
    """Whether a value says itself that it is of that dtype, converted to another layout or not."""
    if not isinstance(value, cst.Call) or not value.args:
        return False
    first = value.args[0].value
    if isinstance(value.func, cst.Attribute) and value.func.attr.value == "convert_layout":
        return _is_cast(first, dtype)
    if isinstance(value.func, cst.Attribute) and value.func.attr.value == "full" and len(value.args) > 2:
        return cst.Module([]).code_for_node(value.args[2].value) == dtype
    if isinstance(value.func, cst.Attribute) and value.func.attr.value == "cast" and len(value.args) == 2:
        return cst.Module([]).code_for_node(value.args[1].value) == dtype
    method = isinstance(value.func, cst.Attribute) and value.func.attr.value == "to" and len(value.args) == 1
    return method and cst.Module([]).code_for_node(first) == dtype


def _spaced(node: cst.Call, arguments: list[tuple[str, cst.BaseExpression]]) -> list[cst.Arg]:
    """Arguments, those with a name by it, broken as the author broke the call's."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    commas = [each.comma for each in node.args[:-1] if isinstance(each.comma, cst.Comma)]
    comma = commas[0] if commas else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = node.args[-1].comma if node.args else cst.MaybeSentinel.DEFAULT
    made = [
        cst.Arg(bare(value), keyword=cst.Name(name), equal=equal) if name else cst.Arg(bare(value))
        for name, value in arguments
    ]
    return [*(each.with_changes(comma=comma) for each in made[:-1]), made[-1].with_changes(comma=last)]
