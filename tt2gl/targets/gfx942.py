"""AMD CDNA3: MFMA and buffer operations, waves of 64."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="gfx942",
    backend="hip",
    arch="gfx942",
    warp_size=64,
    shared_memory_bytes=64 * 1024,
    description="CDNA3 (MI300)",
    device=Device("AMD Instinct MI300X", multiprocessors=304, memory_gib=192),
    buffers="gl.amd.cdna3",
    buffer_atomics=True,
    scaling="float32, cut off",
)
