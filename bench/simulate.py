"""Simulates every kernel of a launches file and its conversion, and prints a table of how they compare.

    python bench/simulate.py [--launches L.json --root DIR] [--target T]... [--only NAME]... [--json OUT]

Needs no GPU. Without --launches, the corpus. Each file is converted for each target, and every launch of every kernel
simulated on the same inputs as its original: `tt2gl verify --run simulate` for a whole corpus, without compiling to
machine code. 0 if all that was simulated is equal and free of faults.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.run import Case, cases_of_file  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser, size  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.isolate import map_isolated, preload  # noqa: E402
from tt2gl.report.document import document  # noqa: E402
from tt2gl.results import KernelReport  # noqa: E402
from tt2gl.targets import get_target  # noqa: E402
from tt2gl.verify.device import Participant  # noqa: E402
from tt2gl.verify.options import SimulationOptions  # noqa: E402
from tt2gl.verify.simulate import SimulationJob, SimulationRun, simulate_many  # noqa: E402
from tt2gl.verify.simulation_diagnostics import simulation_diagnostics  # noqa: E402

# What became of a launch, in the order of the columns. `rounding`: within the bounds, and the field agrees exactly;
# `in bounds`: the field was not asked, or could not say; `kept`: stays Triton, so there is nothing to compare.
VERDICTS = ("bitwise", "rounding", "in bounds", "not equal", "not simulated", "kept")


def main() -> int:
    """Convert, simulate, tell."""
    arguments = parse_arguments()
    start = time.perf_counter()
    preload()
    cases = [case for target in arguments.target or ["sm90"] for case in prepare(arguments, get_target(target).name)]
    print(f"{len(cases)} launches prepared in {time.perf_counter() - start:.0f} s", flush=True)
    ready = [case for case in cases if case.port is not None]
    jobs = [job(case) for case in ready]
    begun = time.perf_counter()
    runs = simulate_many(jobs, SimulationOptions(arguments.arithmetic, arguments.seeds, timeout=arguments.timeout))
    seconds = time.perf_counter() - begun
    reports = {id(case): told(case, run) for case, run in zip(ready, runs, strict=True)}
    verdicts = {id(case): verdict(run) for case, run in zip(ready, runs, strict=True)}
    print_details(ready, reports, verdicts)
    print_table(cases, reports, verdicts)
    print(f"simulated in {seconds:.0f} s")
    if arguments.json:
        made = document([reports.get(id(case), case.report) for case in cases], seconds=time.perf_counter() - start)
        write_text(arguments.json, json.dumps(made, indent=1, allow_nan=False) + "\n")
    good = all(
        report.simulate and report.simulate.equal and not report.simulate.own_faults for report in reports.values()
    )
    return 0 if good else 1


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--target", action="append", help="architecture; may be given again (default: sm90)")
    parser.add_argument("--most-bytes", type=float, default=2**28, help="leave out launches whose tensors take more")
    parser.add_argument("--seeds", type=int, default=2, help="how many random inputs to try")
    parser.add_argument("--arithmetic", choices=("auto", "ieee", "field"), default="auto")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a launch may take")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the document of `tt2gl verify --json`")
    return parser.parse_args()


# -------------------------------------------------------------------------------------------------------- the cases


def prepare(arguments: argparse.Namespace, target: str) -> list[Case]:
    """Every launch asked for, its kernel converted and sliced."""
    launches, root = all_launches(arguments)
    wanted = [launch for launch in launches if size(launch) <= arguments.most_bytes]
    # Whole files are converted, as all launches of a kernel have a say in it.
    files = sorted({launch.file for launch in wanted if selected(launch.kernel, launch.file, arguments.only)})
    jobs = [(file, target, tuple(launch for launch in wanted if launch.file == file), root, False) for file in files]
    cases: list[Case] = []
    for given, outcome in zip(jobs, map_isolated(cases_of_file, jobs, timeout=600.0), strict=True):
        if outcome.value is None:
            print(f"{given[0]} was not converted: {outcome.error}", file=sys.stderr)
        cases += outcome.value or []
    return [case for case in cases if selected(case.report.kernel, case.report.file, arguments.only)]


def job(case: Case) -> SimulationJob:
    """The simulation of a case that was converted."""
    assert case.original is not None
    assert case.port is not None
    pair = Participant(case.original, case.launch), Participant(case.port, case.launch)
    return SimulationJob(*pair, case.report.target)


# ------------------------------------------------------------------------------------------------------ the results


def told(case: Case, run: SimulationRun) -> KernelReport:
    """The case's report with what the simulator said."""
    found = simulation_diagnostics(run, case.report.file, case.report.kernel)
    return replace(case.report, simulate=run.result, diagnostics=(*case.report.diagnostics, *found))


def verdict(run: SimulationRun) -> str:
    """Which of `VERDICTS`."""
    if run.result is None:
        return "not simulated"
    if run.result.bitwise:
        return "bitwise"
    if not run.result.equal:
        return "not equal"
    return "rounding" if run.result.field else "in bounds"


def print_details(cases: Sequence[Case], reports: dict[int, KernelReport], verdicts: dict[int, str]) -> None:
    """What there is to say of each launch that is not simply equal."""
    for case in cases:
        report = reports[id(case)]
        for diagnostic in report.diagnostics:
            if diagnostic.code >= "TTG430" and diagnostic.code < "TTG500":
                launch = f"{report.target}, launch {report.launch}, {verdicts[id(case)]}"
                print(f"{diagnostic.file}:{diagnostic.line}: {diagnostic.code} {diagnostic.message} ({launch})")


def print_table(cases: Sequence[Case], reports: dict[int, KernelReport], verdicts: dict[int, str]) -> None:
    """Launches and kernels by what became of them, for each target; a kernel is as its worst launch is."""
    print("".join(f"{name:>15}" for name in ("", "all", *VERDICTS, "faults")))
    for target in dict.fromkeys(case.report.target for case in cases):
        here = [case for case in cases if case.report.target == target]
        worst: dict[tuple[str, str], str] = {}
        for name in VERDICTS:
            named = [case.report for case in here if verdicts.get(id(case), "kept") == name]
            worst |= {(report.file, report.kernel): name for report in named}
        faulty = [case.report for case in here if own_faults(reports.get(id(case)))]
        launches = Counter(verdicts.get(id(case), "kept") for case in here)
        kernels = Counter(worst.values())
        faulty_kernels = {(report.file, report.kernel) for report in faulty}
        for what, all_of, count, faults in (
            ("launches", len(here), launches, len(faulty)),
            ("kernels", len(worst), kernels, len(faulty_kernels)),
        ):
            numbers = (all_of, *(count[name] for name in VERDICTS), faults)
            print(f"{f'{target} {what}':>15}" + "".join(f"{number:>15}" for number in numbers))


def own_faults(report: KernelReport | None) -> bool:
    """Whether the port has faults that its original has not."""
    return report is not None and report.simulate is not None and bool(report.simulate.own_faults)


if __name__ == "__main__":
    sys.exit(main())
