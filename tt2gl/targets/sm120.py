"""NVIDIA Blackwell for workstations, compute capability 12.0: TMA, but mma.sync and small shared memory."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="sm120",
    backend="cuda",
    arch=120,
    warp_size=32,
    shared_memory_bytes=99 * 1024,
    description="Blackwell (RTX 50)",
    device=Device("NVIDIA GeForce RTX 5090", multiprocessors=170, memory_gib=32),
)
