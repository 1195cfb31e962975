"""The blocks of the tensor descriptors that a kernel is given: what hooks and launch calls say, and its own offsets."""

from __future__ import annotations

import ast
import copy
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tt2gl.host.values import Function, HostRaise, Undecided
from tt2gl.infer.calls import METHODS, as_method
from tt2gl.infer.found import Known
from tt2gl.infer.kernel import Kernel
from tt2gl.trees import nodes_in

_USUAL = 64
_DEPTH = 6


def guess_block(kernel: Kernel, known: Known, constexprs: Mapping[str, Any], name: str, rank: int) -> tuple[int, ...]:
    """The block of a descriptor that a kernel takes `rank` indices of, under a launch with these constexprs.

    In order: what the config's hook sets; what the launch call's descriptor is made with; the tiles that offsets are
    multiples of, else 64 rows and columns.
    """
    for block in (_set_by_hook(kernel, known, constexprs, name), _made_with(known, constexprs, name)):
        if len(block) == rank:
            return block
    usual = [1] * (rank - 2) + [_USUAL] * min(rank, 2)
    return tuple(step or extent for step, extent in zip(_steps(kernel, constexprs, name, rank), usual, strict=True))


def _made_with(known: Known, constexprs: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The block that a launch call says, of numbers and the parameters that it passes the same to."""
    extents = [constexprs.get(extent) if isinstance(extent, str) else extent for extent in known.blocks.get(name, ())]
    # Where a hook sets the block, what the descriptor is made with stands for none: ones.
    return _block(extents) if any(extent != 1 for extent in extents) else ()


def _set_by_hook(kernel: Kernel, known: Known, constexprs: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The block that a config's `pre_hook` sets; empty where it cannot be told."""
    if known.hook is None or not isinstance(known.hook.node, ast.FunctionDef):
        return ()
    hook = ast.fix_missing_locations(_BlocksAsItems().visit(copy.deepcopy(known.hook.node)))
    arguments: dict[str, Any] = {**dict.fromkeys(kernel.names), **known.values, **constexprs}
    try:
        kernel.evaluator.call(Function(known.hook.frame, hook), [arguments], {})
    except (Undecided, HostRaise):
        return ()
    return _block(arguments[name])


class _BlocksAsItems(ast.NodeTransformer):
    """A hook that puts blocks where the descriptors are: it can be read then, as descriptors cannot."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        for place, target in enumerate(node.targets):
            match target:
                case ast.Attribute(value=ast.Subscript() as item, attr="block_shape"):
                    node.targets[place] = ast.copy_location(ast.Subscript(item.value, item.slice, ast.Store()), item)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Subscript(), _]):
                return ast.copy_location(ast.Constant(value=True), node)
        return node


def _block(extents: Any) -> tuple[int, ...]:
    whole = isinstance(extents, list | tuple) and all(type(extent) is int and extent > 0 for extent in extents)
    return tuple(extents) if whole else ()


def _steps(kernel: Kernel, constexprs: Mapping[str, Any], name: str, rank: int) -> Sequence[int]:
    """The tile that the offset along each dimension is a multiple of, 0 where none is seen."""
    steps = [0] * rank
    for offsets in _transfers(kernel.node).get(name, ()):
        if len(offsets) == rank:
            reader = _Offsets(kernel.node, constexprs)
            found = [reader.step(offset, _DEPTH) for offset in offsets]
            if not found[-1] and isinstance(offsets[-1], ast.Constant):
                found[-1] = reader.whole_row()
            steps = [step or other for step, other in zip(steps, found, strict=True)]
    return steps


# Asked for each parameter under every launch that is tried.
@functools.lru_cache(maxsize=8)
def _transfers(kernel: ast.FunctionDef) -> Mapping[str, Sequence[Sequence[ast.expr]]]:
    """The offsets of what a kernel loads and stores by methods, by the name that has them."""
    found: dict[str, list[Sequence[ast.expr]]] = {}
    for node in nodes_in(kernel):
        match as_method(node) if isinstance(node, ast.Call) else None:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr=method),
                args=[ast.List(elts=offsets) | ast.Tuple(elts=offsets), *_],
            ) if method in METHODS:
                found.setdefault(owner, []).append(offsets)
    return found


@functools.lru_cache(maxsize=8)
def assigned(kernel: ast.FunctionDef) -> Mapping[str, Sequence[ast.expr]]:
    """What a kernel assigns to its variables, and multiples of what it adds to them or steps them by."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes_in(kernel):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                found.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Name() as value):
                found.setdefault(name, []).append(ast.BinOp(value, ast.Mult(), ast.Constant(value=1)))
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[_, _, step])):
                found.setdefault(name, []).append(ast.BinOp(step, ast.Mult(), ast.Constant(value=1)))
    return found


class _Offsets:
    """Follows offsets back through a kernel's assignments to the constexpr that they are a multiple of."""

    def __init__(self, kernel: ast.FunctionDef, constexprs: Mapping[str, Any]) -> None:
        self.tiles = {name: value for name, value in constexprs.items() if type(value) is int and value > 1}
        self.values = assigned(kernel)

    def step(self, offset: ast.expr, depth: int) -> int:
        """The tile that an offset is a multiple of, 0 where none is seen."""
        match offset:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                sides = (side.id for side in (right, left) if isinstance(side, ast.Name))
                return next((self.tiles[side] for side in sides if side in self.tiles), 0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self.step(right, depth) or self.step(left, depth)
            case ast.Call(func=ast.Attribute(value=value, attr="to")):
                return self.step(value, depth)
            case ast.Name(id=name) if depth:
                return next((step for value in self.values.get(name, ()) if (step := self.step(value, depth - 1))), 0)
        return 0

    def whole_row(self) -> int:
        """The extent of a tile that is as wide as its tensor, 0 where no parameter has that name."""
        named = (value for name, value in self.tiles.items() if re.search(r"HEAD_?DIM|D_?MODEL", name.upper()))
        return next(named, 0)
