"""What was loaded from a parameter and took its name gets one of its own, Triton to Triton (AMD).

    kv_ptrs = KV + rows
    KV = tl.load(kv_ptrs)
    ...
    tl.store(kv_ptrs, KV * decay)

becomes `KV_2 = tl.load(kv_ptrs)`, and so on. A buffer operation takes the scalar pointer, where the author has tensors
of pointers that were made of it before: what it is called must mean that as long as those are read. What a read may
find to be the one or the other keeps its name.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator

from tt2gl.edits import Edit, Places
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.names import claimed
from tt2gl.reaching import assigned_in, reads_after, together
from tt2gl.source import SourceFile
from tt2gl.trees import functions_in, nodes_in, python_tree


def loaded_parameters(source: SourceFile) -> Lowered:
    """Tell apart what parameters of every Triton function of a file are, before and after they are loaded from."""

    def edits(function: JitFunction, _: Spans) -> Iterator[Edit]:
        text = source.text.removeprefix("\ufeff")
        for tree in functions_in(python_tree(text)):
            if tree.lineno == function.line:
                yield from _edits(Places(text), tree)

    return each_function(source, [".load("], edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    arguments = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    taken = {node.id for node in _named(function)} | set(arguments)
    assigned = {node.id for node in _named(function) if _stores(node)}
    # What is added in place is read before.
    tree = _AsSums().visit(copy.deepcopy(function)) if assigned & set(arguments) else function
    for name in arguments:
        found = {places.of(node) for node in _behind_loads(tree, name)} if name in assigned else ()
        own = claimed(f"{name}_2", taken) if found else ""
        yield from (Edit(*place, own) for place in sorted(found))


class _AsSums(ast.NodeTransformer):
    """A tree in which `x += y` is `x = x + y`, with both at the place of the one."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], value), node)


def _behind_loads(function: ast.FunctionDef, name: str) -> list[ast.Name]:
    """Where a parameter's name stands for what was loaded, or made after that, where pointers made of it live on."""
    statements = sorted(assigned_in(function.body, name), key=lambda each: (each.lineno, each.col_offset))
    values = {each: each.value for each in statements if isinstance(each, ast.Assign | ast.AnnAssign) and each.value}
    loaded = [each for each, value in values.items() if _is_loaded(value)]
    if len(values) < len(statements) or not loaded:
        return []
    nodes = {each: [node for node in _named(each, {name}) if _stores(node)] for each in statements}
    entry: ast.stmt = ast.Pass()
    given: list[ast.Name] = []
    groups: list[frozenset[ast.stmt]] = []
    for read, after in reads_after(function.body, name, frozenset([entry])):
        # What is added to in place is one thing.
        groups.append(after | {each for each in statements if any(_is_at(read, node) for node in nodes[each])})
        if entry in after:
            given.append(read)
        else:
            nodes[min(after, key=lambda statement: (statement.lineno, statement.col_offset))].append(read)
    things = together([entry, *statements], groups)
    behind = [each for each in statements if entry not in things[each]]
    if not any(each in behind and _is_pointed_to(function, given, each) for each in loaded):
        return []
    return [node for each in behind for node in nodes[each]]


def _is_loaded(value: ast.AST) -> bool:
    """Whether a value is what was loaded, or what its methods make of that."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr="load")):
            return True
        case ast.Call(func=ast.Attribute(value=inner)):
            return _is_loaded(inner)
    return False


def _is_pointed_to(function: ast.FunctionDef, given: Collection[ast.Name], loaded: ast.stmt) -> bool:
    """Whether what is made of a parameter where it is `given`, other than by loading, is read behind a statement."""
    simple = [each for each in nodes_in(function) if isinstance(each, ast.Assign | ast.AnnAssign) and each.value]
    made: set[str] = set()
    while True:
        more = {
            node.id
            for each in simple
            for read in _outside_loads(each.value)
            if read in given or isinstance(read, ast.Name) and read.id in made
            for node in _named(each)
            if _stores(node)
        }
        if more <= made:
            break
        made |= more
    made -= {node.id for node in given}
    around = [each for each in nodes_in(function) if isinstance(each, ast.For | ast.While) and loaded in nodes_in(each)]
    since = min([loaded.lineno, *(each.lineno for each in around)])
    return any(node.lineno >= since and not _stores(node) for node in _named(function, made))


def _outside_loads(node: ast.AST | None) -> Iterator[ast.AST]:
    """A node and all below it, but what is loaded."""
    if node is None or _is_loaded(node):
        return
    yield node
    for inner in ast.iter_child_nodes(node):
        yield from _outside_loads(inner)


def _named(node: ast.AST, names: Collection[str] | None = None) -> list[ast.Name]:
    """The names below a node, those of some if they are given."""
    found = [each for each in nodes_in(node) if isinstance(each, ast.Name)]
    return found if names is None else [each for each in found if each.id in names]


def _is_at(one: ast.Name, other: ast.Name) -> bool:
    return (one.lineno, one.col_offset) == (other.lineno, other.col_offset)


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
