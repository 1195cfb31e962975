"""The GPU that is played on a machine without one, for each target: host code sizes its grids by it."""

from __future__ import annotations

from tt2gl.record.observer.gpu import Gpu
from tt2gl.targets import Target


def device_of(target: Target) -> Gpu:
    """A GPU of this architecture."""
    return Gpu(
        name=target.device.name,
        backend=target.backend,
        arch=target.arch,
        warp_size=target.warp_size,
        multiprocessors=target.device.multiprocessors,
        shared_memory_bytes=target.shared_memory_bytes,
        memory_bytes=target.device.memory_gib << 30,
    )
