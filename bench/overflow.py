"""Shows that buffer operations are right at the size where 32 bits are just enough, and are not used beyond.

    python bench/overflow.py [--launches L.json --root DIR] [--target T]... [--only NAME]...

Needs no GPU. Each file is converted for each target with `--buffer-guard`, and written again as for launches whose
tensors all have one element too many. Then, for each tensor of each kernel, a launch is looked for under which it ends
where a buffer does (`bench/growing.py`), and simulated: the port must do what the original does. One step beyond, the
port for small tensors must be refused by its check, or be right all the same, and the port for large ones be right.
Tensors that are smaller than one that is checked wherever that is not too large are told, and those that no launch is
found for. 0 if all that could be simulated is as it must be.
"""

from __future__ import annotations

import ast
import datetime
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.growing import Growth, Large  # noqa: E402
from bench.machine import ask  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser, size  # noqa: E402
from tt2gl.analysis.buffer_sizes import BUFFER_BYTES  # noqa: E402
from tt2gl.convert import RULES, convert  # noqa: E402
from tt2gl.file_plan import file_plan  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.formatting import fitted  # noqa: E402
from tt2gl.isolate import map_isolated, preload, private_triton, run_isolated  # noqa: E402
from tt2gl.kernel_state import Kernel  # noqa: E402
from tt2gl.launches import Launch, TensorArg, launches_for  # noqa: E402
from tt2gl.lowering.lowered_source import LoweredSource  # noqa: E402
from tt2gl.names import listed  # noqa: E402
from tt2gl.pipeline import staged  # noqa: E402
from tt2gl.rewrite.file import rewrite  # noqa: E402
from tt2gl.rewrite.guards import FITS_BUFFERS_SOURCE  # noqa: E402
from tt2gl.rewrite.imports import with_instructions  # noqa: E402
from tt2gl.simulate.api import Simulation  # noqa: E402
from tt2gl.simulate.findings import SimulationError  # noqa: E402
from tt2gl.slicing.slicer import slice_kernel  # noqa: E402
from tt2gl.slicing.slices import Slice  # noqa: E402
from tt2gl.source import read_source  # noqa: E402
from tt2gl.targets import Target, get_target  # noqa: E402
from tt2gl.verify.device import Participant  # noqa: E402
from tt2gl.verify.inputs import UnknownInputsError, numpy_dtype  # noqa: E402
from tt2gl.verify.simulated_kernel import SimulatedKernel, Stopped  # noqa: E402
from tt2gl.words import FITS_BUFFERS  # noqa: E402

_SMALL = 1 << 20
"""Bytes of the tensors of launches to start from."""


@dataclass(frozen=True)
class Case:
    """A kernel: its original, its port for small tensors, with the parameters that it checks, its port for large ones.

    `assumes`: even that one takes some tensor to be small.
    """

    file: str
    name: str
    target: str
    launches: tuple[Launch, ...]
    original: Slice
    port: Slice
    checked: tuple[tuple[str, ...], tuple[str, ...]]
    large: Slice
    assumes: bool


@dataclass
class Outcome:
    """What became of a kernel's tensors: `shown` at the limit and beyond, or `missed`, and why; what is `wrong`.

    `below`: those that are small wherever another, which is checked, is not too large.
    """

    shown: dict[str, str] = field(default_factory=dict)
    below: dict[str, str] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    """Convert, grow, simulate, tell."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--target", action="append", help="architecture; may be given again (default: gfx942)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a kernel may take")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write what was found, anew after each file")
    arguments = parser.parse_args()
    launches, root = all_launches(arguments)
    start = time.perf_counter()
    preload()
    files = sorted({each.file for each in launches if selected(each.kernel, each.file, arguments.only)})
    jobs = [(file, target) for target in arguments.target or ["gfx942"] for file in files]
    done: list[tuple[Case, Outcome]] = []
    where = environment()
    for file, target in jobs:
        of_file = tuple(launch for launch in launches if launch.file == file)
        made = run_isolated(prepared, file, target, of_file, root, timeout=1800.0)
        if made.value is None:
            print(f"{file} was not converted for {target}: {made.error}", file=sys.stderr)
        cases = [case for case in made.value or [] if selected(case.name, case.file, arguments.only)]
        outcomes = map_isolated(examined, [(case,) for case in cases], timeout=arguments.timeout)
        for case, each in zip(cases, outcomes, strict=True):
            done.append((case, each.value or Outcome(wrong=[each.error])))
            tell(*done[-1])
        if arguments.json:
            found = {"environment": where, "kernels": [entry(*each) for each in done]}
            write_text(arguments.json, json.dumps(found, indent=1) + "\n")
    kinds = ("shown", "below", "missed", "wrong")
    shown, below, missed, wrong = (sum(len(getattr(each, kind)) for _, each in done) for kind in kinds)
    whole = sum(not outcome.missed and not outcome.wrong for _, outcome in done)
    print(
        f"{len(done)} kernels, {whole} of them with all tensors; {shown} tensors shown, {below} smaller than "
        f"such, {missed} not reached, {wrong} wrong; {time.perf_counter() - start:.0f} s"
    )
    return 1 if wrong else 0


def environment() -> dict[str, str]:
    """Triton, date and commit."""
    return {
        "triton": version("triton"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": ask("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD") or "unknown",
    }


def entry(case: Case, outcome: Outcome) -> dict[str, Any]:
    """A kernel's part of the document."""
    return {"file": case.file, "kernel": case.name, "target": case.target, **asdict(outcome)}


