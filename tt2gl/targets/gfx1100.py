"""AMD RDNA3: first WMMA, waves of 32."""

from __future__ import annotations

from tt2gl.targets.base import Target

TARGET = Target(
    name="gfx1100",
    backend="hip",
    arch="gfx1100",
    warp_size=32,
    shared_memory_bytes=64 * 1024,
    description="RDNA3 (RX 7900)",
    buffers="gl.amd.cdna3",
)
