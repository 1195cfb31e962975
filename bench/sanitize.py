"""Runs every port under sanitizers on the GPU of this machine, and prints what they report.

    python bench/sanitize.py --out DIR [--only NAME]... [--launches L.json --root DIR] [--tool T]... [--jobs N]

Each launch whose tensors are small runs once for each tool, in a process of its own with a time limit. Tools:

- `consan`, Triton's concurrency sanitizer: compiled with TRITON_INSTRUMENTATION_MODE=consan, every access to shared and
  tensor memory is checked against the copies, products and barriers under way. What it reports is an assertion of the
  device, so a launch that is reported fails.
- `memcheck`, `racecheck`, `synccheck`: NVIDIA's compute-sanitizer, which instruments the machine code as it is.

With --original, Triton's kernel runs so as well: what both report is the compiler's or the sanitizer's own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.machine import gpu_present  # noqa: E402
from bench.run import Case, cases_of_file  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser, size  # noqa: E402
from tt2gl.children import Outcome  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.isolate import map_isolated, preload  # noqa: E402
from tt2gl.launches import Launch  # noqa: E402
from tt2gl.slicing.slices import Slice  # noqa: E402
from tt2gl.spawned import run_spawned  # noqa: E402
from tt2gl.targets import default_target  # noqa: E402
from tt2gl.verify.device import Participant, run_each  # noqa: E402
from tt2gl.verify.inputs import make_inputs, unknown_inputs  # noqa: E402

CONSAN = "consan"
COMPUTE_SANITIZER = ("memcheck", "racecheck", "synccheck")

# Read by Triton when it is imported, and by CUDA when it starts, so that a failure is the launch's that caused it.
INSTRUMENTED = "TRITON_INSTRUMENTATION_MODE"
BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}

# compute-sanitizer's log: what is wrong, and in which lines.
_COMPLAINT = re.compile(
    r"^=+ +(?:Error: |Warning: )?(?P<what>(?:Invalid|Race|Potential|Barrier|Divergent|Misaligned)[^\n\[]*)",
    re.MULTILINE,
)
# As a device prints a failed assertion: block and thread, which differ from run to run, then the message.
_ASSERTION = re.compile(r"Assertion `(?P<message>.*?)` failed", re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """One kernel under one launch: `verdict` is one of `VERDICTS`; `told` is what the sanitizer or the failure said."""

    file: str
    kernel: str
    launch: int
    whose: str
    tool: str
    verdict: str
    told: tuple[str, ...] = ()
    seconds: float = 0.0


# `reported`: by the sanitizer; `failed`: it did not run, which says nothing of what the sanitizer would have found.
VERDICTS = ("clean", "reported", "timeout", "failed")


def main() -> int:
    """Convert, run, tell; 0 if every port that was converted ran clean."""
    arguments = parse_arguments()
    start = time.perf_counter()
    arguments.out.mkdir(parents=True, exist_ok=True)
    where = gpu_present(arguments.commit)
    if where is None:
        return 2
    tools = arguments.tool or [CONSAN]
    if tools != [CONSAN]:
        compute_sanitizer()
    preload()
    target = arguments.target or default_target().name
    cases = prepare(arguments, target)
    print(f"{len(cases)} launches prepared in {time.perf_counter() - start:.0f} s", flush=True)
    os.environ.update(BLOCKING)
    participants = ("port", "original") if arguments.original else ("port",)
    findings: list[Finding] = []
    for tool in tools:
        # Read by Triton in the processes that are started.
        os.environ[INSTRUMENTED] = CONSAN if tool == CONSAN else ""
        work = [(case, whose, tool) for case in cases for whose in participants]
        with ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
            for finding in pool.map(partial(sanitized, timeout=arguments.timeout), work):
                findings.append(finding)
                print(f"[{len(findings)}/{len(work) * len(tools)}] {line(finding)}", flush=True)
                write(arguments.out / f"{target}-sanitizer.json", findings, where)
    print_summary(findings)
    return 0 if all(finding.verdict == "clean" for finding in findings if finding.whose == "port") else 1


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="folder for the document")
    parser.add_argument("--target", help="architecture to convert for (default: the GPU present)")
    parser.add_argument("--commit", help="what to call this version (default: asked of git)")
    parser.add_argument("--most-bytes", type=float, default=2**24, help="leave out launches whose tensors take more")
    parser.add_argument("--tool", action="append", choices=(CONSAN, *COMPUTE_SANITIZER), help="default: consan")
    parser.add_argument("--original", action="store_true", help="run Triton's kernels so, too")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a launch may take")
    parser.add_argument("--jobs", type=int, default=4, help="launches at a time; nothing is timed")
    return parser.parse_args()


def prepare(arguments: argparse.Namespace, target: str) -> list[Case]:
    """Every small launch asked for whose kernel was converted."""
    launches, root = all_launches(arguments)
    # Whole files are converted, as all launches of a kernel have a say in it.
    files = sorted({launch.file for launch in launches if selected(launch.kernel, launch.file, arguments.only)})
    jobs = [(file, target, tuple(launch for launch in launches if launch.file == file), root, False) for file in files]
    cases: list[Case] = []
    for job, outcome in zip(jobs, map_isolated(cases_of_file, jobs, timeout=600.0), strict=True):
        if outcome.value is None:
            print(f"{job[0]} was not converted: {outcome.error}", file=sys.stderr)
        cases += outcome.value or []
    return [case for case in cases if runs(case, arguments)]


def runs(case: Case, arguments: argparse.Namespace) -> bool:
    """Whether a case is asked for, converted, small, and known well enough to be run."""
    asked = selected(case.report.kernel, case.report.file, arguments.only) and case.port is not None
    return asked and size(case.launch) <= arguments.most_bytes and not unknown_inputs(case.launch)


# ---------------------------------------------------------------------------------------------------- on the GPU


def sanitized(work: tuple[Case, str, str], timeout: float) -> Finding:
    """One launch of the port, or of the original, in a process that the sanitizer may end."""
    case, whose, tool = work
    kernel = case.port if whose == "port" else case.original
    assert kernel is not None
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        under = () if tool == CONSAN else (compute_sanitizer(), "--tool", tool, "--log-file", str(log))
        outcome = run_spawned(run_sanitized, kernel, case.launch, tool == CONSAN, timeout=timeout, under=under)
        told = complaints(log.read_text("utf-8", "replace")) if log.exists() else ()
    verdict, said = ("reported", told) if told else judge(outcome)
    report = case.report
    return Finding(report.file, report.kernel, report.launch, whose, tool, verdict, said, time.perf_counter() - start)


def compute_sanitizer() -> str:
    """Where NVIDIA's sanitizer is."""
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if found is None:
        raise SystemExit("compute-sanitizer is not on the path; it comes with the CUDA toolkit")
    return found


