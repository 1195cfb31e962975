"""The kernels of this folder: for which targets each is, what it needs of Triton, and its launches."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from pathlib import Path

from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch

FOLDER = Path(__file__).parent

# The target that each kernel is simulated for. Those for sm80 run on later NVIDIA GPUs as well.
TARGETS = {
    "cp_async": "sm80",
    "shared": "sm80",
    "wgmma": "sm90",
    "tma": "sm90",
    "warp_specialize": "sm90",
    "tcgen05": "sm100",
    "pipelines": "sm90",
    "pipelines.permute_rows_kernel": "sm100",
    "amd.mfma_matmul_kernel": "gfx942",
    "amd.softmax_kernel": "gfx942",
    "amd.direct_to_lds_matmul_kernel": "gfx950",
    "amd.row_sums_kernel": "gfx950",
    "amd.wmma_matmul_kernel": "gfx1250",
    "amd.tdm_matmul_kernel": "gfx1250",
}

# Functions that not every Triton has.
NEEDS = {"tma.split_k_kernel": "triton.experimental.gluon.language.nvidia.hopper.tma:async_atomic_add"}


@dataclass(frozen=True)
class Case:
    """One launch of one kernel: `file` without its ending, the launch's place in its file, and the target."""

    file: str
    launch: Launch
    index: int
    target: str

    @property
    def kernel(self) -> str:
        """The kernel's name in its file."""
        return self.launch.kernel

    @property
    def path(self) -> Path:
        """The kernel's source."""
        return FOLDER / f"{self.file}.py"

    @property
    def name(self) -> str:
        """What tests call it: `cp_async.matmul_kernel.0`."""
        return f"{self.file}.{self.kernel}.{self.index}"


def available(file: str, kernel: str) -> bool:
    """Whether the Triton installed has all that a kernel calls."""
    module, _, function = NEEDS.get(f"{file}.{kernel}", "builtins:print").partition(":")
    return hasattr(importlib.import_module(module), function)


@functools.cache
def cases(file: str | None = None) -> tuple[Case, ...]:
    """All launches that the Triton installed can compile, of one file or of all."""
    found = []
    for path in sorted(FOLDER.glob("*.launches.json")):
        stem = path.name.removesuffix(".launches.json")
        if file not in (None, stem):
            continue
        for index, launch in enumerate(read_launches(path)):
            if available(stem, launch.kernel):
                target = TARGETS.get(f"{stem}.{launch.kernel}") or TARGETS[stem]
                found.append(Case(stem, launch, index, target))
    return tuple(found)
