"""Builders of the nodes that rules add. Names of ours carry a mark until it is known which the author has taken."""

from __future__ import annotations

import re

import libcst as cst

MARK = "_tt2gl_"
"""Stands before an added name from its making to the end of the conversion (rule `collisions`)."""

ADDED = (
    "gluon", "gl", "coalesced", "paired", "with_pairs", "widened", "narrowed", "reshaped",
    "max_with_index", "min_with_index", "_first_max", "_first_min", "_any_max", "_any_min", "flipped", "halvings",
    "along", "is_second", "exchanged", "block_scale_layout", "ordered_pairs", "merged",
    "sorted_rows", "merged_rows", "top_of_rows", "softmax_along",
    "mma_v2", "warpgroup_mma", "fence_async_shared",
    "mbarrier", "tdm", "tma", "tma_load", "tma_store", "load_tile", "store_tile", "store_again_tile",
    "with_tile_layouts", "fits_buffers",
    "atomic_add_tile", "atomic_min_tile", "atomic_max_tile", "atomic_and_tile", "atomic_or_tile", "atomic_xor_tile",
    "gather_tile", "scatter_tile", "async_gather", "async_scatter", "upcast", "turned", "with_parts_of",
    "mma_v2_layout", "batched_mma_v2_layout", "wgmma_layout", "chained_wgmma_layout", "fma_layout", "swizzled_layout",
    "TensorMemoryLayout", "tensor_memory_layout", "loaded_layout", "loaded_for_rows_layout",
    "loaded_in_parts_layout", "scales_layout", "tile_warps", "row_warps", "mfma_shape", "wmma_layout",
    "banked_layout", "rotating_layout", "staggered_layout", "direct_layout", "spaced_layout", "lined_layout",
    "coalesced_blocks", "turned_in_threads", "turned_in_threads_layout",
    "as_operand",
    "mma_v2_scaled", "operand_scales_layout", "mfma_tf32", "mfma_f8f6f4", "triton_dot", "triton_dot_scaled",
)  # fmt: skip
"""Every module-level name that a conversion can add."""

_ADDED = re.compile(rf"(?<![\w.])({'|'.join(ADDED)})(?=[.(,])")


def marked(source: str) -> str:
    """Source of ours with its names marked."""
    return _ADDED.sub(rf"{MARK}\1", source)


def expression(source: str) -> cst.BaseExpression:
    """An expression of ours."""
    return cst.parse_expression(marked(source))


def statement(source: str) -> cst.BaseStatement:
    """A statement of ours."""
    made = cst.parse_statement(marked(source))
    assert isinstance(made, cst.BaseStatement)
    return made


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression without its own parentheses, where it may stand as an argument without them."""
    if isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr)) or not node.lpar:
        return node
    inside = [*node.lpar, *node.rpar]
    if any(isinstance(par, cst.LeftParen) and not _plain(par.whitespace_after) for par in inside):
        return node
    return node.with_changes(lpar=(), rpar=())


def _plain(space: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(space, cst.SimpleWhitespace)


def call(function: str, *arguments: cst.BaseExpression) -> cst.Call:
    """A call with positional arguments."""
    return cst.Call(expression(function), [cst.Arg(bare(argument)) for argument in arguments])


def through(call: cst.BaseExpression, is_method: bool, helper: str) -> cst.BaseExpression:
    """The call of a function of Triton's, or of a tensor's method, as one of a helper with the same parameters."""
    if not isinstance(call, cst.Call):
        return call
    args = list(call.args)
    if isinstance(call.func, cst.Attribute) and is_method:
        args.insert(0, cst.Arg(call.func.value))
    return call.with_changes(func=cst.Name(f"{MARK}{helper}"), args=args)
