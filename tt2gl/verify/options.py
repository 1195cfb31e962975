"""How to simulate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArithmeticChoice = Literal["auto", "ieee", "field"]


@dataclass(frozen=True)
class SimulationOptions:
    """What arithmetic, how many random inputs, bytes of memory for all together, seconds for one kernel and launch.

    `auto` arithmetic is IEEE, and the field's too where results are not bit-equal (see docs/simulation.md).
    """

    arithmetic: ArithmeticChoice = "auto"
    seeds: int = 2
    memory_limit: int = 4 << 30
    timeout: float = 300.0
