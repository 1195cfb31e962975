"""The little of Triton's compiler that every stage drives: sources and backends, the same on each version.

Runs in a child process only (see `isolate`): building IR can abort, and a parent that holds an MLIR context
cannot fork safely.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from tt2gl.launches import DtypeValue, JitValue, Launch, passed_to
from tt2gl.slicing.slices import passed_name
from tt2gl.stages import STAGES
from tt2gl.targets import Target

# `builtin.module` allows no attribute without a dialect, so this one makes it fail its verifier.
_REFUSED = "tt2gl_generic"


def backend_for(target: Target) -> tuple[Any, Any]:
    """Triton's backend and `GPUTarget` for a target."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    gpu = GPUTarget(target.backend, target.arch, target.warp_size)
    return make_backend(gpu), gpu


def constexpr_value(value: Any, fn: Any) -> Any:
    """A launch's constexpr as Triton wants it: dtypes and functions by name become the objects."""
    import triton.language as tl

    if isinstance(value, DtypeValue):
        # Triton's signatures shorten the names of integers (`i32`), its dtypes do not.
        return tl.dtype(re.sub(r"^(u?)i?(?=\d)", r"\1int", value.name))
    if isinstance(value, JitValue):
        return fn.__globals__.get(passed_name(value.reference))
    if isinstance(value, tuple):
        return tuple(constexpr_value(item, fn) for item in value)
    return value


def source_for(fn: Any, launch: Launch) -> Any:
    """The `ASTSource` (Triton) or `GluonASTSource` of a kernel under a launch."""
    from triton.compiler.compiler import ASTSource

    source: Any = ASTSource
    if fn.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        source = GluonASTSource
    names = list(fn.arg_names)
    launch = passed_to(launch, names)
    signature = {name: launch.signature.get(name, "constexpr") for name in names}
    if fn.is_gluon():
        loaded = getattr(fn, "loaded", None)
        signature = {
            name: with_tile_layout(kind) if loaded is None else with_padded_tile(kind, name in loaded)
            for name, kind in signature.items()
        }
    constexprs: dict[Any, Any] = {
        name: constexpr_value(value, fn) for name, value in launch.constexprs.items() if name in names
    }
    if fn.is_gluon() and STAGES in names:
        # What Triton has as an option of the launch, a pipelined Gluon kernel has as a parameter.
        constexprs.setdefault(STAGES, launch.options.num_stages)
    constexprs = {**alignment_flags(fn, launch), **constexprs}
    for parameter in inspect.signature(fn.fn).parameters.values():
        if signature[parameter.name] == "constexpr" and parameter.name not in constexprs:
            constexprs[parameter.name] = None if parameter.default is parameter.empty else parameter.default
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in launch.divisible_by_16 if name in names}
    kinds = {name: with_tuples(kind) for name, kind in signature.items()}
    for name, kind in kinds.items():
        for path, value in constants_within(kind, (launch.args or {}).get(name)):
            constexprs[(names.index(name), *path)] = constexpr_value(value, fn)
    return source(fn, kinds, constexprs, aligned)


def with_tuples(kind: str) -> Any:
    """A type as Triton's signature has it: `(*fp16, i32)`, that of a tuple, is a tuple of types."""
    if not kind.startswith("("):
        return kind
    # Commas that part the elements, and none inside of one.
    parts = re.findall(r"\((?:[^()]|\([^()]*\))*\)|[^,\s<]+(?:<[^>]*>)?", kind[1:-1])
    return tuple(with_tuples(part) for part in parts)


