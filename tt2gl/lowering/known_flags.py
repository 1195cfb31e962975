"""Flags that the compiler knows, said to be its constants, Triton to Triton.

    def block(x_ptrs, x_mask, K, no_k_mask, BLOCK_K: tl.constexpr):
        for k in range(tl.cdiv(K, BLOCK_K)):
            if no_k_mask:
                x = tl.load(x_ptrs)
            else:
                x = tl.load(x_ptrs, mask=x_mask)

    def kernel(x_ptr, K: tl.constexpr, BLOCK_K: tl.constexpr):
        no_k_mask = K % BLOCK_K == 0
        block(x_ptrs, x_mask, K, no_k_mask, BLOCK_K)

become `no_k_mask: tl.constexpr` in both. Triton makes a tensor of what is assigned, and forgets the branch as soon as
it folds constants, so that its pipeliner copies ahead what is loaded on the side that is left; what reads source needs
to be told. Only what tests around loads in loops name is told, here or in a helper that it is given to, or that a loop
calls, and only where it can be no other thing: a local is bound once, to a comparison of constants or to one of them,
and is tested, combined or passed on alone; a helper's parameter is never bound again, and every mention of the
helper in its file is a call that gives it a constant.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.edits import Edit, Places
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile
from tt2gl.trees import nodes_in, python_tree

Flag = tuple[str, str]
"""A function's name, and that of a parameter or local of it."""


