"""Which names of functions hold no tensors: only numbers and pointers, whoever calls the function.

A name is one if all that it is ever bound to is computed of such names, and a helper's parameter if all calls give it
that. A kernel's own parameters are, also where it only chooses which function is to run, and constants of the
compiler's, as layouts are. What helpers of other files compute of numbers is numbers: those that make tensors have been
brought into the file.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.flow import NONE, Names, inside, reads, writes
from tt2gl.pipelining.static import bound, called, constants, parameters, says_constexpr
from tt2gl.trees import nodes_in

_MAKERS = ("allocate_shared_memory", "convert_layout", "full", "zeros")
_OF_NUMBERS = ("abs", "float", "int", "max", "min", "range")
"""What makes numbers of numbers, by its bare name: of others that the file has, nothing is known."""


def makes_tensor(node: ast.AST, helpers: Collection[str] | None = None) -> bool:
    """Whether a part of an expression may give a tensor a layout: all of Gluon's own functions that do are told it.

    So may `helpers`; None for all functions that have bare names.
    """
    if not isinstance(node, ast.Call):
        return False
    name = called(node)
    told = name in _MAKERS or any(keyword.arg == "layout" for keyword in node.keywords)
    if isinstance(node.func, ast.Attribute):
        return told
    return told or (name in helpers if helpers is not None else name not in _OF_NUMBERS)


@dataclass(frozen=True)
class _Binding:
    """What names of the function `owner` are bound to, by source of the function `reader`."""

    owner: str
    names: Names
    value: ast.expr
    reader: str


def without_layouts(tree: ast.Module, names: Collection[str]) -> dict[str, Names]:
    """The names of functions of a file, by those of the functions, that hold no tensors."""
    every = [each for each in nodes_in(tree) if isinstance(each, ast.FunctionDef)]
    functions, helpers = [each for each in every if each.name in names], {each.name for each in every}
    own: dict[str, Names] = {}
    for function in functions:
        own[function.name] = own.get(function.name, NONE) | bound(function)
    bindings = [each for function in functions for each in (*_bindings(function), *_given(function, functions))]
    known = {name: all_of - _from_elsewhere(tree, functions).get(name, NONE) for name, all_of in own.items()}
    changed = True
    while changed:
        changed = False
        for each in bindings:
            tensors = own[each.reader] - known[each.reader]
            if each.names & known[each.owner] and _holds_tensor(each.value, tensors, helpers):
                known[each.owner] -= each.names
                changed = True
    return known


def _holds_tensor(value: ast.expr, tensors: Names, helpers: Collection[str]) -> bool:
    """Whether an expression may be a tensor, some names being ones."""
    return bool(reads(value) & tensors) or any(makes_tensor(node, helpers) for node in nodes_in(value))


def _bindings(function: ast.FunctionDef) -> Iterator[_Binding]:
    """What the names of a function are bound to, but for its parameters."""
    for node in nodes_in(function):
        match node:
            case ast.Assign(value=value) | ast.For(iter=value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = NONE.union(*map(writes, targets))
            case ast.AnnAssign(annotation=annotation) if says_constexpr(annotation):
                continue
            case (
                ast.AugAssign(target=target, value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                names = writes(target)
            case _:
                continue
        yield _Binding(function.name, names, value, function.name)


def _given(caller: ast.FunctionDef, functions: Sequence[ast.FunctionDef]) -> Iterator[_Binding]:
    """What the calls of a function give the parameters of others."""
    helpers = {each.name: each for each in functions}
    for node in nodes_in(caller):
        if isinstance(node, ast.Call) and (helper := helpers.get(getattr(node.func, "id", ""))) is not None:
            places = [each.arg for each in (*helper.args.posonlyargs, *helper.args.args)]
            for name, value in zip(places, node.args, strict=False):
                yield _Binding(helper.name, frozenset((name,)), value, caller.name)
            for keyword in node.keywords:
                names = frozenset((keyword.arg,)) if keyword.arg is not None else parameters(helper)
                yield _Binding(helper.name, names, keyword.value, caller.name)


def _from_elsewhere(tree: ast.Module, functions: Sequence[ast.FunctionDef]) -> dict[str, Names]:
    """The parameters that may be tensors, by the functions' names, as others than these functions call them, too."""
    plainly = {getattr(node.func, "id", "") for node in nodes_in(tree) if isinstance(node, ast.Call)}
    known = [*functions, *(each for each in _choosing(tree) if each.name not in plainly)]
    own = {id(node) for function in known for node in nodes_in(function)}
    calls = (node for node in nodes_in(tree) if isinstance(node, ast.Call) and id(node) not in own)
    names = {getattr(call.func, "id", "") for call in calls}
    return {each.name: parameters(each) - constants(each) for each in functions if each.name in names}


def _choosing(tree: ast.Module) -> list[ast.FunctionDef]:
    """The kernels that do nothing but choose, by constants, which of other functions is given their parameters."""
    kernels = (each for each in nodes_in(tree) if isinstance(each, ast.FunctionDef))
    kernels = (each for each in kernels if "gluon.jit" in map(ast.unparse, each.decorator_list))
    return [
        kernel
        for kernel in kernels
        if all(_hands_on(each) for each in inside(kernel.body) if not isinstance(each, ast.If))
    ]


def _hands_on(statement: ast.stmt) -> bool:
    """Whether a statement is a call that is given names alone, or a text."""
    match statement:
        case ast.Expr(value=ast.Call(args=args, keywords=keywords)):
            return all(isinstance(each, ast.Name) for each in (*args, *(keyword.value for keyword in keywords)))
        case ast.Expr(value=ast.Constant()):
            return True
    return False