def constants_within(kind: Any, value: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Constants among the elements of a tuple, each with its place in it: what Triton made of a one or a None."""
    for index, element in enumerate(kind if isinstance(kind, tuple) else ()):
        part = value[index] if isinstance(value, tuple) and index < len(value) else None
        if element == "constexpr":
            yield (index,), part
        for path, constant in constants_within(element, part):
            yield (index, *path), constant


def with_tile_layout(kind: str) -> str:
    """The type of a parameter in Gluon: a tensor descriptor's says how its tiles lie in shared memory."""
    from triton.experimental.gluon.language import NVMMASharedLayout
    from triton.language import str_to_ty

    if not re.fullmatch(r"tensordesc<\w+\[[\d, ]+\]>", kind):
        return kind
    block = str_to_ty(kind, None).block_type
    layout = NVMMASharedLayout.get_default_for([int(extent) for extent in block.shape], block.element_ty)
    return f"{kind[:-1]},{layout!r}>"


def with_padded_tile(kind: str, is_loaded: bool) -> str:
    """The same where AMD's data mover copies tiles, as a port's own decorator says it of one that `is_loaded` only."""
    from triton.experimental.gluon.language import PaddedSharedLayout
    from triton.language import str_to_ty

    if not re.fullmatch(r"tensordesc<\w+\[[\d, ]+\]>", kind):
        return kind
    block = str_to_ty(kind, None).block_type
    shape, bits = [int(extent) for extent in block.shape], block.element_ty.primitive_bitwidth
    interval = max(shape[-1], 2048 // bits) if is_loaded else shape[-1]
    order = list(range(len(shape)))[::-1]
    layout = PaddedSharedLayout.with_identity_for([[interval, 128 // bits]], shape, order)
    return f"{kind[:-1]},{layout!r}>"


def alignment_flags(fn: Any, launch: Launch) -> dict[str, bool]:
    """The flags by which a port chooses a body for aligned arguments, as a launch has them."""
    return {flag: set(names) <= set(launch.divisible_by_16) for flag, names in getattr(fn, "aligned", ())}


def options_for(backend: Any, launch: Launch, **changes: Any) -> Any:
    """The backend's compile options for a launch, with `changes` on top."""
    options = launch.options
    chosen = {"num_warps": options.num_warps, "num_stages": options.num_stages, "num_ctas": options.num_ctas}
    return backend.parse_options({**chosen, **options.extra, **changes})


def build_ir(source: Any, backend: Any, gpu: Any, options: Any) -> Any:
    """Run the frontend: the module before any pass. Raises Triton's `CompilationError`."""
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    return source.make_ir(gpu, options, codegen, modules, context)


def build_ttgir(source: Any, backend: Any, gpu: Any, options: Any) -> Any:
    """Run the frontend and the backend's passes up to TTGIR: the module whose layouts and pipelines are decided.

    Raises Triton's `CompilationError`, or RuntimeError where a pass fails.
    """
    return next(made for stage, made, _ in _staged(source, backend, gpu, options) if stage == "ttgir")


def build_machine_code(source: Any, backend: Any, gpu: Any, options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run all of the compiler: what each stage from TTGIR on made, binaries as bytes, and what was noted of the kernel.

    As `triton.compile` does, but for its cache: hashing what a kernel depends on, and writing what it became, takes as
    long as compiling a small one. Raises what the stages raise.
    """
    asm: dict[str, Any] = {}
    noted: dict[str, Any] = {}
    for stage, made, metadata in _staged(source, backend, gpu, options):
        # Later stages change modules in place.
        asm[stage] = made if isinstance(made, bytes) else str(made)
        noted = metadata
    return asm, noted


def has_assembly(module: Any) -> bool:
    """Whether a kernel has inline assembly, of which the frontend does not know whose it is."""
    return "tt.elementwise_inline_asm" in str(module)


def _staged(source: Any, backend: Any, gpu: Any, options: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """What each stage of a backend makes of a source, as it is made, and what is noted on the way."""
    module = build_ir(source, backend, gpu, options)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    metadata = {"target": gpu, **vars(options)}
    names = list(stages)
    for name in names[names.index(source.ext) :]:
        module = stages[name](module, metadata)
        yield name, module, metadata


def without_direct_copies() -> None:
    """Have Triton's pipeliner bring all tiles to registers first on AMD, from here on: for a child process."""
    from triton import knobs

    knobs.amd.use_async_copy = False


def generic_text(module: Any) -> str:
    """A module as MLIR's generic text with locations, for `tt2gl.ir.parser.parse_module`.

    Triton's bindings print modules that verify in their pretty form only, so an attribute makes this one fail to. They
    cannot take it away again: no pass runs on the module afterwards, though it can be printed once more.
    """
    from triton._C.libtriton import ir

    module.set_attr(_REFUSED, ir.builder(module.context).get_unit_attr())
    text = str(module)
    # The module's own attributes come last, behind the one bracket that closes at the start of a line.
    start = text.rindex("\n})")
    found = re.compile(rf"(?<=[{{ ]){_REFUSED}(?:, |(?=\}}))").search(text, start)
    if found is None:
        raise RuntimeError("this Triton does not print the module's attributes in generic form")
    before = text[: found.start()].removesuffix(", ") if text[found.end()] == "}" else text[: found.start()]
    return (before + text[found.end() :]).replace("\n}) {}", "\n})")
