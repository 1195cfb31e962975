"""`tt2gl doctor`: versions, targets and GPU, and what is missing."""

from __future__ import annotations

import argparse
import sys

from tt2gl.commands.common import Run, print_json
from tt2gl.diagnostics import ExitCode


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Tell what is installed."""
    with run.reporting():
        from tt2gl.doctor import diagnose
        from tt2gl.report.installation import installation_text

        found = diagnose()
        run.end_with(ExitCode.CLEAN if found.healthy else ExitCode.NO)
        if arguments.json:
            print_json({"version": 1, **found.to_json()})
            return
        facts = {"tt2gl": found.tt2gl, "python": found.python, **found.versions, "ptxas": found.ptxas, "GPU": found.gpu}
        missing = [f"{each.missing}, for {each.needed_for}. {each.remedy}" for each in found.advice]
        sys.stdout.write(installation_text(facts, found.targets, missing))
