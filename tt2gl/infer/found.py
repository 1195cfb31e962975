"""What a file says of a kernel's launches: the configs of `triton.autotune`, and the calls that launch it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tt2gl.host.scopes import Module, Scope, all_arguments
from tt2gl.host.triton_names import decorator_kind
from tt2gl.host.values import Constexpr, External, Function, Made, Unknown
from tt2gl.infer.kernel import DTYPES, MISSING, Kernel
from tt2gl.source import SourceFile
from tt2gl.trees import nodes_in

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


@dataclass
class Known:
    """What one launch call and one config say: values and dtypes of parameters, options, the grid."""

    values: dict[str, Any] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None
    strides: dict[str, tuple[str, int]] = field(default_factory=dict)
    """The tensor and the dimension that a stride is of."""
    integers: frozenset[str] = frozenset()
    """The parameters that are passed what the host says is an int."""
    lengths: dict[str, int] = field(default_factory=dict)
    """How many elements a tuple has that is passed."""
    blocks: dict[str, tuple[int | str | None, ...]] = field(default_factory=dict)
    """The block of a descriptor that is passed: extents, or the parameters that are passed the same."""
    hook: Function | None = None
    """What a config has done before the kernel runs."""
    types: dict[str, str] = field(default_factory=dict)
    """The types that are said of parameters, as Triton writes them."""
    aligned: frozenset[str] | None = None
    """The parameters that are said to be multiples of 16; None where nothing is said of that."""
    tiles: dict[str, int] = field(default_factory=dict)
    """Blocks that go with the extents that are said."""
    arguments: dict[str, ast.expr] = field(default_factory=dict)
    """What the launch call writes for parameters."""
    scope: Scope | None = None
    """Where the launch call stands."""


def configs(kernel: Kernel) -> Iterator[Known]:
    """The configs of `triton.autotune`."""
    for decorator in kernel.node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        callee = kernel.value(decorator.func, kernel.module.scope)
        if not isinstance(callee, External) or decorator_kind(callee.dotted)[0] != "autotune":
            continue
        listed = next((word.value for word in decorator.keywords if word.arg == "configs"), None)
        listed = listed or (decorator.args[0] if decorator.args else None)
        value = kernel.value(listed, kernel.module.scope) if listed is not None else MISSING
        for config in value if isinstance(value, list | tuple) else ():
            known = _config(config, set(kernel.names))
            if known is not None:
                yield known


def _config(config: Any, names: set[str]) -> Known | None:
    if not isinstance(config, Made) or config.callee != "triton.Config":
        return None
    kwargs = config.args[0] if config.args else config.kwargs.get("kwargs", {})
    if not isinstance(kwargs, dict):
        return None
    options = {name: config.kwargs[name] for name in OPTIONS if isinstance(config.kwargs.get(name), int)}
    options |= {
        name: value
        for name, value in zip(("num_warps", "num_stages", "num_ctas"), config.args[1:], strict=False)
        if isinstance(value, int)
    }
    values = {name: value for name, value in kwargs.items() if not isinstance(value, Unknown)}
    options |= {name: value for name, value in values.items() if name in OPTIONS and name not in names}
    hook = config.kwargs.get("pre_hook")
    found = {name: value for name, value in values.items() if name in names}
    return Known(found, {}, options, hook=hook if isinstance(hook, Function) else None)


def calls(kernel: Kernel, source: SourceFile) -> Iterator[Known]:
    """What each launch call of the file says."""
    wanted = {(call.line, call.column) for call in source.launches if call.kernel == kernel.fn.name}
    for node in nodes_in(kernel.module.tree):
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) in wanted:
            yield _launch_call(kernel, node, _scope_of(kernel.module, node))


def _scope_of(module: Module, node: ast.expr) -> Scope:
    best: tuple[int, Scope] = (0, module.scope)
    for definition, outer in module.scopes.items():
        if (
            isinstance(definition, ast.FunctionDef)
            and definition.lineno > best[0]
            and definition.lineno <= node.lineno <= (definition.end_lineno or 0)
        ):
            best = (definition.lineno, Scope(module, definition.body, outer, definition))
    return best[1]


def _launch_call(kernel: Kernel, node: ast.Call, scope: Scope) -> Known:
    known = Known()
    names = kernel.names
    arguments: list[tuple[str, ast.expr]] = []
    for name, argument in zip(names, node.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        arguments.append((name, argument))
    arguments += [(word.arg, word.value) for word in node.keywords if word.arg]
    known.arguments, known.scope = {name: argument for name, argument in arguments if name in names}, scope
    for name, argument in arguments:
        value = kernel.value(argument, scope)
        if name in OPTIONS and name not in names:
            if isinstance(value, int) and not isinstance(value, bool):
                known.options[name] = value
        elif name in names:
            if value is not MISSING and (value is None or _passable(value)):
                known.values[name] = value
            match argument:
                case ast.Call(func=ast.Attribute(value=tensor, attr="stride"), args=[ast.Constant(value=int(place))]):
                    known.strides[name] = (ast.unparse(tensor), place)
                case ast.Tuple(elts=elements) if not any(isinstance(each, ast.Starred) for each in elements):
                    known.lengths[name] = len(elements)
            if _is_integer(argument, scope):
                known.integers |= {name}
            dtype = _tensor_dtype(argument, scope)
            if dtype is not None:
                known.dtypes[name] = dtype
            if (block := _descriptor_block(argument, scope)) is not None:
                passed = {ast.unparse(expression): parameter for parameter, expression in arguments}
                known.blocks[name] = tuple(_extent(each, kernel, scope, passed) for each in block)
    if isinstance(node.func, ast.Subscript):
        grid = kernel.value(node.func.slice, scope)
        grid = (grid,) if isinstance(grid, int) else grid
        if isinstance(grid, tuple) and all(type(item) is int and item > 0 for item in grid) and len(grid) <= 3:
            known.grid = (*grid, 1, 1)[:3]
    return known


def _passable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_passable, value))
    if isinstance(value, External):
        return value.dotted.rpartition(".")[2] in DTYPES
    return isinstance(value, bool | int | float | str | Constexpr | Function)


def _is_integer(argument: ast.expr, scope: Scope) -> bool:
    """Whether it is a parameter of the function around that is annotated so."""
    if not isinstance(argument, ast.Name) or not isinstance(scope.owner, ast.FunctionDef):
        return False
    annotations = [each.annotation for each in all_arguments(scope.owner.args) if each.arg == argument.id]
    return any(isinstance(annotation, ast.Name) and annotation.id == "int" for annotation in annotations)


def _tensor_dtype(argument: ast.expr, scope: Scope) -> str | None:
    """The dtype of a tensor made in the same function: `torch.empty(..., dtype=torch.float32)`, or asserted there."""
    if not isinstance(argument, ast.Name):
        return None
    if argument.id in scope.parameters:
        return _asserted_dtype(argument.id, scope)
    for binding in reversed(scope.bindings.get(argument.id, [])):
        match binding.node:
            case ast.Assign(value=ast.Call(keywords=keywords)) if not binding.path:
                for keyword in keywords:
                    if keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute):
                        return DTYPES.get(keyword.value.attr)
    return None


def _asserted_dtype(name: str, scope: Scope) -> str | None:
    """The dtype that a function asserts of a parameter: `assert x.dtype == torch.uint8`, or it raises."""
    for node in scope.owner.body if isinstance(scope.owner, ast.FunctionDef) else ():
        if not isinstance(node, ast.Assert) and not (isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)):
            continue
        every, equal = (ast.And, ast.Eq) if isinstance(node, ast.Assert) else (ast.Or, ast.NotEq)
        test = node.test
        for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, every) else (test,):
            match part:
                case ast.Compare(
                    left=ast.Attribute(value=ast.Name(id=of), attr="dtype"),
                    ops=[op],
                    comparators=[ast.Attribute(attr=dtype)],
                ) if of == name and isinstance(op, equal):
                    return DTYPES.get(dtype)
    return None


def _descriptor_block(argument: ast.expr, scope: Scope) -> list[ast.expr] | None:
    """The block of a descriptor made in the call or in the same function; None for what is none."""
    if isinstance(argument, ast.Name) and argument.id not in scope.parameters:
        bound = scope.bindings.get(argument.id, [])
        made = [binding.node.value for binding in bound if isinstance(binding.node, ast.Assign) and not binding.path]
        argument = made[-1] if made else argument
    match argument:
        case ast.Call(func=ast.Attribute(attr="from_tensor"), args=arguments, keywords=keywords):
            place = 1
        case ast.Call(
            func=ast.Name(id="TensorDescriptor") | ast.Attribute(attr="TensorDescriptor"),
            args=arguments,
            keywords=keywords,
        ):
            place = 3
        case _:
            return None
    named = [word.value for word in keywords if word.arg == "block_shape"]
    match [*named, *arguments[place : place + 1]]:
        case [ast.List(elts=extents) | ast.Tuple(elts=extents), *_]:
            return extents
    return None


def _extent(node: ast.expr, kernel: Kernel, scope: Scope, passed: dict[str, str]) -> int | str | None:
    """An extent of a block: a number, or the name of the parameter that is passed the same; None where neither."""
    value = kernel.value(node, scope)
    return value if type(value) is int else passed.get(ast.unparse(node))


def combine(calls: list[Known], configs: list[Known], always: Known) -> Iterator[Known]:
    """Every call with the first config, then the first call with the others: neighbours differ in one thing."""
    for call in calls or [Known()]:
        yield _merge(call, configs[0] if configs else Known(), always)
    for config in configs[1:]:
        yield _merge(calls[0] if calls else Known(), config, always)


def _merge(call: Known, config: Known, always: Known) -> Known:
    return Known(
        {**always.values, **call.values, **config.values},
        call.dtypes,
        {**always.options, **call.options, **config.options},
        call.grid if not config.values else None,
        call.strides,
        call.integers,
        call.lengths,
        call.blocks,
        config.hook,
        always.types,
        always.aligned,
        always.tiles,
        call.arguments,
        call.scope,
    )
