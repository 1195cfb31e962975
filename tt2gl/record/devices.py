"""The GPU that is played on a machine without one, for each target: host code sizes its grids by it."""

from __future__ import annotations

from tt2gl.record.observer.gpu import Gpu
from tt2gl.targets import Target

_GIB = 1 << 30

# Name, multiprocessors as torch counts them (pairs of compute units on gfx11 and gfx12), memory in GiB.
_DEVICES = {
    "sm80": ("NVIDIA A100-SXM4-80GB", 108, 80),
    "sm90": ("NVIDIA H200", 132, 140),
    "sm100": ("NVIDIA B200", 148, 180),
    "sm120": ("NVIDIA GeForce RTX 5090", 170, 32),
    "gfx942": ("AMD Instinct MI300X", 304, 192),
    "gfx950": ("AMD Instinct MI355X", 256, 288),
    "gfx1250": ("AMD gfx1250", 256, 288),
    "gfx1100": ("AMD Radeon RX 7900 XTX", 48, 24),
    "gfx1201": ("AMD Radeon RX 9070 XT", 32, 16),
}


def device_of(target: Target) -> Gpu:
    """A GPU of this architecture."""
    name, multiprocessors, gibibytes = _DEVICES[target.name]
    return Gpu(
        name=name,
        backend=target.backend,
        arch=target.arch,
        warp_size=target.warp_size,
        multiprocessors=multiprocessors,
        shared_memory_bytes=target.shared_memory_bytes,
        memory_bytes=gibibytes * _GIB,
    )
