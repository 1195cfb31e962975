"""Kernels with loops to pipeline: files of `tests/fixtures/pipelining`, their marked ports, rings and launches."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.pipeline import LoopRings, Ring, pipelined

FOLDER = Path(__file__).parents[1] / "fixtures" / "pipelining"

_TYPES = {"fp16": "float16", "fp32": "float32", "i8": "int8", "i32": "int32"}


@dataclass(frozen=True)
class Case:
    """A kernel of `file` for a target: its rings by function (their depth too), and what it is launched with."""

    file: str
    target: str
    kernel: str
    rings: Mapping[str, tuple[str, Sequence[Ring]]]
    tensors: Mapping[str, tuple[str, tuple[int, ...]]]
    scalars: Mapping[str, Any]
    constexprs: Mapping[str, Any]
    grid: tuple[int, ...]
    num_warps: int = 4
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What tests call it."""
        return f"{self.kernel}-{self.target}-{self.constexprs.get('NUM_BUFFERS')}"

    @property
    def original(self) -> Path:
        """The Triton file."""
        return FOLDER / f"{self.file}.py"

    @property
    def marked(self) -> Path:
        """Its port with markers."""
        return FOLDER / f"{self.file}.{self.target}.py"

    @property
    def launch(self) -> Launch:
        """The launch, for either kernel."""
        tensors = {
            name: TensorArg(_TYPES[kind], shape, _strides(shape), self.ranges.get(name))
            for name, (kind, shape) in self.tensors.items()
        }
        signature = {name: f"*{kind}" for name, (kind, _) in self.tensors.items()}
        signature |= {name: "fp32" if isinstance(value, float) else "i32" for name, value in self.scalars.items()}
        signature |= dict.fromkeys(self.constexprs, "constexpr")
        order = parameters(self.original, self.kernel)
        aligned = [
            name
            for name in order
            if name in tensors or (isinstance(self.scalars.get(name), int) and self.scalars[name] % 16 == 0)
        ]
        return Launch(
            str(self.original),
            self.kernel,
            {name: signature[name] for name in order},
            dict(self.constexprs),
            tuple(aligned),
            Options(self.num_warps, self.constexprs.get("NUM_BUFFERS", 3)),
            self.grid,
            {**tensors, **self.scalars},
        )

    def port(self, copy: str) -> str:
        """The port, pipelined."""
        text = self.marked.read_text()
        specs = [
            LoopRings(function, line_of(text, function), tuple(rings), buffers)
            for function, (buffers, rings) in self.rings.items()
        ]
        return pipelined(text, specs, copy)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def line_of(text: str, function: str) -> int:
    """The line of a function's `def`."""
    return text[: text.index(f"def {function}(")].count("\n") + 1


@functools.cache
def parameters(path: Path, kernel: str) -> tuple[str, ...]:
    """The names of a kernel's parameters."""
    import ast

    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            return tuple(each.arg for each in node.args.args)
    raise KeyError(kernel)


def copy_name() -> str:
    """What the Triton installed calls a copy to shared memory."""
    from triton.experimental.gluon.language.nvidia.ampere import async_copy

    return f"async_copy.{'async_load' if hasattr(async_copy, 'async_load') else 'async_copy_global_to_shared'}"


def _tile(
    name: str, dtype: str, shape: str, layout: str, *, in_memory: bool = True, amd: bool = False, stored: str = ""
) -> Ring:
    return Ring(name, dtype, tuple(shape.split()), layout, in_memory, registers=amd, stored=stored)


def _matmul(target: str, buffers: int, size: tuple[int, int, int] = (100, 96, 208), **changes: Any) -> Case:
    m, n, k = size
    memory, amd = target == "sm90", target.startswith("gfx")
    rings = [
        _tile("a", "dtype", "BLOCK_M BLOCK_K", "a_shared", in_memory=memory, amd=amd),
        _tile("b", "dtype", "BLOCK_K BLOCK_N", "b_shared", in_memory=memory, amd=amd),
    ]
    return Case(
        "products",
        target,
        "matmul_kernel",
        {"matmul_kernel": ("NUM_BUFFERS" if memory else "NUM_BUFFERS - 1", rings)},
        {"a_ptr": ("fp16", (128, k)), "b_ptr": ("fp16", (k, 128)), "c_ptr": ("fp16", (m, 128))},
        {"M": m, "N": n, "K": k, "stride_am": k, "stride_bk": 128, "stride_cm": 128},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "NUM_BUFFERS": buffers, **changes},
        (2, 2, 1),
    )


def _attention(target: str, buffers: int, tokens: int = 150) -> Case:
    memory = target == "sm90"
    rings = [_tile(name, "gl.float16", "BLOCK_N HEAD", "kv_shared", in_memory=memory) for name in "kv"]
    return Case(
        "products",
        target,
        "attention_kernel",
        {"attention_kernel": ("NUM_BUFFERS" if memory else "NUM_BUFFERS - 1", rings)},
        dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), ("fp16", (tokens, 64))),
        {"tokens": tokens, "scale": 0.125},
        {"BLOCK_M": 64, "BLOCK_N": 32, "HEAD": 64, "NUM_BUFFERS": buffers},
        (3, 1, 1),
    )


