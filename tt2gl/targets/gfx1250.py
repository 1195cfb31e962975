"""AMD gfx1250: WMMA, asynchronous copies to LDS and the tensor data mover, waves of 32."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="gfx1250",
    backend="hip",
    arch="gfx1250",
    warp_size=32,
    shared_memory_bytes=320 * 1024,
    description="gfx1250 (MI450)",
    device=Device("AMD gfx1250", multiprocessors=256, memory_gib=288),
    shared_memory_banks=64,
    buffers="gl.amd.gfx1250",
    has_tdm=True,
    scaling="float32",
)
