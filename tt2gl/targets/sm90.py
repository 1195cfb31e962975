"""NVIDIA Hopper, compute capability 9.0: TMA, mbarriers and warpgroup MMA (wgmma)."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="sm90",
    backend="cuda",
    arch=90,
    warp_size=32,
    shared_memory_bytes=227 * 1024,
    description="Hopper (H100, H200)",
    device=Device("NVIDIA H200", multiprocessors=132, memory_gib=140),
)
