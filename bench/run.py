"""Measures the corpus on the GPU of this machine: each Gluon port against Triton, its own translator, and libraries.

    python bench/run.py --out DIR [--only NAME]... [--launches L.json --root DIR]

Converting, slicing, translating and compiling run in parallel on the host's cores first; then every kernel runs on the
GPU, in a process of its own: equality on several random inputs, a few kernels at once (`--at-once`), then interleaved
timing, each alone. What does not come through beside others is tried again by itself. The document, the same as
`tt2gl verify --json` prints with "environment" beside "kernels", is written anew after every kernel, so that a run cut
short leaves what it has. The table of results comes last.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import rivals  # noqa: E402
from bench.machine import gpu_present  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser, size, tensors_of  # noqa: E402
from tt2gl.children import Outcome  # noqa: E402
from tt2gl.convert import convert  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.isolate import map_isolated, preload, private_triton  # noqa: E402
from tt2gl.launches import Launch, launches_for  # noqa: E402
from tt2gl.lowering.lowered_source import has_block_pointers, without_block_pointers  # noqa: E402
from tt2gl.report.document import document  # noqa: E402
from tt2gl.results import Conversion, KernelReport  # noqa: E402
from tt2gl.slicing.slicer import slice_kernel  # noqa: E402
from tt2gl.slicing.slices import Slice, load_slice  # noqa: E402
from tt2gl.source import read_source  # noqa: E402
from tt2gl.targets import default_target  # noqa: E402
from tt2gl.verify.comparison import compare  # noqa: E402
from tt2gl.verify.compile import CompileJob, compile_many  # noqa: E402
from tt2gl.verify.device import (  # noqa: E402
    DeviceJob,
    DeviceRun,
    FileKernel,
    Participant,
    device_diagnostics,
    run_on_device,
)

# Triton's own translator, by the names it has had.
TRANSLATORS = (
    "triton.tools.triton_to_gluon_translator.translator",
    "triton.tools.triton_to_gluon_translater.translator",
)
STRAW_MAN = "Triton's translator"
# Of a kernel's time limit: some translations (a Hadamard transform's) are compiled for longer than anybody waits.
STRAW_MAN_SHARE = 1 / 6


@dataclass(frozen=True)
class Case:
    """One kernel under one launch; `translated` is the straw man's file, or why there is none."""

    report: KernelReport
    launch: Launch
    original: Slice | None = None
    port: Slice | None = None
    translated: str = ""
    translation_error: str = ""


@dataclass
class Entry:
    """What the GPU said of one case."""

    case: Case
    outcome: Outcome[DeviceRun] | None = None
    straw: Outcome[DeviceRun] | None = None


def main() -> int:
    """Run the benchmark; 0 if every kernel that was converted ran and is equal."""
    arguments = parse_arguments()
    start = time.perf_counter()
    arguments.out.mkdir(parents=True, exist_ok=True)
    where = gpu_present(arguments.commit)
    if where is None:
        return 2
    target = arguments.target or default_target().name
    preload()
    cases = prepare(arguments, target)
    print(f"{len(cases)} kernels prepared in {time.perf_counter() - start:.0f} s", flush=True)
    entries: list[Entry] = []
    for entry in measured(cases, arguments.at_once, arguments.timeout):
        entries.append(entry)
        print(f"[{len(entries)}/{len(cases)}] {row(entry)}", flush=True)
        write(arguments.out / f"{target}.json", entries, where, time.perf_counter() - start)
    print_table(entries)
    ran = [entry for entry in entries if entry.case.port is not None]
    good = [entry for entry in ran if entry.outcome and entry.outcome.value and entry.outcome.value.result.equal]
    return 0 if len(good) == len(ran) else 1


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="folder for the document")
    parser.add_argument("--all", action="store_true", help="every launch, not the largest of each kernel")
    parser.add_argument("--target", help="architecture to convert for (default: the GPU present)")
    parser.add_argument("--commit", help="what to call this version (default: asked of git)")
    parser.add_argument(
        "--no-translator", action="store_false", dest="translator", help="leave out Triton's own translator"
    )
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds a kernel may take on the GPU")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="kernels compared at once (default: 4)")
    return parser.parse_args()