def tell(case: Case, outcome: Outcome) -> None:
    """What became of one kernel."""
    print(f"{case.target} {case.file} {case.name}")
    for name, what in outcome.shown.items():
        print(f"    {name}: {what}")
    for name, what in outcome.below.items():
        print(f"    {name}: smaller, {what}")
    for name, why in outcome.missed.items():
        print(f"    {name}: not reached, {why}")
    for what in outcome.wrong:
        print(f"    WRONG: {what}", flush=True)


# -------------------------------------------------------------------------------------------------------- converting


def prepared(file: str, target: str, launches: tuple[Launch, ...], root: Path) -> list[Case]:
    """A file's kernels that have buffer operations."""
    seen: list[tuple[LoweredSource, list[Kernel]]] = []
    path = root / file
    made = convert(
        path, target=target, launches=launches, root=root, buffer_guard=True, compile=False,
        watch=lambda known, kernels: seen.append((known, list(kernels))),
    )  # fmt: skip
    known, kernels = seen[-1]
    just = rewritten(known, kernels, get_target(target), 0)
    large = rewritten(known, kernels, get_target(target), 1)
    texts = [read_source(path.with_name(f"{path.stem}_gluon.py"), text) for text in (just, large)]
    cases = []
    for name in dict.fromkeys(report.kernel for report in made.kernels if report.status == "converted"):
        if ".buffer_" not in just:
            continue
        slices = [slice_kernel(source, name, target=target, root=root) for source in (read_source(path), *texts)]
        own = tuple(each for each in launches_for(launches, path, name, root) if size(each) <= _SMALL)
        cases.append(
            Case(
                file,
                name,
                target,
                own,
                slices[0],
                slices[1],
                checks(just, name),
                slices[2],
                bool(any(checks(large, name))),
            )
        )
    return cases


def rewritten(known: LoweredSource, kernels: Sequence[Kernel], target: Target, more: int) -> str:
    """The port of a file for launches whose tensors have as many elements as a buffer holds, and `more`."""
    for kernel in kernels:
        kernel.launches = tuple(
            replace(launch, args={name: resized(value, more) for name, value in (launch.args or {}).items()})
            for launch in kernel.launches
        )
    plan = file_plan(known.work, kernels, target, (*RULES, "buffer_guard"))
    assert plan is not None
    made, _ = staged(rewrite(known.work, plan), known.work, plan)
    text = fitted(with_instructions(made), known.work.text)
    return known.restored(text, [kernel.function.name for kernel in kernels if kernel.kept is not None])


def resized(value: Any, more: int) -> Any:
    """A tensor of other length."""
    if not isinstance(value, TensorArg):
        return value
    count = BUFFER_BYTES // numpy_dtype(value.dtype).itemsize + more
    return replace(value, shape=(count,), stride=(1,))


