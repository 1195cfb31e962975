"""What the ports of the corpus lower worse than Triton's own compiler does, by kernel and metric. Needs no GPU.

    python bench/lowering.py [--target T]... [--only NAME]... [--launches L.json --root DIR] [--mca] [--out FILE]
                             [--figures FILE]

Each file is converted for each target, and every kernel is compiled twice under every launch, as `tt2gl verify` does.
The table has a line for each kernel and metric (the codes of docs/diagnostics.md): under how many of its launches the
port is worse, and what was said of the first. Of AMD it counts besides where a step of the loops waits for memory more
often (`waits`), and where there are fewer buffer operations, and more other accesses (`buffer`). `--mca` adds, for AMD,
what LLVM's machine-code analyser estimates a step of both kernels' loops to take; it needs `llvm-mca` (Debian's
`llvm-22`). `--out` keeps the document that `tt2gl verify --json` prints, `--figures` of it the numbers that are
compared, Triton's and the port's, or why Triton's own kernel does not compile (`triton_error`), which is found out of
kernels that were kept, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.overflow import environment  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser  # noqa: E402
from tt2gl.diagnostics import Diagnostic, Severity  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.launches import Launch  # noqa: E402
from tt2gl.report.document import document  # noqa: E402
from tt2gl.results import KernelReport  # noqa: E402
from tt2gl.slicing.slicer import slice_kernel  # noqa: E402
from tt2gl.source import read_source  # noqa: E402
from tt2gl.verify.api import verify  # noqa: E402
from tt2gl.verify.compile import CompileJob, compile_many  # noqa: E402

_FIGURES = (
    "registers", "spills", "shared_bytes", "step_loops", "step_waits", "step_mma", "mma", "buffered", "unbuffered",
    "global_loads", "global_stores", "barriers", "step_cycles",
)  # fmt: skip

# What is said of a launch under which Triton's own kernel does not compile: there is nothing to be worse than.
_TRITON_FAILS = "TTG401"


def main() -> int:
    """Compare; 0 where every kernel was converted, compiles and is worse in nothing, 1 where one is worse, else 2."""
    arguments = parse_arguments()
    start = time.perf_counter()
    launches, root = all_launches(arguments)
    chosen = [launch for launch in launches if selected(launch.kernel, launch.file, arguments.only)]
    reports: list[KernelReport] = []
    for target in arguments.target or ["sm90"]:
        for file in sorted({launch.file for launch in chosen}):
            of_file = [launch for launch in chosen if launch.file == file]
            names = {launch.kernel for launch in of_file}
            verified = verify(root / file, targets=[target], launches=of_file, root=root, estimate=arguments.mca)
            # A file may have kernels that were not asked for, whose launches are guessed.
            found = [report for report in verified if report.kernel in names]
            reports += with_reasons(found, of_file, root)
            print(f"{time.perf_counter() - start:6.0f} s  {target} {file}", file=sys.stderr, flush=True)
    for line in table(reports):
        print(line)
    if arguments.mca:
        for line in estimates(reports):
            print(line)
    made = document(reports, seconds=time.perf_counter() - start)
    if arguments.out is not None:
        write_text(arguments.out, json.dumps(made, indent=1, allow_nan=False).replace(f"{ROOT}/", "") + "\n")
    if arguments.figures is not None:
        write_text(arguments.figures, told(environment(), made))
    return verdict(reports)


def with_reasons(reports: Sequence[KernelReport], launches: Sequence[Launch], root: Path) -> Iterator[KernelReport]:
    """The reports of a file; those of kernels that were kept say so where Triton's own compiler fails on them."""
    for report in reports:
        if report.status == "kept" and not any(found.code == _TRITON_FAILS for found in report.diagnostics):
            launch = [each for each in launches if each.kernel == report.kernel][report.launch]
            original = slice_kernel(read_source(Path(report.file)), report.kernel, target=report.target, root=root)
            (result,) = compile_many([CompileJob(original, launch, report.target)])
            if not result.ok:
                why = f"Triton's own kernel does not compile: {result.error}"
                said = Diagnostic(_TRITON_FAILS, Severity.NOTE, report.file, 0, 0, why)
                report = replace(report, diagnostics=(*report.diagnostics, said))
        yield report


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--target", action="append", default=[], metavar="T", help="architecture (default: sm90)")
    parser.add_argument("--mca", action="store_true", help="estimate cycles of loops (AMD)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the document goes (default: nowhere)")
    parser.add_argument("--figures", type=Path, metavar="FILE", help="where the numbers go (default: nowhere)")
    return parser.parse_args()


