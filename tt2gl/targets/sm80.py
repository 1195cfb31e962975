"""NVIDIA Ampere, compute capability 8.0: cp.async copies and mma.sync."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="sm80",
    backend="cuda",
    arch=80,
    warp_size=32,
    shared_memory_bytes=163 * 1024,
    description="Ampere (A100)",
    device=Device("NVIDIA A100-SXM4-80GB", multiprocessors=108, memory_gib=80),
)
