"""What convert and verify return: plain frozen values, one entry a kernel and launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tt2gl.diagnostics import Diagnostic

Status = Literal["converted", "kept", "failed"]


@dataclass(frozen=True)
class Place:
    """A line of a source file."""

    file: str
    line: int


@dataclass(frozen=True)
class Metrics:
    """What a compiler made of one kernel. Sizes in bytes, instruction widths in bits; None where unknown.

    `copies` are asynchronous copies by carrier and bytes: of a thread (`cp.async.16`), of a tile (`tma.8192`).
    `step_mma` and `step_copies` are those in the innermost loops that have some: what one step takes; `step_loops` is
    how many loops deep each of those is that has products, the least first. `rings` has how many slots each ring of
    shared memory has, by tile (`128x64xf16`). `places` are lines of the source by what stands there: `load.128`,
    `store.32`, `convert_layout`, `ring.128x64xf16`, and instructions and copies by their names. `buffered` are AMD's
    buffer operations, `unbuffered` its other accesses of global memory; `step_waits` how often a step of loops with
    products waits for memory there. `step_cycles` is an estimate, of what one step takes one wave, where it was asked
    for (`verify.mca`).
    """

    shared_bytes: int
    registers: int | None
    spills: int | None
    code_bytes: int
    convert_layouts: int
    global_loads: dict[str, int] = field(default_factory=dict)
    global_stores: dict[str, int] = field(default_factory=dict)
    shared_accesses: int = 0
    async_copies: int = 0
    mma: dict[str, int] = field(default_factory=dict)
    barriers: int = 0
    copies: dict[str, int] = field(default_factory=dict)
    step_mma: dict[str, int] = field(default_factory=dict)
    step_copies: dict[str, int] = field(default_factory=dict)
    rings: dict[str, list[int]] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=dict)
    buffered: int = 0
    unbuffered: int = 0
    step_waits: int = 0
    step_loops: list[int] = field(default_factory=list)
    step_cycles: float | None = None


@dataclass(frozen=True)
class CompileResult:
    """One kernel compiled to machine code for one target, or why it was not (`error`: one line)."""

    ok: bool
    metrics: Metrics | None = None
    error: str | None = None


@dataclass(frozen=True)
class DeviceResult:
    """Both kernels run on a GPU: equality on the same inputs, median milliseconds of interleaved timing."""

    gpu: str
    equal: bool
    bitwise: bool
    max_error: float
    triton_ms: float
    gluon_ms: float

    @property
    def speedup(self) -> float:
        """Triton's time over Gluon's: above 1 the port is faster."""
        return self.triton_ms / self.gluon_ms


@dataclass(frozen=True)
class SimulateFinding:
    """A fault that a simulation found in one of the kernels (`kind`: see docs/simulation.md).

    `file` and `line` are the access that shows it, `other_file` and `other_line` the one it conflicts with (empty and 0
    where there is none), `buffer` the tensor or shared memory that both touch.
    """

    kernel: Literal["triton", "gluon"]
    kind: str
    message: str
    file: str
    line: int
    buffer: str = ""
    other_file: str = ""
    other_line: int = 0


@dataclass(frozen=True)
class SimulateResult:
    """Both kernels simulated on the same inputs: all memory written, compared.

    `max_error` is in units in the last place of the tensor's type. `field` says whether field arithmetic agrees
    exactly, None where it was not asked or could not say. `undefined`: some results hang on elements that the author's
    masks leave undefined; they were compared with zeros there. `ordered`: some hang on which of the original's programs
    comes first; they were compared with one after the other.
    """

    equal: bool
    bitwise: bool
    max_error: float
    findings: tuple[SimulateFinding, ...] = ()
    field: bool | None = None
    undefined: bool = False
    ordered: bool = False

    @property
    def own_faults(self) -> tuple[SimulateFinding, ...]:
        """The port's faults that the original does not have: its, too, would be the author's."""
        theirs = {(found.kind, found.buffer) for found in self.findings if found.kernel == "triton"}
        return tuple(
            found for found in self.findings if found.kernel == "gluon" and (found.kind, found.buffer) not in theirs
        )


@dataclass(frozen=True)
class KernelReport:
    """One kernel on one target under one launch (`launch`: its index among the kernel's launches)."""

    file: str
    kernel: str
    target: str
    launch: int
    status: Status
    rules: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    triton: CompileResult | None = None
    gluon: CompileResult | None = None
    simulate: SimulateResult | None = None
    device: DeviceResult | None = None


@dataclass(frozen=True)
class NamedLayout:
    """A layout that a port's kernel names (`line`: where), under one launch: of what shape, and where elements lie.

    `bases` are the coordinates that each bit adds, by what it is a bit of: `reg`, `lane`, `warp` and `block` of a
    tensor in threads, `offset` in shared memory. Empty where they are not known. `text` is the layout in full, `bits`
    what an element has (0 where unknown).
    """

    kernel: str
    name: str
    line: int
    kind: Literal["threads", "shared", "tensor memory"]
    text: str
    shape: tuple[int, ...]
    bits: int
    bases: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversion:
    """One file converted: `text` is the whole Gluon file, equal to `original` where no kernel converted.

    `diagnostics` are of the file itself; a kernel's own are in `kernels`.
    """

    path: str
    original: str
    text: str
    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was rewritten."""
        return self.text != self.original


JsonDocument = dict[str, Any]
