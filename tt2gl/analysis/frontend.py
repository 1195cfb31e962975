"""Runs Triton's own frontend on a launch and observes every expression's type and every access's layout.

Types are Triton's: `CodeGenerator.visit` is watched while it compiles the kernel. Memory facts are Triton's too:
the module goes on through the Coalesce pass (AxisInfo: contiguity, divisibility), and the encoding that the pass
gives each load, store and atomic is read back. Locations of memory operations and calls are set to the call's own
position first, since versions differ in where they leave the location after visiting arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tt2gl.analysis.facts import (
    Access,
    CallChain,
    ConstFact,
    Fact,
    FunctionFact,
    FunctionFacts,
    LaunchFacts,
    Lowered,
    OtherFact,
    Position,
    TensorFact,
    TupleFact,
    are_unlike_blocks,
    is_block,
)
from tt2gl.analysis.lowered import lowered_facts
from tt2gl.analysis.spread_stores import chain_of, may_be_spread, spread_stores
from tt2gl.analysis.whole_loops import WholeLoops, is_specialised
from tt2gl.compiler import (
    backend_for,
    build_ir,
    build_machine_code,
    build_ttgir,
    generic_text,
    has_assembly,
    options_for,
    source_for,
    without_direct_copies,
)
from tt2gl.ir.calls import with_called
from tt2gl.ir.operations import Module
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import TensorType
from tt2gl.launches import Launch
from tt2gl.lowering.scaled_dots import unturned
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.targets import get_target, mover

_ACCESSES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas")
_LOWERED = {f"triton.language.core.{name}" for name in ("dot", "dot_scaled", "make_tensor_descriptor")}
_STAGES = "tt.num_stages"
"""The attribute of a loop whose author says how deep it is pipelined: Triton then does so without products, too."""
_LOCATION = re.compile(r'"([^"]+)":(\d+):(\d+)')
_BLOCKED = re.compile(
    r"tensor<([\dx]+)x!tt\.ptr.*#ttg\.blocked<\{sizePerThread = \[([\d, ]+)\], threadsPerWarp = \[([\d, ]+)\], "
    r"warpsPerCTA = \[([\d, ]+)\], order = \[([\d, ]+)\]"
)


def observe(kernel: Slice, launch: Launch, target: str, directory: Path, *, direct_to_lds: bool = True) -> LaunchFacts:
    """Facts of `kernel` under `launch`; `directory` receives the sliced modules.

    With `direct_to_lds`, AMD's waves copy tiles to LDS where Triton has them do so; else all come to registers.
    Raises Triton's `CompilationError` where the original does not compile, and what its assembler raises where a guess
    leads to assembly of another vendor.
    """
    if not direct_to_lds:
        without_direct_copies()
    fn = load_slice(kernel, directory)
    backend, gpu = backend_for(get_target(target))
    options = options_for(backend, launch, num_stages=1)
    files = {module.name: str(module.path) for module in kernel.modules}
    watcher = _Watcher(files)
    with watcher:
        module = build_ir(source_for(fn, launch), backend, gpu, options)
    if launch.origin == "guessed" and has_assembly(module):
        build_machine_code(source_for(fn, launch), backend, gpu, options)
    accesses = _coalesced_accesses(module, backend, options, gpu, files)
    lowered = Lowered()
    called = any(isinstance(fact, FunctionFact) and fact.name in _LOWERED for fact in watcher.facts())
    if called or _STAGES in str(module):
        fn = _as_compiled(kernel, directory) or fn
        with _Watcher(files):
            final = build_ttgir(source_for(fn, launch), backend, gpu, options_for(backend, launch))
        compiled = with_called(parse_module(generic_text(final)))
        whole = WholeLoops(lambda at, node: (_author_file(at.file_name, files), *_position(at, node)[:2]))
        if is_specialised(compiled):
            with _Watcher(files), whole:
                final = build_ttgir(source_for(fn, launch), backend, gpu, options_for(backend, launch))
            compiled = with_called(parse_module(generic_text(final)))
        lowered = whole.noted(lowered_facts(compiled, lambda path: _author_file(path, files)))
    elif may_be_spread(accesses.values(), str(module)):
        with _Watcher(files):
            final = build_ttgir(source_for(fn, launch), backend, gpu, options_for(backend, launch))
        compiled = with_called(parse_module(generic_text(final)))
        lowered = Lowered(spread=spread_stores(compiled, lambda path: _author_file(path, files)))
    return LaunchFacts(watcher.entry, watcher.functions, accesses, lowered, mover(get_target(target)))


def observe_accesses(kernel: Slice, launch: Launch, target: str, directory: Path) -> dict[CallChain, Access]:
    """The accesses of `kernel` under `launch` alone."""
    fn = load_slice(kernel, directory)
    backend, gpu = backend_for(get_target(target))
    options = options_for(backend, launch, num_stages=1)
    files = {module.name: str(module.path) for module in kernel.modules}
    with _Watcher(files):
        module = build_ir(source_for(fn, launch), backend, gpu, options)
    return _coalesced_accesses(module, backend, options, gpu, files)


def _as_compiled(kernel: Slice, directory: Path) -> Any:
    """The kernel with products that lowering has turned as Triton turns them itself; None where it has none."""
    modules = tuple(replace(module, text=unturned(module.text)) for module in kernel.modules)
    if modules == kernel.modules:
        return None
    return load_slice(replace(kernel, modules=modules), directory / "unturned")


class _Watcher:
    """Records what `CodeGenerator` sees while it is active."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.functions: dict[str, FunctionFacts] = {}
        self.entry = ""

    def __enter__(self) -> _Watcher:
        from triton.compiler.code_generator import CodeGenerator

        self._patched: Any = CodeGenerator
        self._original = {name: getattr(CodeGenerator, name) for name in ("visit", "call_Function")}
        watcher, original = self, self._original

        def visit(generator: Any, node: Any) -> Any:
            if isinstance(node, ast.FunctionDef):
                watcher._function(generator)
            value = original["visit"](generator, node)
            if isinstance(node, ast.expr) and hasattr(node, "lineno"):
                _note(watcher._function(generator), _position(generator, node), describe(value, watcher.files))
            return value

        def call_function(generator: Any, node: Any, fn: Any, args: Any, kws: Any) -> Any:
            line, column, *_ = _position(generator, node)
            before = generator.builder.get_loc()
            generator.builder.set_loc(generator.builder.create_loc(generator.file_name, line, column))
            watcher._calls.append((generator, node))
            value = original["call_Function"](generator, node, fn, args, kws)
            watcher._calls.pop()
            generator.builder.set_loc(before)
            return value

        self._calls: list[tuple[Any, Any]] = []
        self._patched.visit = visit
        self._patched.call_Function = call_function
        self._patch_function_lookup()
        return self

    def _patch_function_lookup(self) -> None:
        """Learn which instance a call resolves to: `mangle_fn` names it, for new and known instances alike."""
        from triton.compiler import code_generator

        self._module: Any = code_generator
        self._mangle = code_generator.mangle_fn
        watcher = self

        def mangle_fn(*args: Any) -> str:
            name = str(watcher._mangle(*args))
            if watcher._calls:
                generator, site = watcher._calls[-1]
                facts, place = watcher._function(generator), _position(generator, site)
                facts.callees[place] = name
                facts.called.setdefault(place, set()).add(name)
            return name

        self._module.mangle_fn = mangle_fn

    def __exit__(self, *_: object) -> None:
        for name, function in self._original.items():
            setattr(self._patched, name, function)
        self._module.mangle_fn = self._mangle

    def facts(self) -> Iterator[Fact]:
        """What was said of every expression."""
        return (fact for function in self.functions.values() for fact in function.expressions.values())

    def _function(self, generator: Any) -> FunctionFacts:
        facts = self.functions.get(generator.function_name)
        if facts is None:
            path = _author_file(generator.file_name, self.files)
            facts = FunctionFacts(path, generator.jit_fn.__name__, generator.begin_line + 1)
            self.functions[generator.function_name] = facts
            self.entry = self.entry or generator.function_name
        return facts


