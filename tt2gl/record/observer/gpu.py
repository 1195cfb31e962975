"""What is told of a GPU that is not there, to host code that asks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU to be played: `backend` and `arch` as Triton's `GPUTarget` has them, sizes in bytes."""

    name: str
    backend: str
    arch: int | str
    warp_size: int
    multiprocessors: int
    shared_memory_bytes: int
    memory_bytes: int

    @property
    def capability(self) -> tuple[int, int]:
        """What torch calls the device's capability; for AMD's it is read off the architecture's name."""
        if isinstance(self.arch, int):
            return divmod(self.arch, 10)
        digits = self.arch.removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)

    def to_json(self) -> str:
        """As an environment variable holds it."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Gpu:
        """The inverse of `to_json`."""
        return Gpu(**json.loads(text))
