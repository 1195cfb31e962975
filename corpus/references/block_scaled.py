"""References of matmuls of microscaled operands, which are decoded by their tables."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, given, reference

# e2m1: a sign, two bits of exponent, one of fraction
_FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def _unpacked(packed: torch.Tensor) -> torch.Tensor:
    """Two 4-bit floats a byte, the first in the lower bits."""
    nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2)
    return _FP4[nibbles.long()]


def _scaled(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Values times the power of two that each 32 of a row share."""
    return values * torch.exp2(scale.double() - 127).repeat_interleave(32, -1)


@reference("block_scaled", "mxfp8_matmul_kernel")
def _mxfp8_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = given(args, constexprs, "a_ptr", "b_ptr")
    return {"c_ptr": _scaled(a, args["a_scale_ptr"]) @ _scaled(b, args["b_scale_ptr"]).T}


@reference("block_scaled", "mxfp4_matmul_kernel")
def _mxfp4_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    a, b = _unpacked(args["a_ptr"]), _unpacked(args["b_ptr"])
    return {"c_ptr": _scaled(a, args["a_scale_ptr"]) @ _scaled(b, args["b_scale_ptr"]).T}


@reference("block_scaled", "mxfp4_weight_matmul_kernel")
def _mxfp4_weight_matmul(args: Arguments, constexprs: Arguments) -> Expected:
    x, bias = given(args, constexprs, "x_ptr", "bias_ptr")
    y = x @ _scaled(_unpacked(args["w_ptr"]), args["w_scale_ptr"]).T
    return {"y_ptr": y if bias is None else y + bias}
