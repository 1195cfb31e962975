"""What every kernel of this folder computes, in numpy, in double precision.

A reference takes a launch's tensors as they were before the kernel ran (in their shapes, by parameter name) and its
scalars and constexprs, and returns the expected contents of each tensor that the kernel writes, whole: what the kernel
leaves alone keeps what it held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arguments = Mapping[str, Any]
Reference = Callable[[Arguments], dict[str, Array]]


@dataclass(frozen=True)
class Tolerance:
    """The most that |actual - expected| may be: absolute + relative * |expected|."""

    relative: float
    absolute: float


EXACT = Tolerance(0, 0)

# By the dtype of the output. fp32 sums of fp16 products, or of up to 1,200 terms of size one in another order; fp16
# rounded once from such a sum.
TOLERANCES: Mapping[str, Tolerance] = {
    "float32": Tolerance(1e-5, 1e-4),
    "float16": Tolerance(2**-10, 2**-8),
    "int32": EXACT,
}

# Where an input is rounded on the way: tf32 keeps 11 bits of both factors, attention's P and dequantized weights are
# fp16 before they are summed.
LOOSER: Mapping[str, Tolerance] = {
    "cp_async.matmul_kernel.1": Tolerance(2**-9, 2**-5),
    "wgmma.attention_kernel.2": Tolerance(2**-8, 2**-8),
    "wgmma.dequantize_matmul_kernel.1": Tolerance(2**-8, 2.0),
}

REFERENCES: dict[str, Reference] = {}


def tolerance(case: str, dtype: str) -> Tolerance:
    """What applies to the outputs of one dtype of a case, named as `suite.Case.name`."""
    return LOOSER.get(case, TOLERANCES[dtype])


def _reference(*kernels: str) -> Callable[[Reference], Reference]:
    def register(function: Reference) -> Reference:
        REFERENCES.update(dict.fromkeys(kernels, function))
        return function

    return register


def _double(array: Array) -> Array:
    return array.astype(np.float64)


# ------------------------------------------------------------------------------------------------------- products


@_reference("cp_async.matmul_kernel")
def _matmul_bias(args: Arguments) -> dict[str, Array]:
    return {"c_ptr": _double(args["a_ptr"]) @ _double(args["b_ptr"]) + _double(args["bias_ptr"])}


@_reference(
    "wgmma.matmul_kernel",
    "amd.mfma_matmul_kernel",
    "amd.direct_to_lds_matmul_kernel",
    "amd.wmma_matmul_kernel",
    "amd.tdm_matmul_kernel",
)
def _matmul(args: Arguments) -> dict[str, Array]:
    return {"c_ptr": _double(args["a_ptr"]) @ _double(args["b_ptr"])}


@_reference(
    "tma.matmul_kernel",
    "warp_specialize.matmul_kernel",
    "warp_specialize.persistent_matmul_kernel",
    "tcgen05.matmul_kernel",
    "tcgen05.persistent_matmul_kernel",
)
def _matmul_descriptors(args: Arguments) -> dict[str, Array]:
    return {"c_desc": _double(args["a_desc"]) @ _double(args["b_desc"])}


@_reference("cp_async.int8_matmul_kernel")
def _matmul_int8(args: Arguments) -> dict[str, Array]:
    return {"c_ptr": args["a_ptr"].astype(np.int32) @ args["w_ptr"].astype(np.int32).T}


@_reference("tcgen05.linear_kernel")
def _linear(args: Arguments) -> dict[str, Array]:
    return {"c_ptr": _double(args["a_ptr"]) @ _double(args["b_ptr"]) + _double(args["bias_ptr"])}


@_reference("wgmma.dequantize_matmul_kernel")
def _dequantize(args: Arguments) -> dict[str, Array]:
    weights = (args["w_ptr"].astype(np.float32) * args["scale_ptr"]).astype(np.float16)
    return {"c_ptr": _double(args["a_ptr"]) @ _double(weights)}


@_reference("cp_async.gemv_kernel")
def _gemv(args: Arguments) -> dict[str, Array]:
    return {"y_ptr": _double(args["a_ptr"]) @ _double(args["x_ptr"])}


@_reference("wgmma.attention_kernel")
def _attention(args: Arguments) -> dict[str, Array]:
    scores = _double(args["q_ptr"]) @ _double(args["k_ptr"]).T * args["scale"]
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
    return {"o_ptr": weights @ _double(args["v_ptr"]) / weights.sum(axis=1, keepdims=True)}


# ----------------------------------------------------------------------------------------- elementwise and by rows


@_reference("cp_async.scale_kernel")
def _scale(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": args["x_ptr"] * np.float32(args["factor"])}


@_reference("tma.scale_kernel")
def _scale_descriptors(args: Arguments) -> dict[str, Array]:
    return {"out_desc": args["x_desc"] * np.float32(args["factor"])}


@_reference("tma.add_rows_kernel")
def _add(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": args["x_ptr"] + args["y_ptr"]}


@_reference("cp_async.rms_norm_kernel")
def _rms_norm(args: Arguments) -> dict[str, Array]:
    x = _double(args["x_ptr"])
    scale = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + args["eps"])
    return {"out_ptr": x * scale * _double(args["weight_ptr"])}


@_reference("shared.softmax_kernel", "amd.softmax_kernel")
def _softmax(args: Arguments) -> dict[str, Array]:
    x = _double(args["x_ptr"])
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out_ptr": e / e.sum(axis=1, keepdims=True)}


@_reference("amd.row_sums_kernel")
def _row_sums(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": _double(args["x_ptr"]).sum(axis=1)}


@_reference("warp_specialize.row_statistics_kernel")
def _row_statistics(args: Arguments) -> dict[str, Array]:
    x = _double(args["x_desc"])
    return {"sum_ptr": x.sum(axis=1), "max_ptr": np.abs(x).max(axis=1)}


# --------------------------------------------------------------------------------- moves, counts, sums over blocks


@_reference("shared.transpose_kernel")
def _transpose(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": args["in_ptr"].T}


@_reference("tma.transpose_kernel")
def _transpose_descriptors(args: Arguments) -> dict[str, Array]:
    return {"out_desc": args["x_desc"].T}


@_reference("tma.split_k_kernel")
def _split_k(args: Arguments) -> dict[str, Array]:
    rows, columns = args["out_desc"].shape
    parts = _double(args["x_desc"]).reshape(rows, -1, columns)
    return {"out_desc": _double(args["out_desc"]) + parts.sum(axis=1)}


@_reference("shared.tree_sum_kernel")
def _tree_sum(args: Arguments) -> dict[str, Array]:
    x, block = args["x_ptr"], args["BLOCK"]
    padded = np.pad(x, (0, -len(x) % block))
    return {"out_ptr": padded.reshape(-1, block).sum(axis=1, dtype=np.int32)}


@_reference("shared.histogram_kernel")
def _histogram(args: Arguments) -> dict[str, Array]:
    counts = np.bincount(args["x_ptr"], minlength=args["BINS"]).astype(np.int32)
    return {"counts_ptr": args["counts_ptr"] + counts}


@_reference("shared.gather_rows_kernel")
def _gather_rows(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": args["table_ptr"][args["index_ptr"]][:, ::-1]}


@_reference("shared.last_block_sum_kernel")
def _last_block_sum(args: Arguments) -> dict[str, Array]:
    x, blocks, block = args["x_ptr"], args["BLOCKS"], args["BLOCK"]
    parts = np.pad(x, (0, blocks * block - len(x))).reshape(blocks, block).sum(axis=1, dtype=np.int32)
    total = parts.sum(dtype=np.int32).reshape(1)
    return {"partial_ptr": parts, "ticket_ptr": args["ticket_ptr"] + np.int32(blocks), "out_ptr": total}


@_reference("shared.row_and_column_sums_kernel")
def _row_and_column_sums(args: Arguments) -> dict[str, Array]:
    x = args["x_ptr"]
    rows, columns = x.sum(axis=1, dtype=np.int32), x.sum(axis=0, dtype=np.int32)
    return {"row_ptr": args["row_ptr"] + rows, "col_ptr": args["col_ptr"] + columns}


@_reference("shared.rotate_kernel")
def _rotate(args: Arguments) -> dict[str, Array]:
    x, block, steps = args["x_ptr"], args["BLOCK"], args["STEPS"]
    blocks = len(args["out_ptr"]) // block
    segments = np.pad(x, (0, (blocks + steps) * block - len(x))).reshape(-1, 2, block // 2)
    sums = [segments[first : first + steps].sum(axis=0, dtype=np.int32)[::-1].reshape(-1) for first in range(blocks)]
    return {"out_ptr": np.concatenate(sums)}


@_reference("pipelines.two_sums_kernel")
def _two_sums(args: Arguments) -> dict[str, Array]:
    return {"c_desc": _double(args["a_desc"]) @ _double(args["b_desc"])}


@_reference("pipelines.three_jobs_kernel")
def _three_jobs(args: Arguments) -> dict[str, Array]:
    return {"c_desc": _double(args["a_desc"]) / 2 @ _double(args["b_desc"])}


@_reference("pipelines.in_place_kernel")
def _in_place(args: Arguments) -> dict[str, Array]:
    return {"y_desc": 2 * _double(args["x_desc"]) + 1}


@_reference("pipelines.masked_tiles_kernel")
def _masked_tiles(args: Arguments) -> dict[str, Array]:
    flags = args["flags_ptr"]
    programs, tiles = flags.shape
    sums = _double(args["x_desc"]).reshape(programs, -1, tiles, args["x_desc"].shape[1] // tiles).sum(axis=3)
    return {"out_ptr": (sums * (flags != 0)[:, None, :]).sum(axis=2).reshape(-1)}


@_reference("pipelines.signalled_kernel")
def _signalled(args: Arguments) -> dict[str, Array]:
    return {"out_ptr": _double(args["x_ptr"]) ** 2}


@_reference("pipelines.permute_rows_kernel")
def _permute_rows(args: Arguments) -> dict[str, Array]:
    rows = args["from_ptr"]
    return {"y_desc": 2 * _double(args["x_desc"])[rows[np.arange(len(rows)) ^ 5]]}


@_reference("pipelines.jagged_sum_kernel")
def _jagged_sum(args: Arguments) -> dict[str, Array]:
    rows = zip(_double(args["x_ptr"]), args["lengths_ptr"], strict=True)
    return {"out_ptr": np.array([row[:length].sum() for row, length in rows])}


@_reference("pipelines.ping_pong_kernel")
def _ping_pong(args: Arguments) -> dict[str, Array]:
    x = _double(args["x_ptr"]).reshape(-1, args["BLOCK"]).copy()
    for program, values in enumerate(x):
        for step in range(args["steps"] + program):
            values[:] = (values + step) / 2
    return {"out_ptr": x.reshape(-1)}
