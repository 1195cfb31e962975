"""AMD RDNA3: first WMMA, waves of 32."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="gfx1100",
    backend="hip",
    arch="gfx1100",
    warp_size=32,
    shared_memory_bytes=64 * 1024,
    description="RDNA3 (RX 7900)",
    device=Device("AMD Radeon RX 7900 XTX", multiprocessors=48, memory_gib=24),
    buffers="gl.amd.cdna3",
)
