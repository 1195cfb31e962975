"""One kernel on its way through the stages of a conversion."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tt2gl.analysis.facts import LaunchFacts
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import Launch
from tt2gl.results import CompileResult, KernelReport
from tt2gl.slicing.slices import Slice
from tt2gl.targets import Target
from tt2gl.variants import Variants


@dataclass
class Kernel:
    """What is known of one kernel so far.

    `facts`: by launch; `turned`: launches made of the given ones, to see what those do not reach; `witnesses`: others
    made of them, to see what alignment does; `variants`: what was decided, None as long as the kernel stays Triton, and
    then `kept` says why. `rings_outside`: rings may be made before loops around theirs; `crowded`: by launch, the bytes
    of shared memory that were too many.
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
    compiled: dict[int, CompileResult] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    rings_outside: bool = True
    crowded: dict[int, int] = field(default_factory=dict)

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
