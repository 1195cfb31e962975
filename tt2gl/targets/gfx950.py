"""AMD CDNA4: larger MFMA, direct-to-LDS copies of 128 bits and transposing LDS reads, waves of 64."""

from __future__ import annotations

from tt2gl.targets.base import Device, Target

TARGET = Target(
    name="gfx950",
    backend="hip",
    arch="gfx950",
    warp_size=64,
    shared_memory_bytes=160 * 1024,
    description="CDNA4 (MI350)",
    device=Device("AMD Instinct MI355X", multiprocessors=256, memory_gib=288),
    shared_memory_banks=64,
    buffers="gl.amd.cdna4",
    buffer_atomics=True,
    scaling="float32",
)
