"""What lowering finds in a function's text: the names it assigns, the calls that make descriptors, comments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.lowering.descriptor_calls import is_make
from tt2gl.lowering.expressions import target_names
from tt2gl.visitors import Reader

Resolve = Callable[[cst.CSTNode], Collection[str]]
"""What a name resolves to, by libcst's scopes."""


@dataclass
class Makes(Reader):
    """The calls that make descriptors, and how often assignments give each name one."""

    named: Resolve
    calls: list[cst.Call] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def visit_Assign(self, node: cst.Assign) -> None:
        """Note the name that is given one."""
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(target))], value=cst.Call(func=func)):
                self.names[target] += is_make(self.named(func))

    def visit_Call(self, node: cst.Call) -> None:
        """Note a call that makes one."""
        if is_make(self.named(node.func)):
            self.calls.append(node)


@dataclass
class Assigned(Reader):
    """Every name that statements assign, as often as they do."""

    names: list[str] = field(default_factory=list)

    def _note(self, targets: Sequence[cst.BaseExpression]) -> None:
        self.names += target_names(targets)

    def visit_Assign(self, node: cst.Assign) -> None:
        """Note its targets."""
        self._note([target.target for target in node.targets])

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        """Note its target."""
        self._note([node.target])

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        """Note its target."""
        self._note([node.target])

    def visit_For(self, node: cst.For) -> None:
        """Note what it counts with."""
        self._note([node.target])

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        """Note its target."""
        self._note([node.target])


def stem_of(descriptor: str) -> str:
    """What a descriptor is of: `k` of `k_desc`, `desc_k` and `K_tensor_desc`."""
    short = descriptor.removeprefix("desc_").removesuffix("_descriptor").removesuffix("_desc").removesuffix("_tensor")
    return short if short.isidentifier() else descriptor
