"""NVIDIA Blackwell for data centres, compute capability 10.0: tcgen05 MMA and tensor memory."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="sm100",
    backend="cuda",
    arch=100,
    warp_size=32,
    shared_memory_bytes=227 * 1024,
    description="Blackwell (B200)",
    device=Device("NVIDIA B200", multiprocessors=148, memory_gib=180),
)