def complaints(log: str) -> tuple[str, ...]:
    """Each different thing that compute-sanitizer's log says of a kernel, addresses and threads left out."""
    return tuple(dict.fromkeys(match["what"].strip() for match in _COMPLAINT.finditer(log)))


def run_sanitized(kernel: Slice, launch: Launch, instrumented: bool) -> bool:
    """Run a kernel once in this process, which must be expendable. Raises where Triton should instrument and cannot."""
    import torch
    import triton
    from triton.runtime import _allocation

    if instrumented and getattr(triton.knobs.compilation, "instrumentation_mode", "") != CONSAN:
        raise RuntimeError("this Triton has no concurrency sanitizer")

    def allocate(size: int, _alignment: int, _stream: int | None) -> Any:
        return torch.empty(size, device="cuda", dtype=torch.int8)

    # What the sanitizer notes lies in memory of profilers, or of kernels (which `run_each` provides), by version.
    if hasattr(_allocation, "set_profile_allocator"):
        _allocation.set_profile_allocator(allocate)
    run_each([(Participant(kernel, launch), make_inputs(launch, 0))])
    return True


def judge(outcome: Outcome[bool]) -> tuple[str, tuple[str, ...]]:
    """The verdict, and each different thing that was said."""
    printed = f"{outcome.error}\n{outcome.detail}"
    told = tuple(dict.fromkeys(" ".join(match["message"].split()) for match in _ASSERTION.finditer(printed)))
    if told:
        return "reported", told
    if outcome.kind == "timeout":
        return "timeout", (outcome.error,)
    return ("clean", ()) if outcome.ok else ("failed", (outcome.error,))


# ----------------------------------------------------------------------------------------------------- the results


def line(finding: Finding) -> str:
    """One line for the log."""
    name = f"{Path(finding.file).stem}:{finding.kernel}, launch {finding.launch}, {finding.whose}, {finding.tool}"
    said = f": {'; '.join(finding.told)}" if finding.told else ""
    return f"{name}  {finding.verdict}{said}  ({finding.seconds:.0f} s)"


def write(path: Path, findings: Sequence[Finding], where: dict[str, str]) -> None:
    """The document so far, whole or not at all."""
    made = {
        "environment": where,
        "summary": dict(Counter(finding.verdict for finding in findings)),
        "launches": [asdict(finding) for finding in findings],
    }
    # Results are committed, and nobody's folders belong there.
    write_text(path, (json.dumps(made, indent=1, allow_nan=False) + "\n").replace(f"{ROOT}/", ""))


def print_summary(findings: Sequence[Finding]) -> None:
    """What was not clean, once more, and how many were what."""
    print()
    for finding in findings:
        if finding.verdict != "clean":
            print(line(finding))
    for whose, tool in dict.fromkeys((finding.whose, finding.tool) for finding in findings):
        count = Counter(finding.verdict for finding in findings if (finding.whose, finding.tool) == (whose, tool))
        print(f"{whose}s, {tool}: " + ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS))


if __name__ == "__main__":
    # As a module of its own name: the processes that run kernels find functions by it.
    sys.exit(importlib.import_module("sanitize").main())
