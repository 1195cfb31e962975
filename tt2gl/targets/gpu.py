"""Which GPU this machine has, asked of the driver without torch and without side effects on this process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path

from tt2gl.isolate import run_isolated

_DEVICES = Path("/dev")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")

# cuDeviceGetAttribute's numbers for the two halves of the compute capability.
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76


def present_architecture(devices: Path = _DEVICES, kfd_nodes: Path = _KFD_NODES) -> str | None:
    """The first GPU's architecture as `sm90` or `gfx942` (not always a target's name), or None without a GPU.

    A machine without a GPU has none of the device files, and costs three `stat` calls.
    """
    if (devices / "nvidiactl").exists() or (devices / "dxg").exists():
        # In a child: a process that has started CUDA can no longer fork children that use it.
        capability = run_isolated(cuda_capability, timeout=20.0).value
        if capability is not None:
            return f"sm{capability}"
    if (devices / "kfd").exists():
        return kfd_architecture(sorted(kfd_nodes.glob("*/properties")))
    return None


def cuda_capability() -> int | None:
    """Ten times the compute capability of CUDA device 0 (90 on Hopper), asked of libcuda."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        return None
    numbers = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        number = ctypes.c_int()
        if cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device):
            return None
        numbers.append(number.value)
    return 10 * numbers[0] + numbers[1]


def kfd_architecture(properties: Iterable[Path]) -> str | None:
    """The LLVM name of the first GPU among AMD's topology nodes (CPUs are nodes too, of version 0)."""
    for path in properties:
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == "gfx_target_version" and int(value):
                major, minor, step = int(value) // 10000, int(value) // 100 % 100, int(value) % 100
                return f"gfx{major}{minor:x}{step:x}"
    return None