# --------------------------------------------------------------------------------------- on the host, in parallel


def prepare(arguments: argparse.Namespace, target: str) -> list[Case]:
    """Convert, slice, translate and compile everything before the GPU is busy."""
    launches, root = all_launches(arguments)
    files = sorted({launch.file for launch in launches if selected(launch.kernel, launch.file, arguments.only)})
    jobs = [(file, target, tuple(launch for launch in launches if launch.file == file), root) for file in files]
    cases: list[Case] = []
    for job, outcome in zip(jobs, map_isolated(cases_of_file, jobs, timeout=600.0), strict=True):
        if outcome.value is None:
            print(f"{job[0]} was not converted: {outcome.error}", file=sys.stderr)
        cases += outcome.value or []
    asked = {
        (launch.file, launch.kernel) for launch in launches if selected(launch.kernel, launch.file, arguments.only)
    }
    for file, kernel in sorted(asked - {(case.report.file, case.report.kernel) for case in cases}):
        print(f"{file} gave no {kernel} to measure", file=sys.stderr)
    wanted = [case for case in cases if selected(case.report.kernel, case.report.file, arguments.only)]
    if not arguments.all:
        wanted = largest_of_each_kernel(wanted)
    if not arguments.translator:
        return compiled([replace(case, translation_error="not asked for") for case in wanted], target)
    folder = arguments.out / "translated"
    folder.mkdir(exist_ok=True)
    translations = map_isolated(translate, [(case.original, target) for case in wanted], timeout=120.0)
    wanted = [with_translation(case, done, folder) for case, done in zip(wanted, translations, strict=True)]
    return compiled(wanted, target)


def cases_of_file(
    file: str, target: str, launches: tuple[Launch, ...], root: Path, compiled: bool = True
) -> list[Case]:
    """Convert one file; both slices of every kernel that was, and unless told otherwise compiles."""
    path = root / file
    conversion: Conversion = convert(path, target=target, launches=launches, root=root, compile=compiled)
    source = read_source(path)
    if not has_block_pointers():
        source = without_block_pointers(source)
    # Sliced as if it lay beside the original: relative imports lead where they led.
    port = read_source(path.with_name(f"{path.stem}_gluon.py"), conversion.text)
    slices: dict[str, tuple[Slice, Slice | None]] = {}
    cases = []
    for report in conversion.kernels:
        own = launches_for(launches, path, report.kernel, root)
        if report.launch >= len(own):
            continue
        if report.kernel not in slices:
            original = slice_kernel(source, report.kernel, target=target, root=root)
            converted = report.status == "converted"
            gluon = slice_kernel(port, report.kernel, target=target, root=root) if converted else None
            slices[report.kernel] = (original, gluon)
        cases.append(Case(replace(report, file=file), own[report.launch], *slices[report.kernel]))
    return cases


def largest_of_each_kernel(cases: Iterable[Case]) -> list[Case]:
    """The launch of most bytes of each kernel: the small ones are for equality without a GPU."""
    largest: dict[tuple[str, str], Case] = {}
    for case in cases:
        key = (case.report.file, case.report.kernel)
        if key not in largest or size(case.launch) > size(largest[key].launch):
            largest[key] = case
    return list(largest.values())


def translate(original: Slice | None, target: str) -> str:
    """Triton's own translation of a kernel: the straw man. Given the bare kernel, for it drops decorated ones."""
    if original is None:
        raise ValueError("no slice")
    private_triton()
    function = load_slice(original, Path(tempfile.mkdtemp()))
    for name in TRANSLATORS:
        try:
            translator = importlib.import_module(name)
        except ImportError:
            continue
        convert_triton = translator.convert_triton_to_gluon
        if "target" in inspect.signature(convert_triton).parameters:
            return str(convert_triton([function], target=translator.TranslatorTarget(target)))
        return str(convert_triton([function]))
    raise ImportError("this Triton has no translator")


