"""What to tell of a simulation: why there is none, how results differ, and each fault that was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.diagnostics import Diagnostic, Severity, shown
from tt2gl.results import SimulateResult
from tt2gl.verify.simulate import SimulationRun
from tt2gl.verify.simulated_kernel import Trouble, TroubleKind

# Code, severity and advice for each reason to have no result.
_TROUBLES: Mapping[TroubleKind, tuple[str, Severity, str]] = {
    "failed": ("TTG430", Severity.ERROR, "Check that both kernels compile; if they do, please report it."),
    "unsupported": (
        "TTG431",
        Severity.ERROR,
        "Leave --run out to compare what both compile to, or use --run gpu; see docs/simulation.md.",
    ),
    "unknown": (
        "TTG432",
        Severity.WARNING,
        "Give the launch with its grid and arguments in a launches file (see docs/launches.md).",
    ),
    "too large": ("TTG433", Severity.ERROR, "Raise --memory-limit, or give a smaller launch."),
    "too long": ("TTG434", Severity.ERROR, "Raise --simulate-timeout, or give a smaller launch."),
}

# Code and advice for each kind of fault.
_FAULTS: Mapping[str, tuple[str, str]] = {
    "out-of-bounds": ("TTG440", "Mask the access, or check the sizes, strides and ranges of the launch."),
    "misaligned": ("TTG441", "Check the pointer arithmetic and the casts of pointers."),
    "race": ("TTG442", "Order the two accesses with a barrier, a wait, or an mbarrier."),
    "uninitialised": ("TTG443", "Write the memory first, or wait for the copy that fills it."),
    "missing-wait": ("TTG444", "Wait for the asynchronous operation before using its result."),
    "missing-fence": ("TTG445", "Put `fence_async_shared()` between the two accesses."),
    "deadlock": ("TTG446", "Check counts and phases: every wait needs the arrivals or bytes that end it."),
    "barrier": ("TTG447", "Check the barrier's count, its phase and the bytes expected."),
    "lifetime": ("TTG448", "Keep the memory until its last use is over."),
    "leak": ("TTG449", "Wait for what is unfinished before the kernel ends."),
    "assert": ("TTG450", "See why the assertion fails under these inputs."),
}


def simulation_diagnostics(run: SimulationRun, file: str, kernel: str, line: int = 0) -> tuple[Diagnostic, ...]:
    """The diagnostics of one simulation; `file` and `line` are the kernel's, for what has no place of its own."""
    return tuple(_told(run, file, kernel, line))


def _told(run: SimulationRun, file: str, kernel: str, line: int) -> Iterator[Diagnostic]:
    if run.trouble is not None:
        yield _troubled(run.trouble, file, kernel, line)
    if run.result is None:
        return
    yield from _faults(run.result, file, kernel, line)
    if run.made_up:
        message = f"{kernel} was simulated on arguments made up for a guessed launch: {run.made_up}."
        hint = "Give real ones with --launches (see docs/launches.md)."
        yield Diagnostic("TTG438", Severity.NOTE, file, line, 0, message, hint)
    if not run.result.equal:
        message = f"The Gluon kernel {kernel} computes something else in simulation: {run.reason}.{_field(run)}"
        hint = "Turn optimising rules off one by one (`--no RULE`) to find the one at fault, and report it."
        yield Diagnostic("TTG435", Severity.ERROR, file, line, 0, message, hint)
    elif not run.result.bitwise:
        message = f"Both kernels are equal up to rounding, {_ulps(run.result.max_error)}.{_field(run)}"
        hint = "Sums in another order do this; it needs no action."
        yield Diagnostic("TTG436", Severity.NOTE, file, line, 0, f"{kernel}: {message}", hint)
    if run.result.undefined:
        message = f"Results of {kernel} hang on elements that a mask leaves out and no `other` says"
        hint = "Give these loads an `other`, or the block pointers a `padding_option`."
        yield Diagnostic("TTG437", Severity.WARNING, file, line, 0, f"{message}; zeros were compared.", hint)
    if run.result.ordered:
        message = f"Results of {kernel} hang on which of its programs comes first: both were run one after the other."
        hint = "Check that no two programs write to one place under this launch: give indices that differ."
        yield Diagnostic("TTG439", Severity.WARNING, file, line, 0, message, hint)


def _troubled(trouble: Trouble, file: str, kernel: str, line: int) -> Diagnostic:
    code, severity, hint = _TROUBLES[trouble.kind]
    message = f"{kernel} was not simulated: {trouble.message.rstrip('.')}."
    return Diagnostic(code, severity, trouble.file or file, trouble.line or line, 0, message, hint)


def _field(run: SimulationRun) -> str:
    """What field arithmetic says of results that are not bit-equal."""
    if run.field_trouble is not None:
        return f" Field arithmetic could not decide: {run.field_trouble.message.rstrip('.')}."
    if run.result is None or run.result.field is None:
        return ""
    return " Field arithmetic agrees exactly." if run.result.field else ""


def _ulps(error: float) -> str:
    return f"off by {error:g} units in the last place at most" if error else "different in zeros' signs or NaN alone"


def _faults(result: SimulateResult, file: str, kernel: str, line: int) -> Iterator[Diagnostic]:
    """A fault of the port alone is an error; one of the original is its author's: a warning, told once for both."""
    own = result.own_faults
    shared = {(found.kind, found.buffer) for found in result.findings if found.kernel == "gluon" and found not in own}
    for found in result.findings:
        if found.kernel == "gluon" and found not in own:
            continue
        code, hint = _FAULTS[found.kind]
        who = f"The {found.kernel.capitalize()} kernel {kernel}"
        who += " (and its port)" if (found.kind, found.buffer) in shared else ""
        buffer = f" [{found.buffer}]" if found.buffer and found.buffer not in found.message else ""
        other = f" (the other access: {shown(found.other_file)}:{found.other_line})" if found.other_line else ""
        severity = Severity.ERROR if found in own else Severity.WARNING
        message = f"{who}: {found.message}{buffer}{other}."
        yield Diagnostic(code, severity, found.file or file, found.line or line, 0, message, hint)
