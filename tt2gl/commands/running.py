"""What `verify` and `port` share: how kernels are run besides being compiled, and what it all says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tt2gl.commands.common import count, seconds, size
from tt2gl.diagnostics import ExitCode

if TYPE_CHECKING:
    from tt2gl.results import KernelReport
    from tt2gl.verify.options import SimulationOptions


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Whether to run kernels, and how to simulate."""
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


def simulation_options(arguments: argparse.Namespace) -> SimulationOptions:
    """How to simulate, as the options say."""
    from tt2gl.verify.options import SimulationOptions

    memory, limit = arguments.memory_limit, arguments.simulate_timeout
    return SimulationOptions(arguments.arithmetic, arguments.seeds, memory, limit)


def verdict(reports: Sequence[KernelReport], run: str) -> ExitCode:
    """No where a run differed or a port has faults of its own; clean where all compiled and, if asked to, ran."""
    ran = [result for report in reports for result in (report.simulate, report.device) if result is not None]
    faulty = any(report.simulate.own_faults for report in reports if report.simulate is not None)
    if faulty or not all(result.equal for result in ran):
        return ExitCode.NO
    known = all(
        report.status == "converted"
        and (report.triton is None or report.triton.ok)
        and (report.gluon is not None and report.gluon.ok)
        for report in reports
    )
    return ExitCode.CLEAN if known and (run == "none" or len(ran) == len(reports)) else ExitCode.UNKNOWN