def with_translation(case: Case, outcome: Outcome[str], folder: Path) -> Case:
    """The case with the straw man's file, or the reason there is none."""
    if not outcome.value:
        return replace(case, translation_error=outcome.error or "the translation is empty")
    path = folder / f"{Path(case.report.file).stem}_{case.report.kernel}.py"
    path.write_text(outcome.value, encoding="utf-8")
    return replace(case, translated=str(path))


def compiled(cases: list[Case], target: str) -> list[Case]:
    """Both kernels of every case compiled, and what is worse noted."""
    jobs = [
        (index, name, CompileJob(kernel, case.launch, target))
        for index, case in enumerate(cases)
        for name, kernel in (("triton", case.original), ("gluon", case.port))
        if kernel is not None
    ]
    reports = [case.report for case in cases]
    for (index, name, _), result in zip(jobs, compile_many([job for _, _, job in jobs]), strict=True):
        report = reports[index]
        reports[index] = replace(report, triton=result) if name == "triton" else replace(report, gluon=result)
    for index, report in enumerate(reports):
        if report.triton and report.triton.metrics and report.gluon and report.gluon.metrics:
            worse = compare(report.triton.metrics, report.gluon.metrics, file=report.file)
            reports[index] = replace(report, diagnostics=(*report.diagnostics, *worse))
    return [replace(case, report=report) for case, report in zip(cases, reports, strict=True)]


# ------------------------------------------------------------------------------------------------------ on the GPU


def measured(cases: Sequence[Case], at_once: int, timeout: float) -> Iterator[Entry]:
    """The cases, so many on their way at a time, of which one is timed; last, what failed beside others, by itself."""
    failed: list[Case] = []
    with tempfile.NamedTemporaryFile(prefix="turns-") as file:
        turns = Path(file.name)
        with ThreadPoolExecutor(at_once) as pool:
            # Waiting for a turn counts as well.
            for entry in pool.map(lambda case: measure(case, turns, at_once * timeout), cases):
                if at_once > 1 and entry.outcome is not None and entry.outcome.value is None:
                    failed.append(entry.case)
                else:
                    yield entry
        for case in failed:
            yield measure(case, turns, timeout)


def measure(case: Case, turns: Path, timeout: float) -> Entry:
    """Run one case with its rivals, and the straw man after it, each in a process of its own."""
    entry = Entry(case)
    if case.original is None or case.port is None:
        return entry
    original = Participant(case.original, case.launch)
    port = Participant(case.port, case.launch)
    entry.outcome = run_on_device(DeviceJob(original, port, rivals=rivals.calls_of, turns=turns), timeout=timeout)
    if case.translated:
        straw = Participant(FileKernel(case.translated, case.report.kernel), case.launch)
        job = DeviceJob(original, straw, seeds=(0,), turns=turns)
        entry.straw = run_on_device(job, timeout=timeout * STRAW_MAN_SHARE)
    return entry


def write(path: Path, entries: Sequence[Entry], where: dict[str, str], seconds: float) -> None:
    """The document so far, whole or not at all."""
    made = document([final_report(entry) for entry in entries], seconds=seconds)
    for entry, kernel in zip(entries, made["kernels"], strict=True):
        if "device" in kernel and entry.outcome is not None and entry.outcome.value is not None:
            run = entry.outcome.value
            kernel["device"] |= {"shape": shape(entry.case.launch), "noise": run.noise, "repeats": run.repeats}
            kernel["device"]["gb_per_s"] = gigabytes_a_second(run)
            kernel["device"]["rivals"] = {**run.rivals, **straw_man_time(entry)}
            kernel["device"]["rival_errors"] = dict(run.rival_errors)
            kernel["device"]["straw_man"] = straw_man(entry)
    text = json.dumps({"environment": where, **made}, indent=1, allow_nan=False) + "\n"
    # Results are committed, and nobody's folders belong there.
    write_text(path, text.replace(f"{ROOT}/", ""))


