"""What the compiler knows of an expression: whether it is a constant of the compilation."""

from __future__ import annotations

import ast

from tt2gl.pipelining.flow import Names, inside, writes
from tt2gl.pipelining.slices import is_constexpr

# Functions whose results the compiler knows where it knows their arguments.
_FOLDED = {"cdiv", "constexpr", "isinstance", "len", "max", "min", "next_power_of_2", "num_warps"}

# Attributes of a tensor or pointer that belong to its type.
_OF_TYPES = {"dtype", "shape", "type", "element_ty", "numel", "rank"}


def constants(function: ast.FunctionDef) -> Names:
    """The names bound to compile-time constants in a function: constexpr parameters and locals, static ranges."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found = {each.arg for each in every if each.annotation is not None and says_constexpr(each.annotation)}
    for statement in inside(function.body):
        if is_constexpr(statement):
            found |= writes(statement)
        elif isinstance(statement, ast.For) and is_unrolled(statement):
            found |= writes(statement.target)
    return frozenset(found)


def is_unrolled(loop: ast.stmt) -> bool:
    """Whether a statement is a loop that the compiler writes out."""
    return isinstance(loop, ast.For) and called(loop.iter) == "static_range"


def bound(function: ast.FunctionDef) -> Names:
    """The names that a function binds. All others are globals, which kernels see as constants."""
    return parameters(function).union(*map(writes, function.body))


def parameters(function: ast.FunctionDef) -> Names:
    """The names of what a function is given."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return frozenset(each.arg for each in every)


def says_constexpr(annotation: ast.expr) -> bool:
    """Whether an annotation says that its name is a constant of the compiler's."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.endswith("constexpr")
    return ast.unparse(annotation).rpartition(".")[2] == "constexpr"


def called(node: ast.expr) -> str:
    """The last name of what a call calls: `range` of `tl.range(8)`; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def read_from(value: ast.AST) -> str:
    """The name of the shared memory that a value is read from as it lies, where it is taken; empty for other values."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="load"), args=[_], keywords=[]):
            return name
    return ""


def is_static(node: ast.expr, constexprs: Names, variables: Names) -> bool:
    """Whether an expression is a constant of the compilation, as far as its text says."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        return node.id in constexprs or node.id not in variables
    if isinstance(node, ast.Attribute):
        return node.attr in _OF_TYPES or is_static(node.value, constexprs, variables)
    if isinstance(node, ast.Compare) and any(_is_none(each) for each in node.comparators):
        return True
    if isinstance(node, ast.Call):
        return called(node) in _FOLDED and all(is_static(each, constexprs, variables) for each in node.args)
    if isinstance(node, (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Tuple)):
        parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return all(is_static(part, constexprs, variables) for part in parts)
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
