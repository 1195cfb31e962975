"""Loops that Triton gives warps of their own: compiled once more as one loop for all warps, which is what a port is.

Where Triton specialises warps (`tl.range(..., warp_specialize=True)`), what it compiles says nothing of an ordinary
pipeline: a product has a part of its tile, and the rings of its loads are handed from warps to warps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tt2gl.analysis.facts import Lowered
from tt2gl.ir.operations import Module


def is_specialised(module: Module) -> bool:
    """Whether some loop has been given warps of its own."""
    return any(operation.name == "ttg.warp_specialize" for operation in module.kernel.walk())


class WholeLoops:
    """While it is active, Triton's frontend asks for no such loops. `asked`: where the author's code does.

    `place` says where a node is that a code generator visits.
    """

    def __init__(self, place: Callable[[Any, Any], tuple[str, int, int]]) -> None:
        self.place = place
        self.asked: list[tuple[str, int, int]] = []
        self._visited: list[tuple[Any, Any]] = []

    def __enter__(self) -> WholeLoops:
        from triton import language
        from triton.compiler.code_generator import CodeGenerator

        self._patched: list[tuple[Any, str, Any]] = [
            (CodeGenerator, "visit_For", CodeGenerator.visit_For),
            (language.range, "__init__", language.range.__init__),
        ]
        (_, _, visit), (_, _, init) = self._patched
        whole = self

        def visit_for(generator: Any, node: Any) -> Any:
            whole._visited.append((generator, node))
            value = visit(generator, node)
            whole._visited.pop()
            return value

        def range_init(loop: Any, *args: Any, **kwargs: Any) -> None:
            init(loop, *args, **kwargs)
            if loop.warp_specialize:
                loop.warp_specialize = False
                whole.asked.append(whole.place(*whole._visited[-1]))

        CodeGenerator.visit_For = visit_for
        language.range.__init__ = range_init
        return self

    def noted(self, lowered: Lowered) -> Lowered:
        """Facts, with the loops that were asked for."""
        return replace(lowered, specialised=tuple(self.asked))

    def __exit__(self, *_: object) -> None:
        for owner, name, original in self._patched:
            setattr(owner, name, original)
