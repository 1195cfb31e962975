"""A kernel as it is analysed: what was decided for each of its launches, on the way to one plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.analysis.collected import Body
from tt2gl.analysis.decisions import Decisions
from tt2gl.analysis.facts import Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.staging import Refusal
from tt2gl.stages import Stages
from tt2gl.words import STORE_AGAIN


@dataclass
class KernelAnalysis:
    """Launches of one kernel, analysed. `taken` are names that its layouts must not shadow.

    `label`: what tells these launches from others of the kernel, where it has several bodies. `bodies`: the functions
    of which they have a text of their own, and its name.
    """

    function: FunctionKey
    name: str
    scenes: Sequence[Scene]
    classes: Classes
    decisions: Sequence[Decisions]
    taken: frozenset[str]
    names: dict[str, str] = field(default_factory=dict)
    stages: Stages | None = None
    refused: tuple[Refusal, ...] = ()
    wide: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    flattened: Mapping[FunctionKey, frozenset[str]] = field(default_factory=dict)
    rereading: Mapping[FunctionKey, frozenset[tuple[int, int]]] = field(default_factory=dict)
    unreached: dict[FunctionKey, list[Position]] = field(default_factory=dict)
    unverified: dict[FunctionKey, Position] = field(default_factory=dict)
    label: str = ""
    bodies: dict[FunctionKey, str] = field(default_factory=dict)

    @property
    def tiles_in_rings(self) -> bool:
        """Whether some ring is of tiles that a descriptor says."""
        return any(want.tile and want.name for made in self.decisions for _, want in made.staged.values())

    @property
    def stores_again(self) -> bool:
        """Whether some stores go through a tile that outlasts them."""
        return any(kind == STORE_AGAIN for made in self.decisions for kind in made.tiles.values())

    def body(self, key: FunctionKey) -> Body:
        """The text that these launches have of a function: one of their own, by its name in `bodies`, or everyone's."""
        return (*key, self.bodies.get(key, ""))
