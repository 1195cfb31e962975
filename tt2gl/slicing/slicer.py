"""Cuts a slice: grows the parts of one from its kernel.

The user's module is never imported. A slice is one private module for each file that the kernel reaches: the jit
functions stay on their own lines and columns, all else is blanked; the names they read are bound on a free line
above them (constants as literals, worked out by `host`) or, where they come from other slices, after the last
line. A name that reading cannot decide stays unbound, so that it fails only where the compiler reaches it.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import libcst as cst

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.host.dtype_limits import limits
from tt2gl.host.evaluator import Evaluator, open_module
from tt2gl.host.externals import PURE_MODULES
from tt2gl.host.scopes import Module, Scope
from tt2gl.host.stand_ins import stand_in
from tt2gl.host.values import Builtin, Cause, Class, External, Frame, Function, HostRaise, ModuleValue, Undecided
from tt2gl.jit_functions import JitFunction
from tt2gl.slicing import support
from tt2gl.slicing.free_names import Context, Uses, class_names, free_names
from tt2gl.slicing.kinds import WRAPPERS, bare_decorator, function_kind, is_compiled
from tt2gl.slicing.parts import DIGEST, SUPPORT, Kept, Part, part_text
from tt2gl.slicing.slices import Slice, SlicedModule, passed_name
from tt2gl.slicing.spelling import spell
from tt2gl.source import SourceFile


def slice_kernel(
    source: SourceFile,
    kernel: str,
    *,
    target: str = "sm90",
    root: Path | None = None,
    passed: Iterable[str] = (),
    original: Path | None = None,
) -> Slice:
    """Slice one kernel (or helper) of a file as it would be on `target`.

    `root` is where absolute imports are looked up beside the file's own packages. `passed`: jit functions that its
    launches give it, as `package.module:name`; `original`: the file that this one is a port of, whose functions are
    looked up in this one. Raises DiagnosticError TTG101 where the file has no such jit function. What cannot be decided
    is in the slice's diagnostics (TTG110).
    """
    found = [function for function in source.functions if function.name == kernel]
    if not found:
        known = ", ".join(function.name for function in source.functions) or "none"
        message = f"The file has no jit function {kernel!r} (it has: {known})."
        hint = "Name a kernel of the file."
        raise DiagnosticError(
            Diagnostic("TTG101", Severity.ERROR, str(source.path), 0, 0, message, hint), ExitCode.USAGE
        )
    evaluator, module = open_module(source.path, source.text, target, root)
    definitions = module.definitions(kernel)
    node = next((node for node in definitions if node.lineno == found[0].line), definitions[0])
    slicer = _Slicer(evaluator)
    slicer.keep(Function(Frame(module.scopes[node]), node))
    for reference in passed:
        slicer.pass_function(module, reference, original or source.path)
    return replace(slicer.finish(kernel), aligned=tuple(_aligned(found[0])), loaded=_loaded(found[0]))


_LOADED = re.compile(r"@with_tile_layouts\(([^()]*)\)")


def _aligned(kernel: JitFunction) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The flags of a converted kernel that say which of its arguments are multiples of 16."""
    for decorator in kernel.decorators:
        if decorator.kind != "heuristics":
            continue
        # As a tree, for the lines that it is broken into say nothing.
        told = ast.parse(cst.Module([]).code_for_node(decorator.node.decorator), mode="eval").body
        if isinstance(told, ast.Call) and told.args and isinstance(told.args[0], ast.Dict):
            for key, value in zip(told.args[0].keys, told.args[0].values, strict=True):
                names = _multiples_of_16(value.body) if isinstance(value, ast.Lambda) else ()
                if isinstance(key, ast.Constant) and names:
                    yield str(key.value), names


def _multiples_of_16(condition: ast.expr) -> tuple[str, ...]:
    """The arguments that a condition says are all multiples of 16; none for other conditions."""
    match condition:
        case ast.Call(
            func=ast.Name(id="all"),
            args=[ast.GeneratorExp(elt=said, generators=[ast.comprehension(iter=ast.Tuple(elts=elements))])],
        ) if ast.unparse(said) == "args[name] % 16 == 0":
            return tuple(str(each.value) for each in elements if isinstance(each, ast.Constant))
        case ast.Compare(left=ast.BinOp(left=ast.Subscript(slice=ast.Constant(value=name)))):
            return (str(name),) if ast.unparse(condition) == f"args[{name!r}] % 16 == 0" else ()
    return ()


