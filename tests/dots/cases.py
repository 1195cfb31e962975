"""Dots to compile: a reproducible sample of tiles, numbers of warps, dtypes, orders and targets."""

from __future__ import annotations

import random

from tests.dots.facts import Case

TARGETS = ("sm80", "sm90", "sm100", "sm120")
TILES = (16, 32, 64, 128, 256)
DEPTHS = (16, 32, 64, 128)
WARPS = (1, 2, 4, 8, 16)

KINDS = (
    ("fp16", ("", "")),
    ("bf16", ("", "")),
    ("fp32", ("", "")),
    ("fp64", ("", "")),
    ("int8", ("", "")),
    ("fp8e5", ("", "")),
    ("fp8e4nv", ("", "")),
    ("fp16", ("fp8e5", "fp8e5")),
    ("fp16", ("fp8e5", "")),
    ("fp16", ("", "int8")),
    ("bf16", ("", "int8")),
    ("fp16", ("fp32", "fp32")),
    ("fp16", ("fp32", "")),
    ("fp32", ("fp16", "fp16")),
    ("fp32", ("", "fp16")),
)
"""Dtypes of plain dots: what is multiplied, and what the operands are stored as where that is another."""


def sample(count: int, seed: int = 0) -> list[Case]:
    """About `count` cases, all different: of each kernel, target and kind of dtype some."""
    chance = random.Random(seed)
    made = (_case(chance, index) for index in range(count))
    return list(dict.fromkeys(case for case in made if _compiles(case)))


def _case(chance: random.Random, index: int) -> Case:
    """One case: kernels, targets and dtypes in turn, sizes and orders by chance."""
    target, warps = TARGETS[index % len(TARGETS)], chance.choice(WARPS)
    turn = index // len(TARGETS)
    kernel = ("plain", "plain", "chained", "plain", "plain", "backward", "plain", "batched")[turn % 8]
    if kernel == "plain":
        dtype, stored = KINDS[turn % len(KINDS)]
        tile = (chance.choice(TILES), chance.choice(TILES), chance.choice(DEPTHS))
        columns = (chance.random() < 0.4, chance.random() < 0.4)
        exact = dtype == "fp64" or chance.random() < 0.15
        return Case(kernel, target, dtype, tile, warps, columns, stored, "ieee" if exact else "tf32")
    dtype = chance.choice(("fp16", "bf16", "fp32"))
    if kernel == "batched":
        small = (chance.choice((16, 32, 64)) for _ in range(3))
        return Case(kernel, target, dtype, (chance.choice((1, 2, 4, 8, 16)), *small), warps)
    shape = (chance.choice(TILES), chance.choice(DEPTHS[1:]), chance.choice(TILES[1:]))
    return Case(kernel, target, dtype, shape, warps)


def _compiles(case: Case) -> bool:
    """Whether Triton has the dtype on the target, and 32 elements for a dot of bytes."""
    eight_bits = case.dtype in ("int8", "fp8e5", "fp8e4nv")
    return not (case.target == "sm80" and case.dtype == "fp8e4nv") and not (eight_bits and case.shape[-1] < 32)


FEW = (
    Case("plain", "sm80", "fp16", (128, 64, 32), 4),
    Case("plain", "sm80", "fp16", (32, 256, 64), 8, (True, True)),
    Case("plain", "sm80", "fp16", (64, 64, 64), 4, (False, True), ("fp8e5", "")),
    Case("plain", "sm80", "fp16", (16, 32, 32), 8, (False, False), ("fp32", "fp32")),
    Case("plain", "sm80", "fp64", (64, 32, 16), 4, (True, False), precision="ieee"),
    Case("plain", "sm80", "fp32", (128, 128, 32), 4, precision="ieee"),
    Case("plain", "sm80", "int8", (128, 128, 64), 8, (False, True)),
    Case("chained", "sm80", "fp16", (128, 64, 128), 8),
    Case("chained", "sm80", "bf16", (32, 64, 128), 4),
    Case("backward", "sm80", "fp16", (64, 32, 64), 4),
    Case("batched", "sm80", "fp16", (4, 32, 64, 32), 8),
    Case("plain", "sm90", "bf16", (128, 256, 64), 8),
    Case("plain", "sm90", "fp16", (64, 64, 64), 8, (True, True)),
    Case("plain", "sm90", "fp32", (128, 32, 32), 4),
    Case("plain", "sm90", "fp16", (128, 128, 64), 4, (False, False), ("int8", "")),
    Case("plain", "sm90", "int8", (64, 256, 64), 4, (False, True)),
    Case("chained", "sm90", "fp16", (128, 64, 64), 8),
    Case("chained", "sm90", "bf16", (64, 32, 128), 8),
    Case("plain", "sm100", "fp16", (128, 256, 64), 4),
    Case("plain", "sm100", "fp8e5", (256, 128, 64), 8),
    Case("plain", "sm100", "fp16", (64, 64, 64), 8),
    Case("chained", "sm100", "fp16", (128, 64, 128), 8),
    Case("plain", "sm120", "fp8e4nv", (128, 128, 64), 8),
    Case("chained", "sm120", "fp16", (64, 64, 64), 4),
)
"""A dot of each kind."""
