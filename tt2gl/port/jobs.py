"""The work of a port in pieces: each a function of what it is given, both picklable, so that any process may do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tt2gl.convert import convert
from tt2gl.cores import use_cores
from tt2gl.diagnostics import Diagnostic, DiagnosticError
from tt2gl.isolate import remembering
from tt2gl.kernel_state import Kernel
from tt2gl.launches import Launch
from tt2gl.ledger import Ledger
from tt2gl.lowering.lowered_source import LoweredSource
from tt2gl.results import KernelReport, NamedLayout
from tt2gl.verify.api import layouts_of, verify
from tt2gl.verify.options import SimulationOptions

# Files with nothing to convert are not told of: a package has many.
_NOTHING_TO_CONVERT = "TTG004"


@dataclass(frozen=True)
class Settings:
    """What holds for every file. `timeout` is in seconds, a kernel and launch."""

    launches: tuple[Launch, ...] | None = None
    root: Path | None = None
    timeout: float = 60.0
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    run: Literal["none", "simulate", "gpu"] = "none"
    simulation: SimulationOptions = field(default_factory=SimulationOptions)


@dataclass(frozen=True)
class ConvertJob:
    """One file to convert for one target, on so many cores.

    `compiled`: the conversion is to keep what does not compile; else that is for who verifies it to say. `ledger` has
    what was done of the job before, kernel by kernel.
    """

    path: Path
    target: str
    settings: Settings
    cores: int
    compiled: bool = False
    ledger: Path | None = None


@dataclass(frozen=True)
class VerifyJob:
    """One file and its port, for one target, on so many cores; `ledger` as for ConvertJob.

    `found`: the launches that the conversion found itself.
    """

    path: Path
    port: Path
    target: str
    settings: Settings
    cores: int
    ledger: Path | None = None
    found: tuple[Launch, ...] = ()

    @property
    def launches(self) -> tuple[Launch, ...] | None:
        """All launches that are known; None where there are none."""
        return (*(self.settings.launches or ()), *self.found) or self.settings.launches


@dataclass(frozen=True)
class Converted:
    """What became of one file for one target; without a text it is copied as it is, and without kernels no port.

    `found`: the launches of kernels of which none were given.
    """

    text: str | None
    kernels: tuple[KernelReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    found: tuple[Launch, ...] = ()


@contextmanager
def at_work(job: ConvertJob | VerifyJob) -> Iterator[Settings]:
    """Do a job on its cores, and what its ledger has not yet."""
    use_cores(job.cores)
    if job.ledger is None:
        yield job.settings
        return
    with remembering(Ledger(job.ledger)):
        yield job.settings


def run_convert(job: ConvertJob) -> Converted:
    """Convert one file. What stops it as a whole becomes a diagnostic of it."""
    found: list[Launch] = []

    def watch(_: LoweredSource, kernels: Sequence[Kernel]) -> None:
        launches = (launch for kernel in kernels for launch in kernel.launches if launch.origin != "given")
        # As no other: launches' files are relative to the root.
        found.extend(replace(launch, file=str(job.path.absolute())) for launch in launches)

    try:
        with at_work(job) as settings:
            conversion = convert(
                job.path,
                target=job.target,
                launches=settings.launches,
                root=settings.root,
                timeout=settings.timeout,
                only=settings.only,
                without=settings.without,
                compile=job.compiled,
                watch=watch,
            )
    except DiagnosticError as error:
        return Converted(None, (), () if error.diagnostic.code == _NOTHING_TO_CONVERT else (error.diagnostic,))
    return Converted(conversion.text, conversion.kernels, conversion.diagnostics, tuple(found))


def run_verify(job: VerifyJob) -> tuple[KernelReport, ...]:
    """Compile a file's kernels and their ports, compare, and run both where the settings say so."""
    with at_work(job) as settings:
        return verify(
            job.path,
            job.port,
            targets=[job.target],
            launches=job.launches,
            root=settings.root,
            run=settings.run,
            simulation=settings.simulation,
            timeout=settings.timeout,
            # Who gives launches asks how their kernels come out; what is guessed besides is what nobody runs.
            guesses_compared=settings.launches is None,
        )


def run_layouts(job: VerifyJob) -> tuple[NamedLayout, ...]:
    """The layouts that a port's kernels name; none where it cannot be read any more."""
    with at_work(job) as settings:
        options: dict[str, Any] = {"launches": job.launches, "root": settings.root, "timeout": settings.timeout}
        return layouts_of(job.path, job.port, job.target, **options)