def _note(facts: FunctionFacts, place: Position, fact: Fact) -> None:
    """What the compiler said last of an expression, and whether it has said otherwise before.

    What is a tensor in one copy of an unrolled loop and a number in a later one is a tensor: `indices[axis]`, say.
    """
    before = facts.expressions.get(place)
    if is_block(before) and not is_block(fact) and isinstance(fact, TensorFact | ConstFact):
        return
    if isinstance(before, ConstFact) and isinstance(fact, ConstFact) and bool(before.value) != bool(fact.value):
        facts.turned.setdefault(place, bool(before.value))
    if are_unlike_blocks(before, fact):
        facts.reshaped.add(place)
    facts.expressions[place] = fact


def _position(generator: Any, node: Any) -> Position:
    """Where a node is in the author's file; Triton parses each function dedented and from its `def`."""
    indent = getattr(generator, "tt2gl_indent", None)
    if indent is None:
        definition = next(line for line in generator.jit_fn.raw_src if line.lstrip().startswith(("def ", "async def ")))
        indent = generator.tt2gl_indent = len(definition) - len(definition.lstrip())
    first = generator.begin_line
    return (
        first + node.lineno,
        indent + node.col_offset,
        first + (node.end_lineno or node.lineno),
        indent + (node.end_col_offset or node.col_offset),
    )


