"""What Triton makes of a kernel's dots: accumulators, operands, and the shared memory that these are read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tests.dots.kernels as kernels
from tt2gl.compiler import backend_for, build_ttgir, generic_text
from tt2gl.ir.attributes import Attribute
from tt2gl.ir.operations import Module, Operation, Value
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import MemDescType
from tt2gl.targets import get_target

DOTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")


@dataclass(frozen=True)
class Case:
    """A kernel of `tests.dots.kernels` by name without its ending, and what it is compiled with."""

    kernel: str
    target: str
    dtype: str
    shape: tuple[int, ...]
    num_warps: int
    columns: tuple[bool, bool] = (False, False)
    stored: tuple[str, str] = ("", "")
    precision: str = "tf32"

    def __str__(self) -> str:
        kinds = [kind or self.dtype for kind in self.stored]
        order = ", ".join("by columns" if columns else "by rows" for columns in self.columns)
        tile = "x".join(map(str, self.shape))
        return f"{self.kernel} {self.target} {self.dtype} of {kinds} {tile} {order} {self.num_warps} {self.precision}"


@dataclass(frozen=True)
class Ring:
    """Shared memory that an operand is read from: the whole tile, and the dimension of it that the dot sums over."""

    shape: tuple[int, ...]
    bits: int
    layout: Attribute
    k_dim: int


@dataclass(frozen=True)
class Dot:
    """A dot after Triton's passes: `shape` is (batch,) M, N, K; layouts as the IR has them.

    `feeds`: whether an operand of another dot is made of its result. `loaded`: the registers that an accumulator in
    tensor memory is loaded into.
    """

    operation: str
    shape: tuple[int, ...]
    bits: int
    accumulator: Attribute
    operands: tuple[Attribute, Attribute]
    rings: tuple[Ring | None, Ring | None]
    feeds: bool
    loaded: tuple[Attribute, ...]


def bits_of(element: Any) -> int:
    """How wide an element is, by its type's name."""
    name = str(element)
    known = {"f8E4M3FN": 8, "f8E5M2": 8, "bf16": 16, "f16": 16, "f32": 32, "f64": 64}
    return known[name] if name in known else int(name.removeprefix("i"))


def ttgir(case: Case) -> str:
    """The kernel of a case after all passes, as text. For a child process."""
    import triton.language as tl
    from triton.compiler.compiler import ASTSource

    kernel = getattr(kernels, f"{case.kernel}_kernel")
    backend, gpu = backend_for(get_target(case.target))
    *batch, m, n, k = case.shape
    stored = [kind or case.dtype for kind in case.stored]
    sums = {"fp64": "fp64", "int8": "int32"}.get(case.dtype, "fp32")
    types = {"size": "i32", "a_ptr": f"*{stored[0]}", "b_ptr": f"*{stored[1]}", "c_ptr": f"*{sums}"}
    types = {name: kind.replace("int", "i") for name, kind in types.items()}
    constexprs: dict[str, Any] = {"M": m, "N": n, "K": k, "B": batch[0] if batch else 1, "PRECISION": case.precision}
    constexprs |= dict(zip(("A_BY_COLUMNS", "B_BY_COLUMNS"), case.columns, strict=True))
    casts = [tl.dtype(case.dtype) if kind else None for kind in case.stored]
    constexprs |= {"A_DTYPE": casts[0], "B_DTYPE": casts[1], "ACC_DTYPE": tl.dtype(sums)}
    names = list(kernel.arg_names)
    signature = {n: "constexpr" if n in constexprs else types.get(n, f"*{case.dtype}") for n in names}
    aligned = {(place,): [["tt.divisibility", 16]] for place, name in enumerate(names) if name not in constexprs}
    source = ASTSource(kernel, signature, {n: v for n, v in constexprs.items() if n in names}, aligned)
    options = backend.parse_options({"num_warps": case.num_warps, "num_stages": 3})
    return generic_text(build_ttgir(source, backend, gpu, options))


def dots_of(case: Case) -> list[Dot]:
    """All dots of a case, in the order of the text. For a child process."""
    return list(read_dots(parse_module(ttgir(case))))


def read_dots(module: Module) -> Iterator[Dot]:
    """All dots of a module, in the order of the text."""
    operations = list(module.operation.walk())
    makers = {id(result): operation for operation in operations for result in operation.results}
    found: list[tuple[str, Any]] = [
        (str(o.operands[0].type), o.results[0].type) for o in operations if o.name == "ttng.tmem_load"
    ]
    loads = dict.fromkeys(found)
    for operation in operations:
        if operation.name in DOTS:
            a, b = operation.operands[:2]
            kind: Any = operation.operands[2].type
            left: Any = a.type
            right: Any = b.type
            yield Dot(
                operation.name,
                (*kind.shape, left.shape[-1]),
                bits_of(left.element),
                kind.encoding,
                (left.encoding, right.encoding),
                (_ring(a, 0, makers), _ring(b, 1, makers)),
                _feeds(operation, operations),
                tuple(load.encoding for view, load in loads if view == str(kind)),
            )


def _feeds(dot: Operation, operations: Sequence[Operation]) -> bool:
    """Whether a result reaches an operand of another dot within an iteration."""
    reached = {id(result) for result in dot.results}
    for operation in operations[operations.index(dot) + 1 :]:
        if operation.name in DOTS:
            if any(id(operand) in reached for operand in operation.operands[:2]):
                return True
        elif any(id(operand) in reached for operand in operation.operands):
            reached |= {id(result) for result in operation.results}
    return False


def _ring(operand: Value, index: int, makers: Mapping[int, Operation]) -> Ring | None:
    """The shared memory that an operand is, or was read from by way of casts and transposes."""
    kind: Any = operand.type
    k_dim = len(kind.shape) - 1 - index
    while not isinstance(operand.type, MemDescType):
        maker = makers.get(id(operand))
        if maker is None or (len(maker.operands) != 1 and maker.name != "ttg.local_load"):
            return None
        if maker.name == "tt.trans":
            k_dim = maker.attributes["order"][k_dim]
        operand = maker.operands[0]
    kind = operand.type
    return Ring(kind.alloc_shape[-len(kind.shape) :], bits_of(kind.element), kind.encoding, k_dim)