def told(where: Mapping[str, str], made: Mapping[str, Any]) -> str:
    """The numbers of a document, a launch a line: pairs of Triton's and the port's."""
    lines = []
    for entry in made["kernels"]:
        line = {name: entry[name] for name in ("file", "kernel", "target", "launch", "status")}
        line["file"] = Path(line["file"]).name
        compiled = entry.get("compile", {})
        metrics = [(compiled.get(side) or {}).get("metrics") or {} for side in ("triton", "gluon")]
        if all(metrics):
            line |= {name: [side.get(name) for side in metrics] for name in _FIGURES}
        codes = sorted({found["code"] for found in entry["diagnostics"] if found["code"].startswith("TTG5")})
        errors = [found["message"] for found in entry["diagnostics"] if found["code"] == _TRITON_FAILS]
        lines.append(json.dumps({**line, "worse": codes, **({"triton_error": errors[0]} if errors else {})}))
    return f'{{"environment": {json.dumps(dict(where))},\n"kernels": [\n' + ",\n".join(lines) + "\n]}\n"


def verdict(reports: Sequence[KernelReport]) -> int:
    """What the program exits with."""
    if any(diagnostic.code.startswith("TTG5") for report in reports for diagnostic in report.diagnostics):
        return 1
    return 0 if all(report.status == "converted" for report in reports) else 2


def table(reports: Sequence[KernelReport]) -> list[str]:
    """A line for each kernel, target and code, most launches first; then how many launches came out no worse."""
    worse: defaultdict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    launches: defaultdict[tuple[str, str], int] = defaultdict(int)
    for report in reports:
        kernel = f"{Path(report.file).stem}:{report.kernel}"
        launches[report.target, kernel] += 1
        if report.status != "converted":
            told = [each for each in report.diagnostics if not each.code.startswith("TTG5")]
            told.sort(key=lambda each: each.severity is not Severity.ERROR)
            said = told[0].message if told else ""
            worse[report.target, report.status, kernel].setdefault(report.launch, said)
        for found in report.diagnostics:
            if found.code.startswith("TTG5"):
                place = f"line {found.line}: " if found.line else ""
                worse[report.target, found.code, kernel].setdefault(report.launch, place + found.message)
        for code, said in of_amd(report):
            worse[report.target, code, kernel].setdefault(report.launch, f"{said} (launch {report.launch})")
    lines = [
        f"{target:8} {code:9} {kernel:55} {len(under):3} of {launches[target, kernel]:<3} {next(iter(under.values()))}"
        for (target, code, kernel), under in sorted(worse.items(), key=lambda item: (item[0][:2], -len(item[1])))
    ]
    for target in dict.fromkeys(report.target for report in reports):
        of_target = [report for report in reports if report.target == target]
        good = sum(verdict([report]) == 0 and not any(of_amd(report)) for report in of_target)
        failing = sum(any(found.code == _TRITON_FAILS for found in report.diagnostics) for report in of_target)
        without = f"; under {failing} Triton's own kernel does not compile" if failing else ""
        lines.append(f"{target}: {good} of {len(of_target)} launches are no worse{without}")
    return lines


def of_amd(report: KernelReport) -> Iterator[tuple[str, str]]:
    """What is worse in AMD's machine code that `verify` does not warn of, as its codes are: a name and a sentence."""
    found = [result.metrics for result in (report.triton, report.gluon) if result and result.ok and result.metrics]
    if len(found) < 2:
        return
    triton, gluon = found
    if gluon.step_waits > triton.step_waits > 0 and gluon.step_loops == triton.step_loops:
        yield "waits", f"A step waits {gluon.step_waits} times where Triton's kernel waits {triton.step_waits} times."
    if gluon.buffered < triton.buffered and gluon.unbuffered > triton.unbuffered:
        yield (
            "buffer",
            f"{gluon.buffered} buffer operations and {gluon.unbuffered} other accesses where Triton's kernel has "
            f"{triton.buffered} and {triton.unbuffered}.",
        )


def estimates(reports: Sequence[KernelReport]) -> list[str]:
    """A line for each launch whose both kernels' loops llvm-mca has an estimate of; one line where there is none."""
    lines = []
    for report in reports:
        found = [result.metrics.step_cycles for result in (report.triton, report.gluon) if result and result.metrics]
        if len(found) == 2 and found[0] and found[1]:
            kernel = f"{Path(report.file).stem}:{report.kernel}"
            lines.append(
                f"{report.target:8} {kernel:55} launch {report.launch}: {found[0]:.0f} cycles a step estimated for "
                f"Triton, {found[1]:.0f} for the port ({found[0] / found[1]:.2f} times as fast)"
            )
    if not lines:
        return ["No estimate: no loops, or no llvm-mca on this machine that knows the chip."]
    return [*lines, "Estimates of llvm-mca for one wave, memory and barriers left out: nothing was measured."]


if __name__ == "__main__":
    sys.exit(main())
