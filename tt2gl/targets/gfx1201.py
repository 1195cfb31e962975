"""AMD RDNA4: second WMMA, waves of 32."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="gfx1201",
    backend="hip",
    arch="gfx1201",
    warp_size=32,
    shared_memory_bytes=64 * 1024,
    description="RDNA4 (RX 9070)",
    device=Device("AMD Radeon RX 9070 XT", multiprocessors=32, memory_gib=16),
    buffers="gl.amd.cdna3",
    buffer_atomics=True,
)
