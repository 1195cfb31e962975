"""`tt2gl verify`: a file's kernels beside their port."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tt2gl.commands.common import Run, count, given_launches, known_target, project_config, seconds, size
from tt2gl.diagnostics import ExitCode

if TYPE_CHECKING:
    from tt2gl.results import KernelReport


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `verify` alone."""
    parser.add_argument("file", metavar="FILE", help="Python file with @triton.jit kernels")
    gluon_help = "its conversion (default: FILE is converted first, to a temporary file)"
    parser.add_argument("gluon_file", nargs="?", metavar="GLUON_FILE", help=gluon_help)
    target_help = "architecture; may be given again (default: the GPU present, else sm90)"
    parser.add_argument("--target", action="append", default=[], metavar="T", help=target_help)
    run_help = "also run both: on the GPU present, or in the simulator (default: none)"
    parser.add_argument("--run", choices=("none", "simulate", "gpu"), default="none", help=run_help)
    simulation = parser.add_argument_group("simulation", "with --run simulate; see docs/simulation.md")
    arithmetic_help = "IEEE formats, a prime field, or the field where IEEE results are not bit-equal (default: auto)"
    choices = ("auto", "ieee", "field")
    simulation.add_argument("--arithmetic", choices=choices, default="auto", help=arithmetic_help)
    seeds_help = "how many random inputs to try (default: 2)"
    simulation.add_argument("--seeds", type=count, default=2, metavar="N", help=seeds_help)
    memory_help = "memory that all simulations together may take, such as 4GiB, the default"
    simulation.add_argument("--memory-limit", type=size, default=4 << 30, metavar="SIZE", help=memory_help)
    seconds_help = "seconds that a kernel may take the simulator under one launch (default: 300)"
    simulation.add_argument("--simulate-timeout", type=seconds, default=300.0, metavar="S", help=seconds_help)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Compile, compare and, if asked to, run a file's kernels and their port."""
    with run.reporting(arguments.file):
        config = project_config()
        asked = arguments.target or ([config.target] if config.target else [])
        targets = [name for name in dict.fromkeys(asked) if known_target(name)]
        launches, root = given_launches(arguments, config)

        from tt2gl.report.progress import progress
        from tt2gl.verify.api import verify
        from tt2gl.verify.options import SimulationOptions

        memory, limit = arguments.memory_limit, arguments.simulate_timeout
        with progress(f"verifying {arguments.file}") as advance:
            reports = verify(
                arguments.file,
                arguments.gluon_file,
                targets=targets,
                launches=launches,
                root=root,
                run=arguments.run,
                simulation=SimulationOptions(arguments.arithmetic, arguments.seeds, memory, limit),
                timeout=arguments.timeout,
                on_progress=advance,
            )
        run.kernels.extend(reports)
        run.end_with(_verdict(reports, arguments.run))
        if not arguments.json:
            from tt2gl.report.terminal import print_diagnostics, print_verification

            print_diagnostics(diagnostic for report in reports for diagnostic in report.diagnostics)
            print_verification(reports)
    if arguments.json:
        run.print_document()


def _verdict(reports: Sequence[KernelReport], run: str) -> ExitCode:
    """No where a run differed or a port has faults of its own; clean where all compiled and, if asked to, ran."""
    ran = [result for report in reports for result in (report.simulate, report.device) if result is not None]
    faulty = any(report.simulate.own_faults for report in reports if report.simulate is not None)
    if faulty or not all(result.equal for result in ran):
        return ExitCode.NO
    known = all(
        report.status == "converted"
        and (report.triton is not None and report.triton.ok)
        and (report.gluon is not None and report.gluon.ok)
        for report in reports
    )
    return ExitCode.CLEAN if known and (run == "none" or len(ran) == len(reports)) else ExitCode.UNKNOWN
