"""One kernel on its way through the stages of a conversion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tt2gl.analysis.facts import LaunchFacts
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import Launch
from tt2gl.lowering.arguments_again import Again
from tt2gl.results import CompileResult, KernelReport
from tt2gl.slicing.slices import Slice
from tt2gl.targets import Target
from tt2gl.variants import Variants
from tt2gl.verify.compile import CompileJob, compile_many


@dataclass(frozen=True)
class Calls:
    """Which calls of helpers stay: all in kernels that are `plain`; and which do not: those of `torn` helpers.

    Nor of `converting` ones, which are given what their callers can make in each layout that they want it in; those
    outside of loops are given it once for each (`again`).
    """

    plain: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()
    converting: frozenset[str] = frozenset()
    again: frozenset[Again] = frozenset()


@dataclass
class Kernel:
    """What is known of one kernel so far.

    `facts`: by launch; `turned`: launches made of the given ones, to see what those do not reach; `witnesses`: others
    made of them, to see what alignment does; `variants`: what was decided, None as long as the kernel stays Triton, and
    then `kept` says why. `rings_outside`: rings may be made before loops around theirs; `tiles_outside`: stores in
    loops may go through tiles that are made before them; `crowded`: by launch, the bytes of shared memory that were too
    many. `elsewhere`: the helpers of other files that keep it, by file and line, and
    `accessed_elsewhere`: those whose accesses would be by buffers in its own;
    `written_out`: helpers that it calls stand in its loops; `multiplied_here`: some for products that
    take what comes from before the loop; `torn`: the helper whose callers want different layouts;
    `converting`: helpers that convert a parameter which their callers could make once more, in that layout: a
    conversion goes through memory, behind barriers, and Triton has none there; `again`: such parameters of helpers
    that are called outside of loops;
    `precision`: what names a precision that is several products; `guesses`: what is told of inferred launches, at the
    author's lines.
    """

    function: JitFunction
    slice: Slice | None = None
    launches: tuple[Launch, ...] = ()
    facts: dict[int, LaunchFacts] = field(default_factory=dict)
    turned: list[tuple[Launch, LaunchFacts]] = field(default_factory=list)
    witnesses: list[tuple[Launch, LaunchFacts]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failed: dict[int, Diagnostic] = field(default_factory=dict)
    variants: Variants | None = None
    kept: Diagnostic | None = None
    elsewhere: frozenset[tuple[str, int]] = frozenset()
    accessed_elsewhere: frozenset[tuple[str, int]] = frozenset()
    written_out: bool = False
    multiplied_here: bool = False
    torn: str = ""
    converting: frozenset[str] = frozenset()
    again: frozenset[Again] = frozenset()
    precision: str = ""
    guesses: tuple[Diagnostic, ...] = ()
    compiled: dict[int, CompileResult] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    rings_outside: bool = True
    tiles_outside: bool = True
    crowded: dict[int, int] = field(default_factory=dict)

    def helper_named(self, function: tuple[str, int]) -> str:
        """The name of a helper by its file and line; nothing for the kernel itself."""
        known = (each for seen in self.facts.values() for each in seen.functions.values())
        name = next((each.name for each in known if (each.path, each.line) == function), "")
        return "" if name == self.function.name else name

    @property
    def passed(self) -> tuple[str, ...]:
        """The jit functions that its launches pass, as `package.module:name`."""
        return tuple(dict.fromkeys(reference for launch in self.launches for reference in launch.passed))

    @property
    def written_out_in_vain(self) -> bool:
        """Whether it has helpers' loads in its loops that stay where they are, or is kept, maybe for what it has."""
        stays = self.written_out and not self.multiplied_here and "pipeline" not in self.rules
        return stays or (self.written_out or self.multiplied_here) and self.kept is not None

    def keep(self, code: str, message: str, hint: str, line: int = 0, column: int = 0, file: str = "") -> None:
        """Leave the kernel as it is, and say why."""
        where = (file or str(self.function.path), line or self.function.line, column)
        self.kept = Diagnostic(code, Severity.WARNING, *where, message, hint)
        self.variants = None

    def reports(self, target: Target) -> list[KernelReport]:
        """One report a launch; a kernel without launches has one all the same."""
        own = tuple(self.diagnostics)
        base = KernelReport(str(self.function.path), self.function.name, target.name, 0, "kept")
        if self.kept is not None:
            status = replace(base, diagnostics=(*own, self.kept))
            return [replace(status, launch=index) for index in range(max(len(self.launches), 1))]
        return [
            replace(base, launch=index, status="failed", diagnostics=(*own, self.failed[index]))
            if index in self.failed
            else replace(
                base,
                launch=index,
                status="converted",
                rules=self.rules,
                diagnostics=own,
                gluon=self.compiled.get(index),
            )
            for index in range(len(self.launches))
        ]


def constants_by_body(kernels: Iterable[Kernel]) -> dict[str, list[Mapping[str, object]]]:
    """The constants of the launches that each body of the kernels is compiled for, by its name."""
    return {
        analysis.bodies.get(analysis.function, kernel.function.name): [
            each.launch.constexprs for each in analysis.scenes
        ]
        for kernel in kernels
        if kernel.variants is not None
        for analysis in kernel.variants.analyses
    }


def blame_originals(kernels: Sequence[Kernel], target: Target, timeout: float) -> None:
    """Note of launches whose Gluon does not compile those that Triton itself does not compile to the end.

    A kernel with no other launch is kept for that.
    """
    failed = [
        (kernel, kernel.slice, index)
        for kernel in kernels
        for index, result in kernel.compiled.items()
        if not result.ok and index not in kernel.failed and kernel.slice is not None
    ]
    jobs = [CompileJob(original, kernel.launches[index], target.name) for kernel, original, index in failed]
    for (kernel, _, index), result in zip(failed, compile_many(jobs, timeout=timeout) if jobs else [], strict=True):
        if result.ok:
            continue
        message = f"Under launch {index} the kernel does not compile as it is: {(result.error or '').rstrip('.')}."
        where = (str(kernel.function.path), kernel.function.line, 0)
        hint = "See whether the launch fits the kernel and the target."
        if kernel.compiled.keys() - kernel.failed.keys() - {index}:
            kernel.failed[index] = Diagnostic("TTG401", Severity.WARNING, *where, message, hint)
        else:
            kernel.keep("TTG401", message, hint)
