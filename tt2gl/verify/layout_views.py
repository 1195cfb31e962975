"""The layouts that a port names, under one launch, as bits: where Triton says that each element lies.

The frontend is watched while it compiles the port: which names are bound to layouts, and which tensors and shared
memory have them. A layout is then told by its bases, Triton's linear layouts: the coordinates that each bit of a
register, lane, warp or block adds, or each bit of an offset in shared memory.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tt2gl import compiler
from tt2gl.isolate import map_isolated, preload, private_triton
from tt2gl.launches import Launch
from tt2gl.results import NamedLayout
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.targets import get_target

Kind = Literal["threads", "shared", "tensor memory"]


@dataclass(frozen=True)
class ViewJob:
    """One port's kernel under one launch, for one target. `shared`: of its layouts those of shared memory."""

    slice: Slice
    launch: Launch
    target: str
    shared: bool = False


def named_layouts(jobs: Sequence[ViewJob], *, timeout: float = 60.0) -> list[tuple[NamedLayout, ...]]:
    """The layouts of each job's kernel, in the order of the text; none of a kernel that does not compile.

    Some Tritons abort when they are asked for the bases of shared memory: it is asked of processes of its own, and its
    layouts have no bases there.
    """
    preload()
    first = map_isolated(view_job, [(job,) for job in jobs], timeout=timeout)
    found = [outcome.value or () for outcome in first]
    again = [index for index, layouts in enumerate(found) if any(layout.kind == "shared" for layout in layouts)]
    second = map_isolated(view_job, [(replace(jobs[index], shared=True),) for index in again], timeout=timeout)
    for index, outcome in zip(again, second, strict=True):
        known = {layout.name: layout for layout in outcome.value or ()}
        found[index] = tuple(known.get(layout.name, layout) for layout in found[index])
    return found


def view_job(job: ViewJob) -> tuple[NamedLayout, ...]:
    """The layouts of one kernel, in this process, which must be a child. Raises what the frontend raises."""
    private_triton()
    function = load_slice(job.slice, Path(tempfile.mkdtemp(prefix="slice-")))
    backend, gpu = compiler.backend_for(get_target(job.target))
    options = compiler.options_for(backend, job.launch)
    watcher = _Watcher(job.slice.kernel)
    with watcher:
        module = compiler.build_ir(compiler.source_for(function, job.launch), backend, gpu, options)
    found = tuple(watcher.layouts(job))
    del module  # held until here: the builder's context is its
    return found


class _Watcher:
    """Notes names of layouts in one kernel, and what tensors and memory have which, while it is active."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._named: dict[str, tuple[int, Any]] = {}
        self._shapes: dict[str, tuple[tuple[int, ...], int]] = {}
        self._builder: Any = None

    def __enter__(self) -> _Watcher:
        from triton.compiler.code_generator import CodeGenerator

        self._patched: Any = CodeGenerator
        self._visit = CodeGenerator.visit

        def visit(generator: Any, node: Any) -> Any:
            value = self._visit(generator, node)
            if isinstance(node, ast.expr):
                self._note_use(value)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                self._note_name(generator, node)
            return value

        self._patched.visit = visit
        return self

    def __exit__(self, *_: object) -> None:
        self._patched.visit = self._visit

    def _note_name(self, generator: Any, node: Any) -> None:
        self._builder = generator.builder
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name):
            value = generator.lscope.get(target.id)
            value = getattr(value, "value", value)
            if _kind(value) is not None:
                self._named.setdefault(target.id, (generator.begin_line + node.lineno, value))

    def _note_use(self, value: Any) -> None:
        kind = getattr(value, "type", None)
        layout, shape = getattr(kind, "layout", None), getattr(kind, "shape", None)
        if layout is None or not shape or _kind(layout) is None:
            return
        key, extents = layout.mangle(), tuple(int(extent) for extent in shape)
        element: Any = getattr(kind, "element_ty", None)
        bits = int(getattr(element, "primitive_bitwidth", 0) or 0)
        known = self._shapes.get(key)
        # A ring of tiles has one dimension more than its layout: the tile, which is met too, is what lies so.
        if known is None or (len(extents), -math.prod(extents)) < (len(known[0]), -math.prod(known[0])):
            self._shapes[key] = (extents, bits)

    def layouts(self, job: ViewJob) -> Iterator[NamedLayout]:
        """What was seen, with the bases that Triton gives them."""
        for name, (line, layout) in self._named.items():
            kind = _kind(layout)
            shape, bits = self._shapes.get(layout.mangle(), ((), 0))
            if kind is None or (job.shared and kind != "shared"):
                continue
            bases = {}
            if shape and (kind == "threads" or (kind == "shared" and job.shared)):
                linear = self._builder.to_linear_layout(layout._to_ir(self._builder), list(shape))
                bases = _bases(linear)
            yield NamedLayout(self._kernel, name, line, kind, _text(layout), shape, bits, bases)


def _kind(value: Any) -> Kind | None:
    """What a layout lays out; None of a value that is none."""
    from triton.experimental.gluon.language import _layouts as layouts
    from triton.experimental.gluon.language.nvidia import blackwell

    if isinstance(value, layouts.DistributedLayout) and not isinstance(value, layouts.AutoLayout):
        return "threads"
    if isinstance(value, layouts.SharedLayout):
        return "shared"
    memory = tuple(getattr(blackwell, name) for name in ("TensorMemoryLayout",) if hasattr(blackwell, name))
    return "tensor memory" if isinstance(value, memory) else None


def _bases(linear: Any) -> dict[str, tuple[tuple[int, ...], ...]]:
    names = ("reg_bases", "lane_bases", "warp_bases", "block_bases", "offset_bases")
    found = {name.removesuffix("_bases"): getattr(linear, name) for name in names if hasattr(linear, name)}
    return {name: tuple(tuple(int(part) for part in base) for base in bases) for name, bases in found.items()}


def _text(value: Any) -> str:
    """A layout as source, without what is left at its default."""
    from triton import language as tl

    if isinstance(value, tl.constexpr):
        return _text(value.value)
    if isinstance(value, (list, tuple, tl.tuple)):
        return f"[{', '.join(_text(item) for item in value)}]"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    told = []
    for each in dataclasses.fields(value):
        given = getattr(value, each.name)
        default = each.default_factory() if callable(each.default_factory) else each.default
        if each.init and given is not None and _text(given) != _text(default):
            told.append(f"{each.name}={_text(given)}")
    return f"{type(value).__name__}({', '.join(told)})"
