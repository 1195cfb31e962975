"""`tt2gl convert`: the Triton kernels of files as Gluon."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tt2gl.commands.common import Run, given_launches, known_target, names, project_config
from tt2gl.diagnostics import ExitCode

if TYPE_CHECKING:
    from tt2gl.results import Conversion


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `convert` alone."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="Python files with @triton.jit kernels")
    parser.add_argument("-o", "--out", metavar="OUT", help="output file or folder (default: FILE_gluon.py beside FILE)")
    parser.add_argument(
        "--target", metavar="T", help="architecture, such as sm90 (default: the GPU present, else sm90)"
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--diff", action="store_true", help="print the difference to stdout, write nothing")
    modes.add_argument("--check", action="store_true", help="write nothing, exit 1 if OUT is missing or out of date")
    ports_help = "as --check, but of the FILEs that have a port alone; a port stands for its original"
    modes.add_argument("--check-ports", action="store_true", help=ports_help)
    guard_help = "check at each launch what buffer operations assume of its tensors (AMD)"
    parser.add_argument("--buffer-guard", action="store_true", help=guard_help)
    rules = parser.add_mutually_exclusive_group()
    rules.add_argument("--only", type=names, default=(), metavar="RULES", help="optimising rules to apply: A,B,...")
    rules.add_argument("--no", type=names, default=(), metavar="RULES", help="optimising rules to leave out: A,B,...")


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Convert the files, one by one."""
    with run.reporting():
        from tt2gl.files import output_paths, refuse_unwritable

        config = project_config()
        pairs = _ported(arguments.files) if arguments.check_ports else None
        if pairs is None:
            pairs = list(zip(arguments.files, output_paths(arguments.files, arguments.out), strict=True))
        target = known_target(arguments.target or config.target)
        launches, root = given_launches(arguments, config)

        from tt2gl.convert import convert
        from tt2gl.report.progress import progress

        options: dict[str, Any] = {
            "target": target,
            "launches": launches,
            "root": root,
            "timeout": arguments.timeout,
            "buffer_guard": arguments.buffer_guard,
            "only": arguments.only,
            "without": arguments.no if arguments.only or arguments.no else config.no,
        }
        for file, output in pairs:
            with run.reporting(file):
                if not (arguments.diff or arguments.check or arguments.check_ports):
                    # A conversion may take minutes.
                    refuse_unwritable(output)
                with progress(f"converting {file}"):
                    conversion = convert(file, **options)
                _deliver(conversion, output, run)
    if arguments.json:
        run.print_document()


def _ported(files: Sequence[str]) -> list[tuple[str, Path]]:
    """The files that have a port, with it; for a port, its original."""
    from tt2gl.check.ports import with_ports
    from tt2gl.check.project import find_home

    home = find_home(Path.cwd(), project_config().folder)
    pairs = with_ports([Path(file) for file in files], home)
    return [(os.path.relpath(original), Path(os.path.relpath(port))) for original, port in pairs]


def _note(conversion: Conversion, output: Path) -> None:
    """Have the project's lock, where there is one, say what the output was made of."""
    from tt2gl.check.ports import note_port
    from tt2gl.check.project import find_home

    targets = {report.target for report in conversion.kernels if report.status == "converted"}
    home = find_home(Path.cwd(), project_config().folder)
    for target in targets:
        note_port(output, Path(conversion.path), target, home)


def _deliver(conversion: Conversion, output: Path, run: Run) -> None:
    """Write, compare or show one converted file, as the options say."""
    from tt2gl.files import read_if_there, write_text
    from tt2gl.report.diff import unified_diff
    from tt2gl.report.document import FileEntry

    arguments = run.arguments
    up_to_date = read_if_there(output) == conversion.text
    diff = unified_diff(conversion.original, conversion.text, conversion.path, str(output)) if arguments.diff else None
    checking = arguments.check or arguments.check_ports
    if checking:
        outcome = f"{output} is up to date" if up_to_date else f"{output} would change"
    elif arguments.diff:
        outcome = f"{output} not written"
    else:
        if not up_to_date:
            write_text(output, conversion.text)
        outcome = f"{output} is up to date" if up_to_date else f"wrote {output}"
        _note(conversion, output)
    run.kernels.extend(conversion.kernels)
    run.files.append(FileEntry(conversion.path, str(output), up_to_date, diff))
    if checking:
        run.end_with(ExitCode.CLEAN if up_to_date else ExitCode.NO)
    elif any(report.status != "converted" for report in conversion.kernels):
        run.end_with(ExitCode.UNKNOWN)
    if arguments.json:
        run.diagnostics.extend(conversion.diagnostics)
        return
    from tt2gl.report.terminal import print_conversion

    if diff:
        sys.stdout.write(diff)
        sys.stdout.flush()
    print_conversion(conversion, outcome)
