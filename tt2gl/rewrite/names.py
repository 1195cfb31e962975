"""Rule `names`: `tl.*` becomes `gl.*` where Gluon has it; other functions of Triton can be called as they are.

tl.load(x_ptr + cols).to(tl.float32)      # before
gl.load(x_ptr + cols).to(gl.float32)      # after
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import libcst as cst

from tt2gl.rewrite.build import expression
from tt2gl.visitors import Reader

GLUON = frozenset(
    [
        "abs",
        "add",
        "arange",
        "associative_scan",
        "assume",
        "atomic_add",
        "atomic_and",
        "atomic_cas",
        "atomic_max",
        "atomic_min",
        "atomic_or",
        "atomic_xchg",
        "atomic_xor",
        "bfloat16",
        "broadcast",
        "cast",
        "cdiv",
        "ceil",
        "constexpr",
        "cos",
        "device_assert",
        "device_print",
        "div_rn",
        "dtype",
        "erf",
        "exp",
        "exp2",
        "expand_dims",
        "fdiv",
        "float16",
        "float32",
        "float64",
        "float8e4b15",
        "float8e4b8",
        "float8e4nv",
        "float8e5",
        "float8e5b16",
        "floor",
        "fma",
        "full",
        "gather",
        "histogram",
        "inline_asm_elementwise",
        "int1",
        "int16",
        "int32",
        "int64",
        "int8",
        "join",
        "load",
        "log",
        "log2",
        "map_elementwise",
        "max",
        "max_constancy",
        "max_contiguous",
        "maximum",
        "min",
        "minimum",
        "mul",
        "multiple_of",
        "num_programs",
        "permute",
        "pointer_type",
        "program_id",
        "ravel",
        "reduce",
        "reduce_or",
        "reshape",
        "rsqrt",
        "sin",
        "split",
        "sqrt",
        "sqrt_rn",
        "static_assert",
        "static_print",
        "static_range",
        "store",
        "sub",
        "sum",
        "tensor",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
        "umulhi",
        "where",
        "xor_sum",
        "zeros",
        "zeros_like",
    ]
)
"""Names that `triton.language` and `gluon.language` share on every supported Triton."""

_MODULE = "triton.language."

MOVED = {f"{_MODULE}{name}": name for name in ("make_tensor_descriptor", "tensor_descriptor")}
"""Names that Gluon has in the module of what copies tiles."""


def gluon_name(qualified: str) -> str | None:
    """The name in Gluon of a qualified name of Triton's, or None where it stays."""
    short = qualified.removeprefix(_MODULE).removeprefix("math.").removeprefix("core.").removeprefix("standard.")
    return short if qualified.startswith(_MODULE) and short in GLUON else None


def rewrite_name(updated: cst.BaseExpression, qualified: set[str], mover: str = "tma") -> cst.BaseExpression:
    """`updated` under Gluon's module, where all that it can mean is there; `mover`: the one for descriptors.

    Where nothing copies tiles, a descriptor stands in a branch that is never compiled, and stays as it is.
    """
    moved = MOVED if mover else {}
    names = {f"{mover}.{moved[name]}" if name in moved else gluon_name(name) for name in qualified}
    if len(names) != 1 or (name := names.pop()) is None:
        return updated
    lpar, rpar = getattr(updated, "lpar", ()), getattr(updated, "rpar", ())
    return expression(name if "." in name else f"gl.{name}").with_changes(lpar=lpar, rpar=rpar)


# Functions that take a layout in Gluon and not in Triton, so that Triton's do not serve.
_CREATING = frozenset({"arange", "full", "histogram", "make_tensor_descriptor", "zeros", "zeros_like"})


def aliases(module: cst.Module, qualify: Callable[[cst.CSTNode], Collection[str]]) -> dict[str, str]:
    """Names of the module for a function of Triton's that makes tensors, which only Gluon's can stand for.

    A name that some branch leaves None counts, as there it is not called.
    """
    assigned = _Assigned()
    module.visit(assigned)
    meant: dict[str, set[str]] = {}
    for name, value in assigned.found:
        if not (isinstance(value, cst.Name) and value.value == "None"):
            meant.setdefault(name, set()).update(qualify(value) or {""})
    known = {f"{_MODULE}{name}" for name in _CREATING}
    return {name: next(iter(values)) for name, values in meant.items() if len(values) == 1 and values <= known}


class _Assigned(Reader):
    """What the module's own statements assign to single names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, cst.BaseExpression]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Name):
                self.found.append((target.target.value, node.value))
