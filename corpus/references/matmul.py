"""References of matrix products."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, Tolerance, given, reference

# ------------------------------------------------------------------------------------------------------ matmul


@reference("matmul", "matmul_kernel")
@reference("matmul", "grouped_order_matmul_kernel")
# `tf32` keeps ten bits of each factor, cut off: a term of size one is off by up to 2^-9, and a hundred such add up.
@reference("matmul", "float32_matmul_kernel", c_ptr=Tolerance(0, 0.05))
def _product(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": a @ b}


@reference("matmul", "any_strides_matmul_kernel")
def _any_strides(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, alpha = given(args, constexprs, "A", "B", "alpha")
    return {"C": alpha * a @ b}


@reference("matmul", "linear_kernel")
def _linear(args: Arguments, constexprs: Arguments) -> Expected:
    x, w = given(args, constexprs, "x_ptr", "w_ptr")
    return {"y_ptr": x @ w.T}


@reference("matmul", "float8_matmul_kernel")
def _float8(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, a_scale, b_scale = given(args, constexprs, "a_ptr", "b_ptr", "a_scale_ptr", "b_scale_ptr")
    return {"c_ptr": (a * a_scale) @ (b * b_scale).T}


@reference("matmul", "float8_block_matmul_kernel")
def _float8_blocks(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, a_scales, b_scales = given(args, constexprs, "a_ptr", "b_ptr", "a_scales_ptr", "b_scales_ptr")
    group_k, group_n = constexprs["BLOCK_K"], constexprs["GROUP_N"]
    a_scales = a_scales.repeat_interleave(group_k, 1)[:, : a.shape[1]]
    b_scales = b_scales.repeat_interleave(group_n, 0).repeat_interleave(group_k, 1)[: b.shape[0], : b.shape[1]]
    return {"c_ptr": (a * a_scales) @ (b * b_scales).T}


@reference("matmul", "int8_matmul_kernel")
def _int8(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, row_scale, col_scale = given(args, constexprs, "a_ptr", "b_ptr", "row_scale_ptr", "col_scale_ptr")
    return {"c_ptr": (a.double() @ b.double()) * row_scale[:, None] * col_scale}


# ------------------------------------------------------------------------------------------------ matmul_fused


@reference("matmul_fused", "linear_activation_kernel")
def _linear_activation(args: Arguments, constexprs: Arguments) -> Expected:
    x, w, bias, residual = given(args, constexprs, "x_ptr", "w_ptr", "bias_ptr", "residual_ptr")
    y = _activated(torch.nn.functional.linear(x, w, bias), constexprs["ACTIVATION"])
    return {"y_ptr": y if residual is None else y + residual}


@reference("matmul_fused", "glu_kernel")
def _glu(args: Arguments, constexprs: Arguments) -> Expected:
    x, gate, up = given(args, constexprs, "x_ptr", "gate_ptr", "up_ptr")
    return {"out_ptr": _activated(x @ gate, constexprs["ACTIVATION"]) * (x @ up)}


def _activated(x: torch.Tensor, activation: str | None) -> torch.Tensor:
    return x if activation is None else getattr(torch.nn.functional, activation)(x)


# Where C is fp16, so are the partial sums, some of which are larger than what they come to: up to 2^5, kept to 2^-6.
@reference("matmul_fused", "split_k_matmul_kernel", C=Tolerance(0, 2**-5))
def _split_k(args: Arguments, constexprs: Arguments) -> Expected:
    a, b, c = given(args, constexprs, "A", "B", "C")
    return {"C": a @ b if constexprs["SPLIT_K"] == 1 else c + a @ b}


@reference("matmul_fused", "batched_matmul_kernel")
@reference("matmul_fused", "small_matrices_kernel")
@reference("matmul_fused", "persistent_matmul_kernel")
def _products(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": a @ b}
