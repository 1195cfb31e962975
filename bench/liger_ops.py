"""Calls liger-kernel's operators forward and backward, as its users do: something to record launches of.

tt2gl record -o launches.json --root SITE_PACKAGES -- python bench/liger_ops.py
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from liger_kernel import ops  # type: ignore[import-not-found]
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction  # type: ignore[import-not-found]
from liger_kernel.ops.grpo_loss import fused_selective_log_softmax  # type: ignore[import-not-found]

DTYPES = (torch.bfloat16, torch.float32)
TOKENS, WIDTH, VOCABULARY = 64, 1024, 4096

Call = tuple[Any, ...]
"""An operator and its arguments."""


def tensor(*shape: int, dtype: Any = torch.float32, grad: bool = True) -> Any:
    """Random numbers on the GPU."""
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=grad)


def integers(low: int, high: int, *shape: int, dtype: Any = torch.int64) -> Any:
    """Random integers on the GPU, below `high`."""
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def elementwise(dtype: Any) -> Iterator[Call]:
    """Activations, and what goes row by row."""
    x = partial(tensor, dtype=dtype)
    rows = (TOKENS, WIDTH)
    yield ops.LigerGELUMulFunction, x(*rows), x(*rows)
    yield ops.LigerSiLUMulFunction, x(*rows), x(*rows)
    yield ops.LigerFusedGateUpSiLUMulFunction, x(TOKENS, 2 * WIDTH)
    yield ops.LigerReLUSquaredFunction, x(*rows)
    yield ops.LigerDyTFunction, x(128, WIDTH), x(1), x(WIDTH), x(WIDTH)
    yield LigerEmbeddingFunction, x(1000, 512), integers(0, 1000, 2, 64)
    yield ops.LigerSparsemaxFunction, x(*rows), -1
    yield ops.LigerSoftmaxFunction, x(*rows)


def norms(dtype: Any) -> Iterator[Call]:
    """Normalisations."""
    x = partial(tensor, dtype=dtype)
    rows = (TOKENS, WIDTH)
    yield ops.LigerRMSNormFunction, x(*rows), x(WIDTH), 1e-6, 0.0, "llama", False
    yield ops.LigerRMSNormFunction, x(*rows), x(WIDTH), 1e-6, 0.0, "gemma", False
    yield ops.LigerRMSNormFunction, x(65536, 128), x(128), 1e-6, 0.0, "llama", False
    yield ops.LigerFusedAddRMSNormFunction, x(*rows), x(*rows), x(WIDTH), 1e-6
    scales = (x(2, WIDTH), x(2, WIDTH))
    yield ops.LigerModulatedRMSNormFunction, x(2, *rows), x(WIDTH), *scales, 1e-6, 0.0, "llama", False
    yield ops.LigerLayerNormFunction, x(*rows), x(WIDTH), x(WIDTH), 1e-6
    yield ops.LigerGroupNormFunction, x(4, 32, 256), x(32), x(32), 32, 8, 1e-6
    yield ops.LigerPolyNormFunction, x(*rows), x(3), x(1, grad=False), 1e-6, False
    for blocks in (4, 8):
        yield ops.LigerAttnResFunction, x(blocks, 128, 4096), x(4096), x(4096), 1e-6


def losses(dtype: Any) -> Iterator[Call]:
    """Losses over a vocabulary, alone or with the linear layer before them."""
    x = partial(tensor, dtype=dtype)
    rows = (TOKENS, VOCABULARY)
    labels = integers(0, VOCABULARY, TOKENS)
    sums = (None, -100, 0.0, 0.0, "sum")
    yield ops.LigerCrossEntropyFunction, x(1269, 32000), integers(0, 32000, 1269), *sums
    smooth = (None, 0, 1e-4, 0.1, "mean", 30.0, True)
    yield ops.LigerCrossEntropyFunction, x(4, 8), integers(1, 8, 4), *smooth
    sharded = (integers(0, VOCABULARY, 32, 2), None, -100, 0.0, "megatron", "strict")
    yield ops.LigerVocabParallelCEFunction, x(32, 2, VOCABULARY), *sharded
    teacher = x(*rows, grad=False)
    yield ops.LigerFusedCETVDFunction, x(*rows), teacher, labels
    yield ops.LigerJSDFunction, x(*rows), teacher, labels, 0.5
    yield ops.LigerKLDivLossFunction, x(*rows), teacher, "batchmean"
    yield ops.LigerKLDivLossFunction, x(*rows), teacher, "none", True
    yield ops.LigerTVDLossFunction, x(*rows), teacher, labels, "batchmean"
    teachers = (x(TOKENS, 256, grad=False), x(VOCABULARY, 256, grad=False))
    yield ops.LigerFusedLinearJSDFunction, x(TOKENS, 256), x(VOCABULARY, 256), *teachers, labels
    yield ops.LigerFusedLinearKLDivFunction, x(TOKENS, WIDTH), x(VOCABULARY, WIDTH), teacher


def policies(dtype: Any) -> Iterator[Call]:
    """Losses of reinforcement learning."""
    x = partial(tensor, dtype=dtype)
    ids, mask = integers(0, VOCABULARY, 4, 32), integers(1, 2, 4, 32, dtype=torch.int32)
    known = (tensor(4, 32, grad=False), tensor(4, 32, grad=False), ids, tensor(4, grad=False), mask)
    for kind, level in (("grpo", "token"), ("cispo", "token"), ("grpo", "sequence")):
        settings = (0.9, 0.04, 0.2, 0.4, False, kind, None, False, level)
        yield ops.GrpoLossFunction, x(4, 33, VOCABULARY), *known, *settings
    yield fused_selective_log_softmax, x(4, 33, VOCABULARY), ids, 0.9, mask


def attention(dtype: Any) -> Iterator[Call]:
    """Position embeddings, and attention to neighbours."""
    x = partial(tensor, dtype=dtype)
    fixed = partial(x, grad=False)
    yield ops.LigerRopeFunction, x(2, 8, 64, 64), x(2, 2, 64, 64), fixed(1, 64, 64), fixed(1, 64, 64)
    angles = (fixed(3, 2, 64, 64), fixed(3, 2, 64, 64))
    yield ops.LigerQwen2VLMRopeFunction, x(2, 8, 64, 64), x(2, 2, 64, 64), *angles, [8, 12, 12]
    turns = torch.view_as_complex(tensor(64, 32, 2, grad=False))
    yield ops.LigerLlama4RopeFunction, x(2, 64, 8, 64), x(2, 64, 2, 64), turns
    kind = torch.float16 if dtype == torch.bfloat16 else dtype
    heads = [tensor(2, 4, 128, 64, dtype=kind) for _ in range(3)]
    yield ops.LigerFusedNeighborhoodAttentionFunction, *heads, 7, 1, 0.125
    for sparse in (False, True) if dtype == torch.float32 else (False,):
        weights = (x(4, 4, 3, 3), x(4))
        yield ops.LigerMultiTokenAttentionFunction, x(2, 4, 64, 64), *weights, 1, 1, 1, 1, sparse


def networks(dtype: Any) -> Iterator[Call]:
    """Feed-forward layers, experts, and connections between layers."""
    x = partial(tensor, dtype=dtype)
    yield ops.LigerMLPFunction, x(2, 64, 256), x(512, 256), x(512, 256), x(256, 512)
    experts = (x(8, 1024, 256), x(8, 256, 512))
    yield ops.LigerFusedMoEFunction, x(64, 256), *experts, integers(0, 8, 64, 2), x(64, 2)
    scales = (tensor(24), *(tensor(1, grad=False) for _ in range(3)))
    limits = (dtype == torch.float32, 20, 1e-6, 1e-6, 1e-6, 2.0)
    yield ops.LigerMHCCoeffsFunction, x(32, 4, 128), x(512, 24), *scales, *limits
    yield ops.LigerMHCPreFunction, x(32, 4, 128), tensor(32, 4)
    yield ops.LigerMHCPostResFunction, x(32, 4, 128), x(32, 128), tensor(32, 4), tensor(32, 4, 4)


def call(function: Any, *args: Any) -> None:
    """Forward, then backward from every result that has a gradient."""
    results = getattr(function, "apply", function)(*args)
    results = results if isinstance(results, tuple) else (results,)
    results = [each for each in results if torch.is_tensor(each) and each.requires_grad]
    if results:
        torch.autograd.backward(results, [torch.randn_like(each) for each in results])


def main() -> int:
    """Each operator with each type; one that fails is told, and stops no other."""
    torch.manual_seed(0)
    failed = 0
    for family in (elementwise, norms, losses, policies, attention, networks):
        for dtype in DTYPES:
            for function, *args in family(dtype):
                try:
                    call(function, *args)
                except Exception as error:  # noqa: BLE001 - told, and counted
                    failed += 1
                    told = "".join(traceback.format_exception_only(error)).splitlines()[0]
                    sys.stderr.write(f"{function.__name__}, {dtype}: {told}\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
