"""Helpers that are given tensors of pointers, and could be given offsets and a scalar pointer.

    acc = attend(acc, k_ptrs, n)                          # before

    acc = attend(acc, k_offsets, n, k_ptr=K)              # after

A helper takes a parameter so where all its callers can give it, and its accesses by it are proven to be right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tt2gl.analysis.addresses import address, pointer_kinds, scalar_parts
from tt2gl.analysis.offset_ranges import Body
from tt2gl.names import unused
from tt2gl.trees import nodes_in


def could_be_pairs(body: Body) -> dict[str, str]:
    """The parameters of a helper that all its callers give tensors of pointers, and names of their scalar pointers."""
    taken = {node.id for node in nodes_in(body.tree) if isinstance(node, ast.Name)} | set(body.arguments)
    made: dict[str, str] = {}
    for name in body.arguments if not body.is_kernel else ():
        given = [(caller, body.argument_of(name, call), call) for caller, call in body.callers]
        if given and all(_is_plain(body, *each) for each in given):
            made[name] = unused(_scalar_name(name), taken)
            taken.add(made[name])
    return made


def _is_plain(body: Body, caller: Body, argument: ast.expr | None, call: ast.Call) -> bool:
    """Whether a call gives a tensor of pointers by its place, to one function under every launch."""
    by_place = any(argument is each for each in call.args) and not any(isinstance(e, ast.Starred) for e in call.args)
    return (
        argument is not None
        and by_place
        and caller.called(call) == [body]
        and pointer_kinds(caller, argument) == {"tensor"}
    )


def _scalar_name(name: str) -> str:
    return name[:-1] if name.endswith(("ptrs", "pointers")) else f"{name}_base"


def offsets_name(name: str) -> str:
    """What the offsets of a pointer, or of several, are called."""
    for pointers in ("_ptrs", "_pointers", "_ptr", "ptrs"):
        if pointers in name:
            return name.replace(pointers, "_offsets" if pointers.startswith("_") else "offsets", 1)
    return f"{name}_offsets"


def passed_pairs(body: Body) -> Iterator[tuple[ast.Call, Body, str, ast.expr]]:
    """The calls in a function that give a helper offsets: the helper, its parameter, and the tensor of pointers."""
    for node in nodes_in(body.tree):
        if isinstance(node, ast.Call):
            for callee in body.called(node):
                for name in callee.pairs:
                    argument = callee.argument_of(name, node)
                    if argument is not None:
                        yield node, callee, name, argument


def scalar_of(body: Body, argument: ast.expr) -> ast.Name | None:
    """The scalar pointer that an argument starts from, by name; None where it is none or has none."""
    made = address(body, argument)
    if made is None:
        return None
    if not made.is_variable:
        parts = scalar_parts(body, made.start)
        return parts[0] if parts is not None else None
    name = body.carried.get(ast.unparse(made.start))
    return ast.copy_location(ast.Name(name, ast.Load()), argument) if name is not None else None


def give(body: Body) -> set[str]:
    """Note what the scalar pointers of a helper are in its callers, which are decided; those that one cannot say."""
    body.given = {}
    cannot: set[str] = set()
    for name, pointer in body.pairs.items():
        found: list[tuple[Body, ast.expr]] = []
        for caller, call in body.callers:
            argument = body.argument_of(name, call)
            start = scalar_of(caller, argument) if argument is not None else None
            if start is None:
                cannot.add(name)
            else:
                found.append((caller, start))
        body.given[pointer] = found
    return cannot


__all__ = ["could_be_pairs", "give", "offsets_name", "passed_pairs", "scalar_of"]
