"""Rule `buffer_ops`: how large tensors may be, and what launches say of that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

BUFFER_BYTES = 2**31 - 2
"""What a buffer can have at most, as Triton describes it to the hardware."""


@dataclass(frozen=True)
class Sizes:
    """What launches say of the kernels' tensors: bytes by kernel and parameter, None where one says nothing.

    `guarded`: the kernels of which what they do not say is checked at each launch.
    """

    bytes: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    guarded: frozenset[str] = frozenset()

    def refused(self, parameters: Collection[tuple[str, str]]) -> str:
        """Why tensors cannot be taken to end below 2 GiB; empty where they can."""
        for kernel, name in sorted(parameters):
            size = self.bytes.get((kernel, name))
            if size is None and kernel not in self.guarded:
                return f"no launch says how large the tensor of {name} is"
            if size is not None and size > BUFFER_BYTES:
                return f"the tensor of {name} has {size} bytes under some launch, 2 GiB or more"
        return ""
