"""What becomes of one kernel: its layouts under every launch, or why it stays Triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.dot_formulas import NoFormulaError
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.frames import SeveralProducts, Unsupported
from tt2gl.analysis.given_again import given_again
from tt2gl.analysis.kernel import parsed
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.file_plan import keep_conflict, left_where_they_are, same_file
from tt2gl.kernel_state import Kernel
from tt2gl.launches import Launch
from tt2gl.lowering.arguments_again import Again
from tt2gl.names import listed
from tt2gl.slicing.slices import Slice
from tt2gl.targets import Target
from tt2gl.variants import Undecided, Variants, analysed


def decide(kernel: Kernel, target: Target, taken: set[str]) -> None:
    """Decide layouts, with what turned flags showed where that can be decided too."""
    if kernel.kept is not None or kernel.slice is None:
        return
    launches = [kernel.launches[index] for index in kernel.facts]
    facts, name = list(kernel.facts.values()), kernel.function.name
    more = [launch for launch, _ in kernel.turned], [seen for _, seen in kernel.turned]
    try:
        found = _attempt(kernel, [*launches, *more[0]], [*facts, *more[1]], target, taken) if kernel.turned else None
        if found is None or len(found.analyses) > 1:
            plain = analysed(kernel.slice, name, launches, facts, target, taken, kernel.witnesses)
            if found is None or len(plain.analyses) < len(found.analyses):
                # A flag that nobody sets is no reason for another body, let alone to keep the kernel.
                found = plain
                kernel.turned.clear()
    except Exception as error:  # noqa: BLE001 - one kernel that analysis cannot do is no reason to stop the others
        _keep_for(kernel, error)
        return
    kernel.variants = found
    cheap = {key for body in found.analyses for made in body.decisions for key in made.cheap}
    named = {kernel.helper_named(key) for key in cheap if same_file(key[0], kernel.function)}
    kernel.converting = frozenset(named - {""})
    kernel.again = frozenset(_given_again(kernel, found, kernel.slice))
    for body in found.analyses:
        taken.update(body.bodies.values())
        _tell(kernel, body)


def _given_again(kernel: Kernel, found: Variants, kernel_slice: Slice) -> Iterator[Again]:
    """The arguments that helpers of the kernel's file want in several layouts."""
    for body in found.analyses:
        keys = {spot.site.function for made in body.decisions for spot in made.again}
        names = {key: name for key in keys if same_file(key[0], kernel.function) and (name := kernel.helper_named(key))}
        if names:
            yield from given_again(body.decisions, parsed(kernel_slice), names)


def _attempt(
    kernel: Kernel, launches: Sequence[Launch], facts: Sequence[LaunchFacts], target: Target, taken: set[str]
) -> Variants | None:
    """The kernel analysed, None where that cannot be done under one of the launches."""
    assert kernel.slice is not None
    try:
        return analysed(kernel.slice, kernel.function.name, launches, facts, target, taken, kernel.witnesses)
    except Exception:  # noqa: BLE001 - whatever it is, it may be due to launches that nobody gave
        return None


def _keep_for(kernel: Kernel, error: Exception) -> None:
    """Keep a kernel for what analysis raised."""
    hint = "The kernel stays Triton; see the page of this code."
    match error:
        case Unsupported():
            kernel.precision = error.named if isinstance(error, SeveralProducts) else ""
            file, line, column = error.site
            file = "" if same_file(file, kernel.function) else file
            kernel.keep(error.code, f"It uses {error.what}.", hint, line, column, file)
        case Conflict():
            keep_conflict(kernel, error)
        case Undecided():
            groups = [f"{label or 'one'} under launches {listed([str(i) for i in at])}" for label, at in error.groups]
            message = f"Its launches want different bodies, which no parameter tells apart: {'; '.join(groups)}."
            kernel.keep("TTG310", message, "The kernel stays Triton; convert for some of the launches only.")
        case NoFormulaError():
            kernel.keep("TTG302", f"Its matrix products need layouts that are not written yet: {error}.", hint)
        case _:
            message = f"Internal error: {type(error).__name__}: {' '.join(str(error).split())}."
            kernel.keep("TTG900", message, "This is a bug in tt2gl: please report it, with the file and its launches.")


def _tell(kernel: Kernel, body: KernelAnalysis) -> None:
    """What there is to say of one body of a kernel."""
    where = f" in {body.bodies[body.function]}" if body.bodies else ""
    for layout in body.classes.classes:
        if not layout.exact:
            served = " and ".join(name for name in layout.pointers if name) or "a tile"
            at = (str(kernel.function.path), kernel.function.line, 0)
            message = f"No formula gives Triton's layout for the access to {served} under every launch{where}."
            hint = "Look at its width in `tt2gl verify`; a literal layout may serve some launches better."
            kernel.diagnostics.append(Diagnostic("TTG320", Severity.WARNING, *at, message, hint))
    kernel.diagnostics += [told for told in left_where_they_are(kernel, body) if told not in kernel.diagnostics]
    for (file, _), place in body.unverified.items():
        at = (file if not same_file(file, kernel.function) else str(kernel.function.path), *place[:2])
        message = f"No launch reaches this code{where}: it is converted unverified, with tensors made in `AutoLayout`."
        hint = "Give a launch that takes this branch with --launches."
        kernel.diagnostics.append(Diagnostic("TTG330", Severity.NOTE, *at, message, hint))
