"""`tt2gl verify`: a file's kernels beside their port."""

from __future__ import annotations

import argparse

from tt2gl.commands.common import Run, given_launches, known_target, project_config
from tt2gl.commands.running import add_run_options, simulation_options, verdict


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `verify` alone."""
    parser.add_argument("file", metavar="FILE", help="Python file with @triton.jit kernels")
    gluon_help = "its conversion (default: FILE is converted first, to a temporary file)"
    parser.add_argument("gluon_file", nargs="?", metavar="GLUON_FILE", help=gluon_help)
    target_help = "architecture; may be given again (default: the GPU present, else sm90)"
    parser.add_argument("--target", action="append", default=[], metavar="T", help=target_help)
    add_run_options(parser)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Compile, compare and, if asked to, run a file's kernels and their port."""
    with run.reporting(arguments.file):
        config = project_config()
        asked = arguments.target or ([config.target] if config.target else [])
        targets = [name for name in dict.fromkeys(asked) if known_target(name)]
        launches, root = given_launches(arguments, config)

        from tt2gl.report.progress import progress
        from tt2gl.verify.api import verify

        with progress(f"verifying {arguments.file}") as advance:
            reports = verify(
                arguments.file,
                arguments.gluon_file,
                targets=targets,
                launches=launches,
                root=root,
                run=arguments.run,
                simulation=simulation_options(arguments),
                timeout=arguments.timeout,
                on_progress=advance,
            )
        run.kernels.extend(reports)
        run.end_with(verdict(reports, arguments.run))
        if not arguments.json:
            from tt2gl.report.terminal import print_diagnostics, print_verification

            print_diagnostics(diagnostic for report in reports for diagnostic in report.diagnostics)
            print_verification(reports)
    if arguments.json:
        run.print_document()