def _gated(target: str, buffers: int) -> Case:
    memory = target == "sm90"
    rings = [
        _tile("x", "gl.float16", "BLOCK_M BLOCK_K", "x_shared", in_memory=memory),
        _tile("w", "gl.float16", "BLOCK_K BLOCK_N", "w_shared", in_memory=memory),
        _tile("v", "gl.float16", "BLOCK_K BLOCK_N", "w_shared", in_memory=memory),
    ]
    return Case(
        "products",
        target,
        "gated_kernel",
        {"gated_kernel": ("NUM_BUFFERS" if memory else "NUM_BUFFERS - 1", rings)},
        {
            "x_ptr": ("fp16", (64, 160)),
            "w_ptr": ("fp16", (160, 128)),
            "v_ptr": ("fp16", (160, 128)),
            "out_ptr": ("fp16", (64, 128)),
        },
        {"K": 160, "N": 128},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_BUFFERS": buffers},
        (1, 2, 1),
    )


def _bytes(target: str, buffers: int) -> Case:
    memory, stored = target == "sm90", "" if target == "sm90" else "turned_in_threads"
    rings = [
        _tile("a", "gl.int8", "BLOCK_M BLOCK_K", "a_shared", in_memory=False, amd=not memory),
        _tile("w", "gl.float16", "BLOCK_K BLOCK_N", "w_shared", in_memory=memory, amd=not memory, stored=stored),
    ]
    return Case(
        "products",
        target,
        "bytes_kernel",
        {"bytes_kernel": ("NUM_BUFFERS" if memory else "NUM_BUFFERS - 1", rings)},
        {"a_ptr": ("i8", (64, 256)), "w_ptr": ("fp16", (256, 64)), "c_ptr": ("fp32", (64, 64))},
        {"K": 256, "N": 64},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_BUFFERS": buffers},
        (1, 1, 1),
    )


def _stream(
    kernel: str,
    buffers: int,
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
    scalars: Mapping[str, Any],
    *,
    function: str = "",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    shape: str = "BLOCK",
    **constexprs: Any,
) -> Case:
    # A helper knows the size of its tiles, and how many to keep, by what it is given.
    size = "cols.shape[0]" if function else shape
    layout = f"gl.SwizzledSharedLayout(1, 1, 1, {list(range(len(shape.split())))[::-1]})"
    rings = [_tile(name, "gl.float32", size, layout, in_memory=False) for name in "xy"]
    return Case(
        "streams",
        "sm80",
        kernel,
        {function or kernel: (str(buffers - 1) if function else "NUM_BUFFERS - 1", rings)},
        tensors,
        scalars,
        {"BLOCK": 128, **constexprs, "NUM_BUFFERS": buffers},
        (2,) if kernel == "tiles_kernel" else (1,),
        ranges=ranges or {},
    )


def _floats(**sizes: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {f"{name}_ptr": ("fp32", (size,)) for name, size in sizes.items()}


_PAGES = {"x_ptr": ("fp32", (5 * 128,)), "page_ptr": ("i32", (7,)), "out_ptr": ("fp32", (128,))}

STREAMS = (
    _stream("part_kernel", 3, _floats(x=700, y=700, out=128), {"lo": 1, "hi": 688}),
    _stream("part_kernel", 2, _floats(x=700, y=700, out=128), {"lo": 6, "hi": 688}),
    _stream("flags_kernel", 4, _floats(x=640, out=128), {"n": 640, "limit": 2}, EVEN=True),
    _stream("flags_kernel", 2, _floats(x=640, out=128), {"n": 624, "limit": 2}, EVEN=False),
    _stream("both_kernel", 3, _floats(x=640, out=256), {"n": 608}),
    _stream("gather_kernel", 3, _PAGES, {"pages": 7}, ranges={"page_ptr": (0, 4)}),
    _stream("tiles_kernel", 3, _floats(x=5 * 4 * 128, y=512, out=640), {"tiles": 5, "n": 4}),
    _stream("helper_kernel", 3, _floats(x=768, out=128), {"n": 640, "step": 128}, function="add_up"),
    _stream("down_kernel", 3, _floats(x=640, out=128), {"n": 640}),
    _stream("nested_kernel", 3, _floats(x=512, y=1024, out=128), {"n": 4, "m": 3}),
    _stream("twice_kernel", 3, _floats(x=5 * 1024, out=1024), {}, shape="BLOCK BLOCK", BLOCK=32, TIMES=5),
)

CASES = (
    *STREAMS,
    *(_matmul("sm80", buffers) for buffers in (2, 3)),
    *(_attention("sm80", buffers) for buffers in (2, 3)),
    _gated("sm80", 3),
    *(_matmul("sm90", buffers) for buffers in (2, 3, 4)),
    *(_attention("sm90", buffers) for buffers in (2, 3)),
    _gated("sm90", 3),
    _bytes("sm90", 2),
    _bytes("sm90", 3),
    *(_matmul("gfx942", buffers) for buffers in (2, 3)),
    *(_bytes("gfx942", buffers) for buffers in (2, 3)),
)
