"""What the name of a parameter tells of it."""

from __future__ import annotations

import re
from typing import Any

FLOAT_NAME = re.compile(
    r"(^|_)(eps|epsilon|scale|sm_scale|alpha|beta|gamma|momentum|lr|dropout|p|temperature|softcap|logit_scale|"
    r"smoothing|decay|rate|prob|theta|factor|threshold|limit|sign|lse_square_scale)(_|$)",
    re.I,
)
SIZE_NAME = re.compile(
    r"(^|_)([MNKTSDHBLCVE]|n|n_?(rows|cols|elements|heads|tokens|groups)|numel|size|dim|len(gth)?|"
    r"(row|col|seq|head|batch|hidden|vocab|num|total)\w*|\w*(size|dim|len|cols|rows|elements))(_|$)"
)
STRIDE_NAME = re.compile(r"stride", re.I)
LABEL_NAME = re.compile(r"(target|label|token_ids?|input_ids?|indices|index|idx|ids|positions?|y_ptr$)", re.I)
OFFSET_NAME = re.compile(
    r"(cu_?seq|seq_?len|seqlens?|offsets?|block_tables?|lens|counts?|slot|table|indptr|order|map(ping)?)", re.I
)
INTEGER_NAME = re.compile(
    r"(^|_)(ids?|idx|ind(ices|ex|ptr)|labels?|offsets?|lens?|lengths?|seqlens?|counts?)"
    r"(_ptrs?|_pointers?)?$",
    re.I,
)
"""What ends so holds integers, whatever is done with them."""
MASK_NAME = re.compile(r"(^|_)(mask|keep|flag|valid)|^(is|has)_", re.I)
TRUTH_NAME = re.compile(r"^(is|has)_\w+_(ptr|pointer)$", re.I)
"""What is called so holds truth values, whatever is done with them."""
FLAG_NAME = re.compile(
    r"^(is|has|use|do|with|apply|causal|compute|store|return|fuse|add|enable|even|inplace|reverse|output)(_|$)|_flag$",
    re.I,
)

VALUES: tuple[tuple[str, Any], ...] = (
    (r"HEAD_?DIM|DMODEL|D_?HEAD|HEAD_SIZE", 64),
    (r"GROUP_SIZE_?M|GROUP_M$", 8),
    (r"GROUP_?SIZE", 64),
    (r"NUM_?STAGES|FACTOR$", 2),
    (r"NUM_?WARPS", 4),
    (r"SPLIT_?K_?\w*SIZE", 512),
    (r"NUM_?CTAS|SPLIT_?K|NUM_?SPLITS|KV_?SPLITS", 1),
    (r"NUM_?SMS|NUM_?PROGRAMS", 132),
    (r"(^|_)(NUM|N)_?\w*HEADS?", 8),
)
"""Values of constexprs by the first pattern that their name in capitals has."""

_DTYPE_NAMES: tuple[tuple[str, str], ...] = (
    (r"FP8|F8|E4M3", "fp8e4nv"),
    (r"BF16", "bf16"),
    (r"FP16|F16|HALF", "fp16"),
    (r"INT8|I8", "i8"),
    (r"INT64|I64", "i64"),
    (r"INT|I32|IDX|INDEX", "i32"),
)


def named_dtype(name: str) -> str:
    """The dtype that the name of a constexpr asks for (`FP8_DTYPE`)."""
    for pattern, dtype in _DTYPE_NAMES:
        if re.search(pattern, name.upper()):
            return dtype
    return "fp32"