def checks(text: str, kernel: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parameters that a port checks at each launch: tensors, and counts."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            for call in (part for each in node.decorator_list for part in ast.walk(each)):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == FITS_BUFFERS:
                    tensors, counts = map(ast.literal_eval, call.args)
                    return tuple(tensors), tuple(counts)
    return (), ()


# -------------------------------------------------------------------------------------------------------- simulating


def examined(case: Case) -> Outcome:
    """One kernel, in a process that compiles nothing else."""
    private_triton()
    outcome = Outcome()
    if case.assumes:
        outcome.wrong.append("a port for large tensors assumes that they are small")
    for launch in case.launches:
        tensors = [name for name, value in (launch.args or {}).items() if isinstance(value, TensorArg)]
        if left := [name for name in tensors if name not in outcome.shown.keys() | outcome.below.keys()]:
            try:
                under(case, launch, left, outcome)
            except (Stopped, SimulationError, UnknownInputsError) as error:
                outcome.missed |= {name: str(error) for name in left}
    outcome.below = {name: what for name, what in outcome.below.items() if name not in outcome.shown}
    known = outcome.shown.keys() | outcome.below.keys()
    outcome.missed = {
        name: f"{why}; {'beyond it is refused' if refuses(case, name) else 'the port assumes nothing of its size'}"
        for name, why in outcome.missed.items()
        if name not in known
    }
    return outcome


def under(case: Case, launch: Launch, left: Collection[str], outcome: Outcome) -> None:
    """A kernel's tensors at the limit and beyond, grown from one launch."""
    original, port, plain = (
        SimulatedKernel("triton" if kernel is case.original else "gluon", Participant(kernel, launch), case.target)
        for kernel in (case.original, case.port, case.large)
    )
    growth = Growth(original, launch, frozenset(case.checked[0]))
    for name in left:
        if name in outcome.shown:
            continue
        found = growth.large(name)
        if found is None:
            outcome.missed.setdefault(name, "nothing that can be turned makes it so large with as much work")
            continue
        told = compared(growth, found.turns, at_limit(growth, found), original, port)
        beyond = lengths(growth, growth.reached(found.beyond))
        also = compared(growth, found.beyond, beyond, original, plain)
        outcome.wrong += [f"{listed(found.tensors)} at the limit, by {found.turns}: {each}" for each in told]
        outcome.wrong += [f"{listed(found.tensors)} beyond, by {found.beyond}: {each}" for each in also]
        forced = compared(growth, found.beyond, beyond, original, port)
        for tensor in found.tensors:
            refused = refuses(case, tensor)
            if forced and not any(refuses(case, each) for each in found.tensors):
                outcome.wrong.append(f"{tensor} beyond is not refused, by {found.beyond}: {forced[0]}")
            if not told and not also:
                gap = BUFFER_BYTES - found.reached[tensor]
                said = "refused" if refused else "needs no check"
                outcome.shown.setdefault(
                    tensor,
                    f"right up to {gap} bytes before the end; beyond {said}{', would be wrong' if forced else ''}, "
                    f"plain right; by {', '.join(' '.join(knob) for knob in found.turns)}",
                )
        if name not in found.tensors:
            outcome.below[name] = f"{found.reached[name]} bytes with {listed(found.tensors)} at the limit"


def lengths(growth: Growth, reached: Mapping[str, int]) -> dict[str, int]:
    """The elements of tensors that are touched up to such bytes, no fewer than the launch says."""
    return {
        name: max(len(data.elements), -(-reached.get(name, 0) // data.elements.itemsize))
        for name, data in growth.inputs.tensors.items()
    }


def at_limit(growth: Growth, found: Large) -> dict[str, int]:
    """The same, those at the limit with as many as there can be."""
    made = lengths(growth, found.reached)
    for name in found.tensors:
        made[name] = BUFFER_BYTES // growth.inputs.tensors[name].elements.itemsize
    return made


def compared(
    growth: Growth, turns: Any, sizes: Mapping[str, int], original: SimulatedKernel, port: SimulatedKernel
) -> list[str]:
    """What a port does other than its original."""
    expected, found = growth.run(original, turns, sizes), growth.run(port, turns, sizes)
    told = [f"{each.kind}: {each.message}" for each in found.findings if not expected.findings]
    return told or differences(expected, found)


def differences(expected: Simulation, found: Simulation) -> list[str]:
    """The tensors that differ by more than rounding."""
    told = []
    for one, other in zip(expected.tensors, found.tensors, strict=True):
        if one.places is None or other.places is None or not np.array_equal(one.places, other.places):
            told.append(f"{one.name} is written at other places")
        elif one.elements.tobytes() != other.elements.tobytes() and not alike(one.elements, other.elements):
            told.append(f"{one.name} has other values")
    return told


def alike(one: Any, other: Any) -> bool:
    """Whether values differ by rounding at most."""
    if one.dtype.kind in "iub":
        return False
    return bool(np.allclose(one.astype(np.float64), other.astype(np.float64), 2e-2, 1e-2, equal_nan=True))


def refuses(case: Case, tensor: str) -> bool:
    """Whether the port's check lets a launch pass with its tensors at the limit, and not with one beyond."""
    tensors, _ = case.checked
    scope: dict[str, Callable[..., Any]] = {}
    exec(FITS_BUFFERS_SOURCE, scope)
    check = scope[FITS_BUFFERS](list(tensors), [])
    given = {name: Given(BUFFER_BYTES) for name in tensors}
    return check(given) and not check({**given, tensor: Given(BUFFER_BYTES + 1)})


@dataclass(frozen=True)
class Given:
    """As much of a torch tensor as the check asks for."""

    size: int

    def untyped_storage(self) -> Given:
        """Itself, which has `nbytes`."""
        return self

    def nbytes(self) -> int:
        """Bytes."""
        return self.size


if __name__ == "__main__":
    sys.exit(main())