def _loaded(kernel: JitFunction) -> tuple[str, ...] | None:
    """The descriptors from the host that a converted kernel's decorator says are only loaded through."""
    said = (_LOADED.search(cst.Module([]).code_for_node(decorator.node)) for decorator in kernel.decorators)
    return next((tuple(re.findall(r"\w+", found[1])) for found in said if found is not None), None)


def _is_bare(function: Function) -> bool:
    """Whether a function is what its `def` says, and nothing that a decorator made of it."""
    return isinstance(function.node, ast.FunctionDef) and not function.node.decorator_list


class _Slicer:
    """Grows the parts of one slice from its kernel."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.parts: dict[Module, Part] = {}
        self.functions: dict[tuple[str, str], None] = {}
        self.diagnostics: dict[tuple[Any, ...], Diagnostic] = {}
        self.in_python = False
        """Whether what is kept at present is run by Python while Triton compiles, and may call host functions."""

    # ------------------------------------------------------------------------------------------------ keeping

    def part(self, module: Module) -> Part:
        """The part of a file, begun where it is new."""
        if module not in self.parts:
            stem = re.sub(r"\W", "_", module.path.parent.name if module.path.stem == "__init__" else module.path.stem)
            self.parts[module] = Part(module, f"_tt2gl_{DIGEST}_{len(self.parts)}_{stem}")
        return self.parts[module]

    def keep(self, function: Function) -> None:
        """Keep a function with all that it reaches."""
        node = function.node
        if not isinstance(node, ast.FunctionDef):
            return
        part = self.part(function.frame.scope.module)
        if node in part.kept:
            return
        kind, dialect, decorator = function_kind(self.evaluator, function)
        kept = part.kept[node] = Kept(node)
        if kind == "jit":
            self.functions[str(part.module.path), node.name] = None
        if decorator is not None:
            kept.decorators[decorator.lineno] = bare_decorator(self.evaluator, part, kind, dialect, decorator, function)
        self.evaluator.assume(function.frame.scope, node)
        around, self.in_python = self.in_python, kind != "jit"
        self._bind_all(part, function.frame.scope, free_names(node))
        self.in_python = around

    def keep_class(self, value: Class, part: Part) -> None:
        """Keep a class that Triton compiles with (an aggregate, a named tuple, an enum) as it is written."""
        node = value.node
        if node in part.kept:
            return
        part.kept[node] = Kept(node, verbatim=True)
        for method in node.body:
            if isinstance(method, ast.FunctionDef):
                self.functions[str(part.module.path), f"{node.name}.{method.name}"] = None
        self._bind_all(part, value.frame.scope, class_names(node))

    def _bind_all(self, part: Part, scope: Scope, uses: Uses) -> None:
        for (name, context), chains in sorted(uses.chains.items()):
            self.bind(part, scope, name, chains, context)

    def pass_function(self, module: Module, reference: str, own: Path) -> None:
        """Bind a function that launches pass beside the kernel. `own`: the file whose functions are this module's."""
        dotted, _, name = reference.partition(":")
        home = self.evaluator.module(dotted, module)
        is_own = not isinstance(home, ModuleValue) or home.module.path == own.absolute()
        try:
            value = self.evaluator.attribute(ModuleValue(module) if is_own else home, name)
        except (Undecided, HostRaise):
            return
        if isinstance(value, Function):
            self._emit_function(self.part(module), passed_name(reference), value, "body")

    # ------------------------------------------------------------------------------------------------ binding

    def bind(
        self,
        part: Part,
        scope: Scope,
        name: str,
        chains: set[tuple[str, ...]],
        context: Context,
    ) -> None:
        """Bind a name that a kept definition reads."""
        try:
            value = self.evaluator.resolve(scope, name)
        except HostRaise:
            if context != "body" and hasattr(
                builtins, name
            ):  # such as `staticmethod`, of which host code knows nothing
                return
            if context != "body":
                if name not in part.early:  # Triton asks what the `tl` of `tl.constexpr` is
                    self._missing(part, scope, name, chains & {("constexpr",)})
                part.early.setdefault(name, f"inert({name!r})")
            else:
                self._missing(part, scope, name, chains)
            return
        except Undecided as error:
            if context == "annotation":
                part.early.setdefault(name, f"inert({name!r})")
            else:
                self._undecided(name, error.cause)
            return
        self.emit(part, name, value, chains, context)

    def emit(
        self,
        part: Part,
        name: str,
        value: Any,
        chains: set[tuple[str, ...]],
        context: Context,
    ) -> None:
        """Write the binding of a name to its value into a part; `chains`: what one definition reads of it."""
        match value:
            case Builtin():
                return
            case ModuleValue(module):
                other = self.part(module)
                self._place(part, name, f"import {other.name} as {name}", context)
                for chain in sorted(chains):
                    if chain:
                        self._need(other, chain, context)
            case Function():
                self._emit_function(part, name, value, context)
            case Class():
                self._emit_class(part, name, value, chains, context)
            case External(dotted) if value.within("triton") or dotted.partition(".")[0] in PURE_MODULES:
                part.found.setdefault(name, dotted)
            case External(dotted, is_module):
                chains = part.read[name] = part.read.get(name, set()) | chains
                if context == "body" and self._stand_in(part, name, dotted, chains):
                    return
                # Triton's compilers visit annotations: of names, only modules may be read there.
                maker = "stub" if is_module or () not in chains else "inert"
                constants = "".join(f", {key}={text}" for key, text in self._constants(value, chains))
                if context == "body" or name not in part.early:
                    part.early[name] = f"{maker}({dotted!r}{constants})"
            case _:
                text = spell(value)
                if text is not None:
                    part.early.setdefault(name, text)
                elif context != "body":
                    part.early.setdefault(name, f"inert({name!r})")

    def _missing(self, part: Part, scope: Scope, name: str, chains: set[tuple[str, ...]]) -> None:
        """A name from a file of the author's package that is not there."""
        try:
            binding = self.evaluator.binding(scope, name)
        except Undecided:
            return
        node = None if binding is None else binding.node
        if binding is None or binding.alias is None or not isinstance(node, ast.ImportFrom) or not node.level:
            return
        world = self.evaluator.world
        path = world.relative(node.level, node.module, scope.module.path)
        if path is None or world.load(path) is None:
            chains = part.read[name] = part.read.get(name, set()) | chains
            self._stand_in(part, name, f".{binding.alias.name}", chains)

    def _stand_in(self, part: Part, name: str, dotted: str, chains: set[tuple[str, ...]]) -> bool:
        """Bind a name of a package that is not at hand to Triton's function of that name, or to a module of such."""
        if () in chains:
            found = stand_in(dotted)
            if found is not None:
                part.found.setdefault(name, found)
                self._stood_in(part, name, found)
            return found is not None
        members = {chain[0]: stand_in(f"{dotted}.{chain[0]}") for chain in chains}
        members = {member: found for member, found in members.items() if found is not None}
        if not members:
            return False
        made = "".join(f", {member}=find({found!r})" for member, found in sorted(members.items()))
        named = {chain[0]: limits(f"{dotted}.{chain[0]}") for chain in chains}
        made += "".join(f", {member}=limits({known!r})" for member, known in sorted(named.items()) if known is not None)
        part.early[name] = f"stub({dotted!r}{made})"
        self._stood_in(part, name, ", ".join(sorted(found for found in members.values() if found)))
        return True

    def _stood_in(self, part: Part, name: str, found: str) -> None:
        binding = next(iter(part.module.scope.bindings.get(name, [])), None)
        node = binding.node if binding is not None else None
        line, column = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        text = f"What `{name}` is cannot be read, as its module is not at hand; it is taken for {found}."
        hint = "Convert the file inside its package, or say with --root where its packages are."
        diagnostic = Diagnostic("TTG110", Severity.WARNING, str(part.module.path), line, column, text, hint)
        self.diagnostics[name, part.module.path] = diagnostic

    def _need(self, part: Part, chain: tuple[str, ...], context: Context) -> None:
        """Bind `chain` in the part of the module that it is read from."""
        try:
            value = self.evaluator.attribute(ModuleValue(part.module), chain[0])
        except HostRaise:
            return
        except Undecided as error:
            self._undecided(chain[0], error.cause)
            part.early.setdefault(chain[0], f"inert({chain[0]!r})")
            return
        self.emit(part, chain[0], value, {chain[1:]}, context)

    def _constants(self, value: External, chains: set[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
        for chain in sorted(chains):
            if len(chain) == 1:
                try:
                    text = spell(self.evaluator.attribute(value, chain[0]))
                except (Undecided, HostRaise):
                    continue
                if text is not None and "find(" not in text:
                    yield chain[0], text

    def _place(self, part: Part, name: str, statement: str, context: Context) -> None:
        """Bindings to other slices come last, so that slices may reach each other; a default cannot wait."""
        if context == "default":
            part.late.pop(name, None)
            part.early[name] = f"!{statement}"
        elif name not in part.early:
            part.late.setdefault(name, statement)

    def _emit_function(self, part: Part, name: str, value: Function, context: Context) -> None:
        kind = function_kind(self.evaluator, value)[0]
        if kind == "host" and not (self.in_python and _is_bare(value)):
            # Triton refuses host functions too; unbound, it does so where it reaches the name.
            return
        home = self.part(value.frame.scope.module)
        self.keep(value)
        if isinstance(value.node, ast.Lambda):
            return
        own = value.node.name
        if value.wrapped is not None and function_kind(self.evaluator, Function(value.frame, value.node))[0] == "host":
            home.found[f"_tt2gl_{value.wrapped}_jit"] = WRAPPERS[value.wrapped]
            wrapped = f"{own}__jit"
            home.late.setdefault(wrapped, f"{wrapped} = _tt2gl_{value.wrapped}_jit({own})")
            own = wrapped
        if home is part:
            if own != name:
                part.late.setdefault(name, f"{name} = {own}")
        else:
            self._place(part, name, f"from {home.name} import {own} as {name}", context)

    def _emit_class(self, part: Part, name: str, value: Class, chains: set[tuple[str, ...]], context: Context) -> None:
        home = self.part(value.frame.scope.module)
        if is_compiled(value):
            self.keep_class(value, home)
            if home is not part:
                statement = f"from {home.name} import {value.node.name} as {name}"
                if context == "annotation":
                    # Read where the function is defined, before slices may reach each other.
                    part.early.setdefault(name, f"inert({name!r})")
                    part.late.setdefault(name, statement)
                else:
                    self._place(part, name, statement, context)
            elif name != value.node.name:
                part.late.setdefault(name, f"{name} = {value.node.name}")
            return
        constants = []
        for chain in sorted(chains):
            if not chain:
                continue
            try:
                found = self.evaluator.attribute(value, chain[0])
            except (Undecided, HostRaise):
                continue
            if isinstance(found, Function):
                self._emit_function(part, chain[0], found, "body")
                part.late[f"{name}.{chain[0]}"] = f"{name}.{chain[0]} = {chain[0]}"
            else:
                text = spell(found)
                if text is not None:
                    constants.append(f", {chain[0]}={text}")
        if constants or name not in part.early:
            part.early[name] = f"inert({name!r}{''.join(constants)})"

    def _undecided(self, name: str, cause: Cause) -> None:
        text = f"What `{name}` is cannot be decided by reading: {cause.text}."
        hint = "Define it as a constant, or by a condition on the target, that can be read without running the file."
        diagnostic = Diagnostic("TTG110", Severity.WARNING, cause.file, cause.line, cause.column, text, hint)
        self.diagnostics.setdefault((name, cause), diagnostic)

    def finish(self, kernel: str) -> Slice:
        """The slice, its modules under names that only this text has."""
        texts = [(part.name, part.module.path, part_text(part)) for part in self.parts.values()]
        texts.append((SUPPORT, Path("support.py"), support.TEXT))
        digest = hashlib.sha256("\0".join(f"{path}\0{text}" for _, path, text in texts).encode()).hexdigest()[:12]
        modules = tuple(
            SlicedModule(name.replace(DIGEST, digest), path, text.replace(DIGEST, digest)) for name, path, text in texts
        )
        return Slice(kernel, modules, tuple(self.functions), tuple(self.diagnostics.values()))
