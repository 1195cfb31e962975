"""What each `triton.language` function does to layouts: the tables that the graph builder reads."""

from __future__ import annotations

import re

CREATE = {"arange", "full", "zeros", "zeros_like", "full_like", "histogram"}
"""Make a tensor from nothing; a layout must be said."""

ELEMENTWISE = {
    "abs", "add", "cast", "cdiv", "ceil", "clamp", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "float", "floor",
    "fma", "inline_asm_elementwise", "log", "log2", "maximum", "minimum", "mul", "multiple_of", "max_contiguous",
    "max_constancy", "rsqrt", "sigmoid", "sin", "sqrt", "sqrt_rn", "sub", "to", "umulhi", "where", "tanh", "rand",
    "randn", "randint", "randint4x", "rand4x", "randn4x", "philox", "uint_to_uniform_float", "logical_and",
    "logical_or", "isnan", "map_elementwise", "builtin_max", "builtin_min", "dot_product", "pair_uniform_to_normal",
    "float_to_uint", "swizzle2d", "broadcast",
}  # fmt: skip
"""Element by element: operands and result share one layout. So do operators, called by their methods' names or not."""

REDUCE = {"sum", "max", "min", "xor_sum", "reduce", "reduce_or", "argmax", "argmin"}
_EXTREMES = {"return_indices": 2, "keep_dims": 4}
REDUCTION_OPTIONS: dict[str, dict[str, int]] = {
    "max": _EXTREMES,
    "min": _EXTREMES,
    "sum": {"keep_dims": 2},
    "xor_sum": {"keep_dims": 2},
    "reduce_or": {"keep_dims": 2},
    "argmax": {"keep_dims": 3},
    "argmin": {"keep_dims": 3},
    "reduce": {"keep_dims": 3},
}
"""Where an option of a reduction stands among its arguments, the value's own place being 0."""

SCAN = {"cumsum", "cumprod", "associative_scan", "bitonic_merge", "flip", "sort"}
"""The result has the operand's layout, whose elements meet along a dimension."""

ATOMIC = {
    "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor",
}  # fmt: skip
BROADCAST = {"broadcast_to"}
OPAQUE = {
    "reshape", "view", "ravel", "trans", "permute", "T", "interleave", "gather", "topk", "cat", "squeeze", "unsqueeze",
}  # fmt: skip
"""The compiler infers the result's layout from the operand's."""

IGNORED = {
    "static_assert", "static_print", "device_print", "device_assert", "assume", "debug_barrier", "program_id",
    "num_programs", "constexpr", "print",
}  # fmt: skip

LATER = {
    "make_block_ptr": ("TTG303", "a block pointer (`tl.make_block_ptr`)"),
    "advance": ("TTG303", "a block pointer (`tl.advance`)"),
}
"""Known, and not converted in this version: diagnostic code and what to call it."""


def short_name(qualified: str) -> str:
    """`triton.language.core.tensor.to` is `to`."""
    return qualified.rpartition(".")[2]


def is_operator(name: str) -> bool:
    """Whether a function is the method of an operator: `__lshift__`, say."""
    return name.startswith("__") and name != "__getitem__"


def is_extern_math(qualified: str) -> bool:
    """Whether a function is one of libdevice's or the math module's: elementwise, whatever its name."""
    return "libdevice" in qualified or qualified.startswith(("triton.language.math.", "triton.language.random."))


def gluon_dtype(printed: str) -> str:
    """`float32` for what Triton prints as `fp32`; `int8` for what signatures call `i8`, and `int1` for their `u1`."""
    if printed in ("bf16", "u1"):
        return {"bf16": "bfloat16", "u1": "int1"}[printed]
    return re.sub(r"^(u?)i?(?=\d)|^fp(?=\d)", lambda found: "float" if found[1] is None else f"{found[1]}int", printed)
