"""The functions of Triton's language, by what a call tells of its arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping

ACCESSES = {"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas", "atomic_and",
             "atomic_or", "atomic_xor", "buffer_load", "buffer_store", "async_copy_global_to_shared"}  # fmt: skip
METHODS = ("load", "store", "gather", "scatter", "atomic_add")
"""What is asked of descriptors."""
OF_INTEGERS = {"atomic_and", "atomic_or", "atomic_xor"}
COUNTING = {"atomic_add", "atomic_cas", "atomic_xchg"}
FLOAT_CALLS = {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sqrt_rn", "sigmoid", "tanh", "sin", "cos", "erf",
                "div_rn", "fdiv", "softmax", "dot", "log1p", "expm1", "pow", "floor", "ceil"}  # fmt: skip
BOUNDS = {"maximum", "minimum", "clamp"}
INT_CALLS = {"program_id", "num_programs", "arange", "cdiv", "argmax", "argmin", "len"}
RANDOM_CALLS = {"rand": "float", "randn": "float", "rand4x": "float", "randn4x": "float", "randint": "int",
                 "randint4x": "int", "philox": "int"}  # fmt: skip
SHAPED = {"zeros": 0, "full": 0, "ones": 0, "reshape": 1, "view": 1, "broadcast_to": 1}
RESHAPING = {"reshape", "view", "broadcast_to", "expand_dims", "trans", "permute"}
WORDS = {"eviction_policy": "", "cache_modifier": "", "sem": "relaxed", "scope": "gpu", "input_precision": "ieee"}
BLOCK_PARTS = ("base", "shape", "strides", "offsets", "block_shape", "order")
SCALED_PARTS = ("lhs", "lhs_scale", "lhs_format", "rhs", "rhs_scale", "rhs_format")
# What is loaded and then reinterpreted as a float of so many bits.
OF_BITS: Mapping[int, str] = {8: "u8", 16: "i16", 32: "i32", 64: "i64"}
FORMATS = {"e2m1": "u8", "e4m3": "fp8e4nv", "e5m2": "fp8e5", "fp16": "fp16", "bf16": "bf16"}
RANGES = {"range", "static_range"}
LOOP_FLAGS = {"flatten", "warp_specialize", "disallow_acc_multi_buffer", "disable_licm"}
THROUGH = {
    "multiple_of",
    "max_contiguous",
    "max_constancy",
    "advance",
    "broadcast_to",
    "expand_dims",
    "reshape",
    "trans",
    "cast",
}


def as_method(node: ast.Call) -> ast.Call:
    """`tl.load_tensor_descriptor(desc, offsets)` as `desc.load(offsets)`; any other call as it is."""
    match node:
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=[descriptor, *others]):
            name = called.removesuffix("_tensor_descriptor").removesuffix("_descriptor").removeprefix("_experimental_")
            if name != called and name in METHODS:
                method = ast.copy_location(ast.Attribute(descriptor, name, ast.Load()), node)
                return ast.copy_location(ast.Call(method, others, node.keywords), node)
    return node