@dataclass
class _Function:
    """A Triton function: `bindings`, how often it binds which names; `fixed`, those that it says are constants."""

    tree: ast.FunctionDef
    bindings: dict[str, int]
    fixed: set[str]
    parents: dict[ast.AST, ast.AST]
    flags: dict[str, ast.Assign] = field(default_factory=dict)

    @property
    def parameters(self) -> list[ast.arg]:
        return [*self.tree.args.posonlyargs, *self.tree.args.args, *self.tree.args.kwonlyargs]

    def reads(self, name: str) -> list[ast.Name]:
        """Where a name is read."""
        return [
            node
            for node in nodes_in(self.tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def knows(self, node: ast.expr) -> bool:
        """Whether an expression is made of constants alone, by operators."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.fixed or name not in self.bindings
            case ast.UnaryOp() | ast.BinOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
                return all(self.knows(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return False


def known_flags(source: SourceFile) -> Lowered:
    """Have a file's Triton functions say which of the flags that decide about loads are constants."""
    step = Step(source)
    if "load(" not in step.text or (language := language_of(source)) is None:
        return step.done([], [])
    tree = python_tree(step.text)
    functions = _functions(source, tree)
    found = _found(functions, _wanted(functions), tree)
    places = Places(step.text)
    edits = [Edit(place, place, f": {language}.constexpr") for place in sorted(_ends(functions, found, places))]
    return step.done(edits, sorted({name for name, _ in found}))


def language_of(source: SourceFile) -> str | None:
    """What stands for `triton.language` in a file."""
    for node in walk(source.module):
        if isinstance(node, cst.Attribute) and source.names.of(node.value) == {"triton.language"}:
            return source.module.code_for_node(node.value)
    return None


def _functions(source: SourceFile, module: ast.Module) -> dict[str, _Function]:
    """The Triton functions of a file, those aside whose name another one has."""
    own = {(each.name, each.line) for each in source.functions if each.dialect == "triton"}
    found: dict[str, list[_Function]] = defaultdict(list)
    for tree in nodes_in(module):
        if isinstance(tree, ast.FunctionDef) and (tree.name, tree.lineno) in own:
            found[tree.name].append(_read(tree))
    return {name: each[0] for name, each in found.items() if len(each) == 1}


def _read(tree: ast.FunctionDef) -> _Function:
    bindings: dict[str, int] = defaultdict(int)
    known = _Function(tree, bindings, set(), {c: p for p in nodes_in(tree) for c in ast.iter_child_nodes(p)})
    for parameter in known.parameters:
        bindings[parameter.arg] += 1
        if parameter.annotation is not None and ast.unparse(parameter.annotation).endswith("constexpr"):
            known.fixed.add(parameter.arg)
    for node in nodes_in(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bindings[node.id] += 1
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("constexpr"):
            known.fixed.add(ast.unparse(node.target))
    known.fixed -= {name for name in known.fixed if bindings[name] > 1}
    for statement in _outside_loops(tree.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if bindings[name] == 1 and _is_flag(value):
                known.flags[name] = statement
    return known


def _outside_loops(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """A body's statements and those of its branches: what an arm alone binds never leaves it."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _outside_loops((*statement.body, *statement.orelse))


def _is_flag(node: ast.expr) -> bool:
    """Whether a value is a test, or has another name, that only tests read."""
    match node:
        case ast.Compare() | ast.Name():
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(map(_is_flag, values))
    return False


def _wanted(functions: dict[str, _Function]) -> set[Flag]:
    """What tests around loads in loops name, and what is given to a helper for that."""
    repeated = _repeated(functions)
    wanted = {(name, test) for name, each in functions.items() for test in _deciding(each, name in repeated)}
    while True:
        passed = {
            (name, read.id)
            for name, function in functions.items()
            for call in nodes_in(function.tree)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in functions
            for parameter, value in _given(call, functions[call.func.id]) or ()
            if (call.func.id, parameter) in wanted
            for read in nodes_in(value)
            if isinstance(read, ast.Name)
        }
        if passed <= wanted:
            return wanted
        wanted |= passed


def _repeated(functions: dict[str, _Function]) -> set[str]:
    """The functions that are called in loops, and those that they call."""
    loops = (loop for each in functions.values() for loop in nodes_in(each.tree) if isinstance(loop, ast.For))
    found: set[str] = set()
    more = {name for loop in loops for name in _called(loop, functions)}
    while more > found:
        found |= more
        more = found | {other for name in found for other in _called(functions[name].tree, functions)}
    return found


def _called(tree: ast.AST, functions: dict[str, _Function]) -> set[str]:
    return {
        node.func.id
        for node in nodes_in(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
    }


def _deciding(function: _Function, repeated: bool) -> Iterator[str]:
    for loop in [function.tree] if repeated else nodes_in(function.tree):
        for branch in nodes_in(loop) if repeated or isinstance(loop, ast.For) else ():
            if isinstance(branch, ast.If) and any(
                isinstance(call, ast.Call) and ast.unparse(call.func).endswith("load")
                for statement in (*branch.body, *branch.orelse)
                for call in nodes_in(statement)
            ):
                yield from (read.id for read in nodes_in(branch.test) if isinstance(read, ast.Name))


def _found(functions: dict[str, _Function], wanted: set[Flag], module: ast.Module) -> set[Flag]:
    """Of those, what is no constant yet by its text, and can be no other thing."""
    calls = {name: _calls(name, functions, module) for name in functions}
    found: set[Flag] = set()
    while True:
        more = {
            (name, flag)
            for name, function in functions.items()
            for flag in {flag for owner, flag in wanted if owner == name} - function.fixed
            if _is_local(function, flag, functions) or _is_given(function, flag, calls[name])
        }
        if not more:
            return found
        found |= more
        for name, flag in more:
            functions[name].fixed.add(flag)


def _is_local(function: _Function, name: str, functions: dict[str, _Function]) -> bool:
    """Whether a name is bound once, to a test of constants, and read where a constant serves as well."""
    made = function.flags.get(name)
    return (
        made is not None
        and function.knows(made.value)
        and all(_is_served(function, read, functions) for read in function.reads(name))
    )


def _is_served(function: _Function, read: ast.Name, functions: dict[str, _Function]) -> bool:
    around: ast.AST = read
    while isinstance(parent := function.parents[around], (ast.BoolOp, ast.Compare, ast.UnaryOp)):
        around = parent
    match parent:
        case ast.If(test=test) | ast.IfExp(test=test):
            return test is around
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in function.flags
    call = function.parents[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in functions:
        helper = functions[call.func.id]
        for parameter, value in _given(call, helper) or ():
            if value is around:
                reads = helper.reads(parameter)
                return helper.bindings[parameter] == 1 and all(_is_served(helper, each, functions) for each in reads)
    return False


def _is_given(function: _Function, name: str, calls: list[tuple[_Function, ast.Call]]) -> bool:
    """Whether a name is a parameter that is never bound again, and a constant in every call."""
    given = {parameter.arg: parameter for parameter in function.parameters}
    if name not in given or given[name].annotation is not None or function.bindings[name] > 1 or not calls:
        return False
    for caller, call in calls:
        values = _given(call, function)
        if values is None:
            return False
        said = dict(values).get(name, _default(function, name))
        if said is None or not caller.knows(said):
            return False
    return True


def _default(function: _Function, name: str) -> ast.expr | None:
    arguments = function.tree.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found = dict(zip([each.arg for each in reversed(positional)], reversed(arguments.defaults), strict=False))
    found |= {
        each.arg: value
        for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    return found.get(name)


def _calls(name: str, functions: dict[str, _Function], module: ast.Module) -> list[tuple[_Function, ast.Call]]:
    """The calls of a helper in its file's functions; none where its file has it for anything else."""
    reads = [(function, read) for function in functions.values() for read in function.reads(name)]
    calls = [(function, function.parents[read]) for function, read in reads]
    mentions = sum(isinstance(node, ast.Name) and node.id == name for node in nodes_in(module))
    found = [
        (function, call)
        for (function, call), (_, read) in zip(calls, reads, strict=True)
        if isinstance(call, ast.Call) and call.func is read
    ]
    return found if len(found) == mentions else []


def _given(call: ast.Call, helper: _Function) -> list[tuple[str, ast.expr]] | None:
    """What a call gives which parameter; None where that is not to be seen."""
    names = [each.arg for each in (*helper.tree.args.posonlyargs, *helper.tree.args.args)]
    starred = any(isinstance(value, ast.Starred) for value in call.args)
    if starred or any(each.arg is None for each in call.keywords) or len(call.args) > len(names):
        return None
    by_name = [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    return [*zip(names, call.args, strict=False), *by_name]


def _ends(functions: dict[str, _Function], found: set[Flag], places: Places) -> Iterator[int]:
    """Where the names of flags end, at the places that bind them."""
    for name, flag in found:
        function = functions[name]
        if flag in function.flags:
            yield places.of(function.flags[flag].targets[0])[1]
        else:
            (parameter,) = (each for each in function.parameters if each.arg == flag)
            assert parameter.end_lineno is not None
            assert parameter.end_col_offset is not None
            yield places.starts[parameter.end_lineno - 1] + parameter.end_col_offset