def _author_file(path: str, files: dict[str, str]) -> str:
    return files.get(Path(path).stem, path)


def describe(value: Any, files: dict[str, str]) -> Fact:
    """A frontend value as a fact."""
    import triton.language as tl
    from triton.runtime.jit import JITFunction

    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, tl.tensor):
        kind = value.type
        return TensorFact(tuple(int(d) for d in kind.shape) if kind.is_block() else (), str(kind.scalar))
    if isinstance(value, tl.dtype):
        return ConstFact(str(value))
    if isinstance(value, JITFunction):
        path = files.get(value.__module__)
        return FunctionFact(f"{value.__module__}.{value.__name__}" if path is None else value.__name__, path)
    if isinstance(value, (tuple, list, tl.tuple)):
        # Made by its class it is that; once it has a name, it is one of Triton's, whose type has them.
        fields = value.type.fields if isinstance(value, tl.tuple) else getattr(value, "_fields", None)
        # Triton 3.6 calls those of a plain tuple nothing each.
        named = tuple(fields) if fields and all(fields) else ()
        return TupleFact(tuple(describe(item, files) for item in value), named)
    if value is None or isinstance(value, (bool, int, float, str)):
        return ConstFact(value)
    if callable(value) and hasattr(value, "__module__") and hasattr(value, "__qualname__"):
        return FunctionFact(f"{value.__module__}.{value.__qualname__}")
    return OtherFact(type(value).__name__)


def _coalesced_accesses(
    module: Any, backend: Any, options: Any, gpu: Any, files: dict[str, str]
) -> dict[CallChain, Access]:
    from triton._C.libtriton import ir, passes

    arguments: list[Any] = [module, {}, options]
    if gpu.backend == "cuda":
        arguments.append(int(gpu.arch))
    module = backend.make_ttir(*arguments)
    manager = ir.pass_manager(module.context)
    passes.ttir.add_convert_to_ttgpuir(
        manager, f"{gpu.backend}:{gpu.arch}", options.num_warps, gpu.warp_size, options.num_ctas
    )
    passes.ttgpuir.add_coalesce(manager)
    manager.run(module, "coalesce")
    if "tt.call @" in str(module):
        return _accesses_in_calls(with_called(parse_module(generic_text(module))), files)
    found: dict[CallChain, Access] = {}

    def visit(operation: Any) -> None:
        if operation.get_name() not in _ACCESSES:
            return
        pointer = operation.get_operand(0)
        match = _BLOCKED.match(str(pointer.get_type()))
        if match is None:
            return
        shape, size, threads, warps, order = (tuple(int(n) for n in re.split("[x,]", g)) for g in match.groups())
        chain = tuple(
            (_author_file(file, files), int(line), int(column))
            for file, line, column in _LOCATION.findall(str(pointer.get_loc()))
        )
        _keep_narrowest(found, chain, Access(operation.get_name(), shape, size, threads, warps, order))

    module.walk(visit)
    return found


def _accesses_in_calls(module: Module, files: dict[str, str]) -> dict[CallChain, Access]:
    """The same of a module whose functions Triton's inliner left."""
    found: dict[CallChain, Access] = {}
    for operation in module.kernel.walk():
        kind = operation.operands[0].type if operation.name in _ACCESSES else None
        if isinstance(kind, TensorType) and kind.encoding is not None and kind.encoding.name == "ttg.blocked":
            parts = (kind.encoding.get(name) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"))
            access = Access(operation.name, kind.shape, *map(tuple, parts))
            _keep_narrowest(found, chain_of(operation, lambda path: _author_file(path, files)), access)
    return found


def _keep_narrowest(found: dict[CallChain, Access], chain: CallChain, access: Access) -> None:
    """Note an access; of several of one text the one with the fewest elements a thread."""
    known = found.get(chain)
    if known is None or sum(known.size_per_thread) > sum(access.size_per_thread):
        found[chain] = access
