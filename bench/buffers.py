"""How many of AMD's buffer operations ports have, beside Triton's own kernels.

    python bench/buffers.py [--launches L.json --root DIR] [--target T]... [--only NAME]... [--json OUT]

Needs no GPU. Each file is converted for each target, and each kernel compiled three times under the last of its
launches that the chip has room for: by Triton as for tensors of unknown size, by Triton as for those of the launch (it
marks tensors below 2 GiB `pointer_range`), and its port. The table counts, in the machine code, buffer operations and
other accesses of global memory, and says how many vector registers there are; what `--json` writes says besides why
accesses stay plain (TTG340). 0 if no port has fewer buffer operations and more other accesses than what Triton made for
tensors of the launch.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.overflow import environment  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser  # noqa: E402
from tt2gl.convert import convert  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.isolate import preload, run_isolated  # noqa: E402
from tt2gl.launches import Launch, launches_for  # noqa: E402
from tt2gl.results import CompileResult  # noqa: E402
from tt2gl.slicing.slicer import slice_kernel  # noqa: E402
from tt2gl.source import read_source  # noqa: E402
from tt2gl.verify.compile import CompileJob, compile_many  # noqa: E402

BY = ("triton", "pointer_range", "port")
"""Who made a kernel: Triton for tensors of any size, Triton for those of the launch, tt2gl."""


@dataclass(frozen=True)
class Case:
    """A kernel and what to compile of it under each launch, the last one first, in the order of `BY`.

    Nothing where it is `kept` as it is, and why. `plain`: which accesses are by no buffer operation, and why.
    """

    file: str
    kernel: str
    target: str
    jobs: tuple[tuple[CompileJob, ...], ...] = ()
    kept: str = ""
    plain: tuple[str, ...] = ()


def main() -> int:
    """Convert, compile, count."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--target", action="append", help="architecture; may be given again (default: gfx942)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write what was counted, anew after each file")
    arguments = parser.parse_args()
    launches, root = all_launches(arguments)
    chosen = [each for each in launches if selected(each.kernel, each.file, arguments.only)]
    start = time.perf_counter()
    preload()
    where = environment()
    entries: list[dict[str, Any]] = []
    print(f"{'buffer operations/other accesses/vector registers':75} {' '.join(f'{by:>14}' for by in BY)}")
    for target in arguments.target or ["gfx942"]:
        for file in sorted({launch.file for launch in chosen}):
            made = run_isolated(prepared, file, target, tuple(launches), root, timeout=1800.0)
            if made.value is None:
                print(f"{file} was not converted for {target}: {made.error}", file=sys.stderr)
            cases = [case for case in made.value or [] if selected(case.kernel, case.file, arguments.only)]
            for case, results in zip(cases, counted(cases), strict=True):
                entries.append(entry(case, results))
                print(line(entries[-1]), flush=True)
            if arguments.json:
                text = json.dumps({"environment": where, "kernels": entries}, indent=1)
                write_text(arguments.json, text + "\n")
    for target in arguments.target or ["gfx942"]:
        print(total([each for each in entries if each["target"] == target], target))
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if any(fewer(each) for each in entries) else 0


def prepared(file: str, target: str, launches: tuple[Launch, ...], root: Path) -> list[Case]:
    """A file's kernels, each under its last launch."""
    path = root / file
    own = tuple(launch for launch in launches if launch.file == file)
    made = convert(path, target=target, launches=own, root=root, compile=False)
    source, port = read_source(path), read_source(path.with_name(f"{path.stem}_gluon.py"), made.text)
    cases = []
    for name in dict.fromkeys(launch.kernel for launch in own):
        reports = [report for report in made.kernels if report.kernel == name]
        if any(report.status != "converted" for report in reports):
            told = [each.message for report in reports for each in report.diagnostics if each.severity != "note"]
            cases.append(Case(file, name, target, kept=told[0] if told else "it is not converted"))
            continue
        kernel, gluon = (slice_kernel(each, name, target=target, root=root) for each in (source, port))
        jobs = [
            ((kernel, replace(launch, args=None)), (kernel, launch), (gluon, launch))
            for launch in reversed(launches_for(own, path, name, root))
        ]
        under = tuple(tuple(CompileJob(*job, target, texts=()) for job in each) for each in jobs)
        plain = {
            f"line {each.line}: {each.message}": None
            for report in reports
            for each in report.diagnostics
            if each.code == "TTG340"
        }
        cases.append(Case(file, name, target, under, plain=tuple(plain)))
    return cases


def counted(cases: Sequence[Case]) -> list[list[CompileResult]]:
    """What came of each kernel's jobs: under its last launch, or the last one before that all three compile under."""
    made: list[list[CompileResult]] = [[] for _ in cases]
    for turn in range(max((len(case.jobs) for case in cases), default=0)):
        wanted = [at for at, case in enumerate(cases) if turn < len(case.jobs) and not fine(made[at])]
        results = iter(compile_many([job for at in wanted for job in cases[at].jobs[turn]], timeout=300.0))
        for at in wanted:
            found = list(islice(results, len(BY)))
            made[at] = found if turn == 0 or fine(found) else made[at]
    return made


def fine(results: Sequence[CompileResult]) -> bool:
    """Whether all three kernels were compiled."""
    return bool(results) and all(result.ok for result in results)


def entry(case: Case, results: Sequence[CompileResult]) -> dict[str, Any]:
    """What was counted of a kernel."""
    made: dict[str, Any] = {"file": case.file, "kernel": case.kernel, "target": case.target}
    if case.kept:
        return {**made, "kept": case.kept}
    for by, result in zip(BY, results, strict=True):
        counted = result.metrics if result.ok else None
        made[by] = {
            "buffer": counted.buffered, "other": counted.unbuffered,
            "registers": counted.registers, "spills": counted.spills,
        } if counted else {"error": result.error}  # fmt: skip
    return {**made, "plain": case.plain}


def compiled(found: dict[str, Any]) -> bool:
    """Whether all three kernels were compiled."""
    return "kept" not in found and all("buffer" in found[by] for by in BY)


def fewer(found: dict[str, Any]) -> bool:
    """Whether a port has buffer operations where Triton's kernel has them, and not as many."""
    if not compiled(found):
        return False
    own, triton = found["port"], found["pointer_range"]
    return bool(own["buffer"] < triton["buffer"] and own["other"] > triton["other"])


def line(found: dict[str, Any]) -> str:
    """A kernel's line of the table."""
    what = f"{found['target']} {Path(found['file']).stem}:{found['kernel']}"
    if "kept" in found:
        return f"{what} stays Triton: {found['kept']}"
    if not compiled(found):
        return f"{what} is not compiled: {next(found[by]['error'] for by in BY if 'error' in found[by])}"
    counts = (f"{each['buffer']}/{each['other']}/{each['registers']}" for each in (found[by] for by in BY))
    return f"{what:75} {' '.join(f'{each:>14}' for each in counts)}{'  fewer' if fewer(found) else ''}"


def total(entries: Sequence[dict[str, Any]], target: str) -> str:
    """What all kernels of a target have together."""
    counted = [each for each in entries if compiled(each)]
    sums = (
        "/".join(str(sum(each[by][what] or 0 for each in counted)) for what in ("buffer", "other", "registers"))
        for by in BY
    )
    return f"{f'{target}: {len(counted)} kernels of {len(entries)}':75} {' '.join(f'{each:>14}' for each in sums)}"


if __name__ == "__main__":
    sys.exit(main())
