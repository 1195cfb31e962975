"""What every target states about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Device:
    """A GPU of an architecture, as torch tells of it: host code sizes its grids by that.

    What torch counts as multiprocessors are pairs of compute units on gfx11 and gfx12.
    """

    name: str
    multiprocessors: int
    memory_gib: int


@dataclass(frozen=True)
class Target:
    """One GPU architecture: how Triton names it, and its limits for one block of threads.

    `arch` is the compute capability times ten (90) or the LLVM name ("gfx942"); `shared_memory_bytes` is the most
    shared memory (LDS) a kernel can ask for at launch, and `shared_memory_banks` the banks of 4 bytes it is made of.
    `device` stands for its GPUs where there is none to be asked.
    `buffers`: the module of Gluon that has its buffer operations, empty where it has none; `buffer_atomics`: Triton
    uses the atomic ones too. `has_tdm`: a data mover copies tiles through tensor descriptors, by Gluon's `tdm`.
    `scaling`: what 4-bit floats are multiplied by their scales in, where they then are bfloat16; what an instruction
    does not round is cut off.
    """

    name: str
    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: Literal[32, 64]
    shared_memory_bytes: int
    description: str
    device: Device
    shared_memory_banks: int = 32
    buffers: str = ""
    buffer_atomics: bool = False
    has_tdm: bool = False
    scaling: Literal["bfloat16", "float32", "float32, cut off"] = "bfloat16"

    @property
    def has_tma(self) -> bool:
        """Whether hardware copies tiles through tensor descriptors, by Gluon's `tma`."""
        return self.backend == "cuda" and int(self.arch) >= 90

    @property
    def specializes_warps(self) -> bool:
        """Whether Triton hands any loop's work out among warps where a kernel asks; on Hopper it does so with few."""
        return self.backend == "cuda" and int(self.arch) // 10 == 10

    @property
    def has_tensor_memory(self) -> bool:
        """Whether products have a memory of their own, by `tcgen05`."""
        return self.backend == "cuda" and int(self.arch) // 10 == 10

    @property
    def writes_scales_out(self) -> bool:
        """Whether Triton multiplies by scales itself, by floats that have the exponents' bits: 0 is a scale of zero."""
        return self.backend == "cuda" and int(self.arch) < 100

    @property
    def slots_apart(self) -> bool:
        """Whether the slots of a ring that are read and that are filled are counted apart beside loads, too.

        For Blackwell, Triton has a ptxas of its own.
        """
        return self.backend == "cuda" and int(self.arch) >= 100

    @property
    def vendor(self) -> str:
        """Who makes it, as people write it."""
        return "NVIDIA" if self.backend == "cuda" else "AMD"

    def __str__(self) -> str:
        return self.name