def final_report(entry: Entry) -> KernelReport:
    """The case's report with what the GPU said."""
    if entry.outcome is None:
        return entry.case.report
    told = device_diagnostics(entry.outcome, entry.case.report.file)
    device = entry.outcome.value.result if entry.outcome.value else None
    return replace(entry.case.report, device=device, diagnostics=(*entry.case.report.diagnostics, *told))


def shape(launch: Launch) -> str:
    """The work in words: the shapes and types of the tensors."""
    return ", ".join(f"{'x'.join(map(str, tensor.shape))} {tensor.dtype}" for tensor in tensors_of(launch))


def straw_man_time(entry: Entry) -> dict[str, float]:
    """Milliseconds of the straw man, where it runs and is equal."""
    run = entry.straw.value if entry.straw else None
    return {STRAW_MAN: run.result.gluon_ms} if run and run.result.equal else {}


def straw_man(entry: Entry) -> dict[str, Any]:
    """How Triton's own translation fared, and why where it did not."""
    if entry.straw is None:
        return {"runs": False, "error": f"does not translate: {entry.case.translation_error}"}
    run = entry.straw.value
    if run is None:
        return {"runs": False, "error": f"does not run: {entry.straw.error}"}
    # Against Triton as timed beside it.
    return {"runs": True, "equal": run.result.equal, "speedup": run.result.speedup, "error": run.reason or None}


def gigabytes_a_second(run: DeviceRun) -> float:
    """The port's throughput if every tensor is read or written once."""
    return run.bytes / run.result.gluon_ms / 1e6


# ------------------------------------------------------------------------------------------------------- the table

HEADINGS = ("kernel", "equal", "bitwise", "triton us", "gluon us", "ratio", "noise", "GB/s", "library", "translator")


def cells(entry: Entry) -> tuple[str, ...]:
    """One line of the table."""
    report = entry.case.report
    name = f"{Path(report.file).stem}:{report.kernel}"
    if entry.outcome is None:
        codes = ", ".join(diagnostic.code for diagnostic in report.diagnostics)
        return (name, f"not converted ({codes})")
    run = entry.outcome.value
    if run is None:
        return (name, f"did not run: {entry.outcome.error}")
    result = run.result
    straw = straw_man(entry)
    translator = f"{straw['speedup']:.2f}" if straw["runs"] and straw["equal"] else str(straw["error"])[:60]
    return (
        name,
        "yes" if result.equal else f"NO: {run.reason}",
        "yes" if result.bitwise else f"{result.max_error:.1e}",
        f"{1000 * result.triton_ms:.1f}",
        f"{1000 * result.gluon_ms:.1f}",
        f"{result.speedup:.3f}",
        f"{run.noise:.1%}",
        f"{gigabytes_a_second(run):.0f}",
        library(run),
        translator,
    )


def library(run: DeviceRun) -> str:
    """The fastest library's time over the port's, and which it is; else why there is none."""
    if not run.rivals:
        return next((f"{name}: {error}"[:40] for name, error in run.rival_errors.items()), "-")
    fastest = min(run.rivals, key=run.rivals.__getitem__)
    return f"{run.rivals[fastest] / run.result.gluon_ms:.2f} {fastest}"


def row(entry: Entry) -> str:
    """One line for the log."""
    return "  ".join(cells(entry))


def print_table(entries: Sequence[Entry]) -> None:
    """All lines in columns, then the geometric mean and the least of the ratios of equal kernels."""
    lines = [HEADINGS, *(cells(entry) for entry in entries)]
    full = [line for line in lines if len(line) == len(HEADINGS)]
    widths = [max(len(line[column]) for line in full) for column in range(len(HEADINGS) - 1)]
    print()
    for line in lines:
        padded = [text.ljust(width) for text, width in zip(line, widths, strict=False)]
        print("  ".join([*padded, *line[len(widths) :]]))
    runs = [entry.outcome.value for entry in entries if entry.outcome and entry.outcome.value]
    ratios = [run.result.speedup for run in runs if run.result.equal]
    if ratios:
        print(
            f"\n{len(ratios)} of {len(entries)} equal; Triton's time over Gluon's: geometric mean "
            f"{statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}"
        )


if __name__ == "__main__":
    sys.exit(main())
