"""Rule `converted_masks`: a converted mask follows the address and the value that are converted, as Triton has them.

The compiler's frontend computes what is given by name first, and conversions stay in that order, as each has barriers.
A scatter of 128 sums whose masks came first has 18 216 instructions on sm90 for Triton's 17 216, and so 17 152:

tl.atomic_add(out_ptr + at, x, mask=inside)                                                                  # before
gl.atomic_add(gl.convert_layout(out_ptr + at, out_layout), x, gl.convert_layout(inside, out_layout))         # after
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tt2gl.qualified_names import walk

_PLACE = 2


def after_address(node: cst.Call, names: Collection[str]) -> cst.Call:
    """A store or an atomic, the function of one of these names, with its mask by place where the order matters."""
    given = [arg for arg in node.args if arg.keyword is None]
    if not any(_takes_mask(name) for name in names) or len(given) != _PLACE or not any(map(_converts, given)):
        return node
    found = next((arg for arg in node.args if arg.keyword is not None and arg.keyword.value == "mask"), None)
    if found is None or any(arg.star for arg in node.args) or not _converts(found):
        return node
    others = [arg for arg in node.args[_PLACE:] if arg is not found]
    commas = [arg.comma for arg in node.args]
    placed = found.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    args = [*node.args[:_PLACE], placed, *others]
    return node.with_changes(args=[arg.with_changes(comma=comma) for arg, comma in zip(args, commas, strict=True)])


def _takes_mask(name: str) -> bool:
    module, _, function = name.rpartition(".")
    return (
        module.startswith("triton.")
        and (function == "store" or function.startswith("atomic_"))
        and function != "atomic_cas"
    )


def _converts(arg: cst.Arg) -> bool:
    return any(isinstance(node, cst.Attribute) and node.attr.value == "convert_layout" for node in walk(arg.value))
