"""`tt2gl record`: the launches of the user's own command."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.commands.common import Run, print_json, project_config, say
from tt2gl.diagnostics import ExitCode

if TYPE_CHECKING:
    from tt2gl.record.api import Recording


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `record` alone."""
    parser.usage = "tt2gl record -o L.json [--root DIR] [--target T] [--json] -- COMMAND..."
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="L.json", help="where the launches go")
    root_help = "folder that `file` in L.json is to be relative to (default: the working directory)"
    parser.add_argument("--root", type=Path, metavar="DIR", help=root_help)
    target_help = "architecture that the command is to find where there is no GPU (default: sm90)"
    parser.add_argument("--target", metavar="T", help=target_help)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Run the command, write its launches, tell how many; the exit code is the command's."""
    recording = None
    with run.reporting():
        from tt2gl.record.api import record

        config = project_config()
        recording = record(
            arguments.words,
            arguments.out,
            root=arguments.root or config.root,
            target=arguments.target or config.target,
            stdout=sys.stderr if arguments.json else None,
        )
    if recording is not None:
        run.end_with(recording.exit_code)
        run.end_with(ExitCode.CLEAN if recording.launches else ExitCode.UNKNOWN)
        run.diagnostics.extend(recording.diagnostics)
    if arguments.json:
        _print_document(recording, arguments.out, run)
    elif recording is not None:
        from tt2gl.report.terminal import print_diagnostics

        print_diagnostics(recording.diagnostics)
        if recording.launches:
            say(_summary(arguments.out, recording))


def _summary(out: Path, recording: Recording) -> str:
    kernels = {(launch.file, launch.kernel) for launch in recording.launches}
    files = {launch.file for launch in recording.launches}
    counts = (
        f"{_many(len(recording.launches), 'launch')} of {_many(len(kernels), 'kernel')} in {_many(len(files), 'file')}"
    )
    note = "; there is no GPU: kernels were skipped, what the command made of them is not real" * recording.skipped
    return f"{out}: {counts}{note}"


def _many(count: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{count} {what}{plural * (count != 1)}"


def _print_document(recording: Recording | None, out: Path, run: Run) -> None:
    from tt2gl.report.document import header

    launches = recording.launches if recording is not None else ()
    counts = Counter((launch.file, launch.kernel) for launch in launches)
    told = {} if recording is None else {"exit_code": recording.exit_code, "skipped": recording.skipped}
    print_json(
        {
            **header(),
            "seconds": round(time.monotonic() - run.started, 3),
            **told,
            "output": str(out) if launches else None,
            "kernels": [{"file": file, "kernel": name, "launches": n} for (file, name), n in counts.items()],
            **({"diagnostics": [each.to_json() for each in run.diagnostics]} if run.diagnostics else {}),
        }
    )
