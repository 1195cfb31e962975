"""References of matrix products with narrow integer weights."""

from __future__ import annotations

import torch

from corpus.references.base import Arguments, Expected, given, reference

# Which four bits of an int32, counted from the lowest, hold each of the eight columns packed into it.
_IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
_INTERLEAVED = (0, 4, 1, 5, 2, 6, 3, 7)


def _unpacked(packed: torch.Tensor, order: tuple[int, ...] = _IN_ORDER) -> torch.Tensor:
    """Numbers of four bits, eight times as many columns as there are in `packed`."""
    shifts = torch.tensor(order, dtype=torch.int32) * 4
    return (packed[..., None] >> shifts & 0xF).flatten(-2)


def _dequantised(
    weights: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor, group: int, dtype: torch.dtype
) -> torch.Tensor:
    """(weights - zeros) * scales, rounded to what the product takes; a row of zeros and scales for `group` rows."""
    shifted = weights - zeros.repeat_interleave(group, 0)
    return (shifted.double() * scales.double().repeat_interleave(group, 0)).to(dtype).double()


@reference("matmul_int4", "packed_int4_matmul_kernel")
def _packed_int4(args: Arguments, constexprs: Arguments) -> Expected:
    weights, zeros = _unpacked(args["qweight_ptr"].T).T, _unpacked(args["qzeros_ptr"])
    a = args["a_ptr"]
    b = _dequantised(weights, zeros, args["scales_ptr"], constexprs["GROUP_SIZE"], a.dtype)
    return {"c_ptr": a.double() @ b}


@reference("matmul_int4", "packed_columns_matmul_kernel")
def _packed_columns(args: Arguments, constexprs: Arguments) -> Expected:
    weights, zeros = _unpacked(args["qweight_ptr"], _INTERLEAVED), _unpacked(args["qzeros_ptr"], _INTERLEAVED)
    a, c = args["a_ptr"], args["c_ptr"]
    b = _dequantised(weights, zeros, args["scales_ptr"], constexprs["GROUP_SIZE"], a.dtype)
    return {"c_ptr": c.double() + a.double() @ b}


@reference("matmul_int4", "nibble_matmul_kernel")
def _nibbles(args: Arguments, constexprs: Arguments) -> Expected:
    a, scale = given(args, constexprs, "a_ptr", "scale_ptr")
    packed = args["w_ptr"].int()
    nibbles = torch.stack([packed & 0xF, packed >> 4], -1).flatten(-2)
    weights = torch.where(nibbles < 8, nibbles, nibbles - 16).double()
    return {"c_ptr": a @ weights.T * scale}


@reference("matmul_int4", "int8_weight_matmul_kernel")
def _int8_weights(args: Arguments, constexprs: Arguments) -> Expected:
    a, scale, bias = given(args, constexprs, "a_ptr", "scale_ptr", "bias_ptr")
    product = a @ args["w_ptr"].double() * scale
    return {"c_ptr": product if bias is None else product + bias}
