"""NVIDIA Hopper, compute capability 9.0: TMA, mbarriers and warpgroup MMA (wgmma)."""

from __future__ import annotations

from tt2gl.targets.base import Target

TARGET = Target(
    name="sm90",
    backend="cuda",
    arch=90,
    warp_size=32,
    shared_memory_bytes=227 * 1024,
    description="Hopper (H100, H200)",
)
