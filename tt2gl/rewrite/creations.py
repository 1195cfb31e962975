"""Rule `creations`: a call that makes a tensor says its layout.

cols = gl.arange(0, BLOCK)                        # before
cols = gl.arange(0, BLOCK, layout=row_layout)     # after

counts = x.histogram(BINS)                              # before: a tensor's method, which can be told none
counts = gl.histogram(x, BINS, layout=row_layout)       # after
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from tt2gl.rewrite.build import bare, expression

_PADDING = 4
"""Where `padding_option` stands among the arguments of a descriptor's creation."""


def with_layout(
    call: cst.BaseExpression, layout: str, mover: str = "tma", is_method: bool = False
) -> cst.BaseExpression:
    """The creating call with its layout; `mover`: what copies tiles through descriptors. `is_method`: of a tensor.

    A descriptor's may be Triton's function under a name that the file imports: what is told a layout is Gluon's. AMD's
    data mover has zeros outside, and is not told so.
    """
    if isinstance(call, cst.Call) and _name(call) == "make_tensor_descriptor":
        call = _padded_by_name(call.with_changes(func=expression(f"{mover}.make_tensor_descriptor")))
        if mover == "tdm":
            call = without_keyword(call, "padding_option")
    if is_method and isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and _name(call) == "histogram":
        own = cst.Arg(bare(call.func.value))
        call = call.with_changes(func=expression("gl.histogram"), args=[own, *call.args])
    return with_keywords(call, [("layout", layout)])


def _name(call: cst.Call) -> str:
    """The last part of the name of what is called; empty where that has none."""
    part = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return part.value if isinstance(part, cst.Name) else ""


def _padded_by_name(call: cst.Call) -> cst.Call:
    """The creation of a descriptor whose `padding_option` has its name: in its place Gluon has the layout."""
    args = list(call.args)
    if len(args) > _PADDING and args[_PADDING].keyword is None:
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        args[_PADDING] = args[_PADDING].with_changes(keyword=cst.Name("padding_option"), equal=equal)
    return call.with_changes(args=args)


def without_keyword(call: cst.Call, keyword: str) -> cst.Call:
    """A call without one of its keyword arguments."""
    kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != keyword]
    if kept and len(kept) < len(call.args):
        kept[-1] = kept[-1].with_changes(
            comma=call.args[-1].comma, whitespace_after_arg=call.args[-1].whitespace_after_arg
        )
    return call.with_changes(args=kept)


def with_keywords(call: cst.BaseExpression, keywords: Iterable[tuple[str, str]]) -> cst.BaseExpression:
    """A call with keyword arguments added, in the way its own arguments are laid out."""
    if not isinstance(call, cst.Call):
        return call
    args = list(call.args)
    for keyword, value in keywords:
        if any(arg.keyword is not None and arg.keyword.value == keyword for arg in args):
            continue
        trailing: cst.Comma | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT
        if args:
            trailing = args[-1].comma
            between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
            if len(args) > 1 and isinstance(args[0].comma, cst.Comma):
                between = args[0].comma.whitespace_after
            args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=between))
            if isinstance(trailing, cst.MaybeSentinel):
                # A last argument on a line of its own keeps the closing bracket where it was.
                last = call.args[-1].whitespace_after_arg
                args[-1] = args[-1].with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
                tail = last
            else:
                tail = cst.SimpleWhitespace("")
        else:
            tail = cst.SimpleWhitespace("")
        args.append(
            cst.Arg(
                expression(value),
                keyword=cst.Name(keyword),
                equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
                comma=trailing,
                whitespace_after_arg=tail,
            )
        )
    return call.with_changes(args=args)
