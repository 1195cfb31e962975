"""`tt2gl check`: the kernels of a project held against what its lock says of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.commands.common import Run, known_target, print_json, project_config

if TYPE_CHECKING:
    from tt2gl.check.api import Settings

FORMATS = ("text", "github", "sarif")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `check` alone."""
    files_help = "files or folders to check (default: all of the project with kernels)"
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path, help=files_help)
    update_help = "write tt2gl.lock: what kernels compile to now is what they should"
    parser.add_argument("--update", action="store_true", help=update_help)
    target_help = "architecture; may be given again (default: the project's, else those of the lock, else sm90)"
    parser.add_argument("--target", action="append", default=[], metavar="T", help=target_help)
    format_help = "text, annotations of GitHub, or a SARIF document (default: text)"
    parser.add_argument("--format", choices=FORMATS, default="text", help=format_help)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Compare with the lock, or write it."""
    from tt2gl.check.api import check
    from tt2gl.check.output import document, lines, told
    from tt2gl.report.progress import progress

    settings = _settings(arguments)
    with progress("checking") as advance:
        report = check(settings, arguments.files, update=arguments.update, on_progress=advance)
    run.end_with(report.exit_code)
    if arguments.json:
        print_json(document(report, time.monotonic() - run.started))
    elif arguments.format == "sarif":
        from tt2gl.report.sarif import sarif

        sys.stdout.write(json.dumps(sarif(told(report)), indent=2) + "\n")
    elif arguments.format == "github":
        from tt2gl.report.github import annotation

        sys.stdout.write("".join(f"{annotation(one)}\n" for one in told(report)))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines(report)))


def _settings(arguments: argparse.Namespace) -> Settings:
    from tt2gl.check.api import Settings, held_targets
    from tt2gl.check.compare import Tolerances
    from tt2gl.check.project import find_home

    config = project_config()
    home = find_home(Path.cwd(), config.folder)
    chosen = config.check
    asked = arguments.target or chosen.targets or ((config.target,) if config.target else ()) or held_targets(home)
    targets = tuple(dict.fromkeys(name for name in map(known_target, asked) if name is not None))
    launches, root = arguments.launches or config.launches, arguments.root
    if root is None and not arguments.launches:
        root = config.root
    return Settings(
        home=Path(os.path.abspath(home)),  # noqa: PTH100 - links stay what the user calls them
        patterns=chosen.files,
        targets=targets or ("sm90",),
        launches=launches,
        root=root,
        tolerances=Tolerances(chosen.registers, chosen.shared),
        timeout=arguments.timeout,
    )
