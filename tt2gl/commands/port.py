"""`tt2gl port`: a folder of kernels, for one target or several."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.commands.common import Run, count, given_launches, known_target, names, project_config, say
from tt2gl.commands.running import add_run_options, simulation_options, verdict
from tt2gl.diagnostics import ExitCode, Severity

if TYPE_CHECKING:
    from tt2gl.config import Config
    from tt2gl.port.api import Port
    from tt2gl.port.jobs import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `port` alone."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="folder with Python files, as a package has them")
    out_help = "folder for the port, empty or an earlier port's; with several targets OUT/TARGET for each"
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="OUT", help=out_help)
    target_help = "architecture; may be given again (default: the GPU present, else sm90)"
    parser.add_argument("--target", action="append", default=[], metavar="T", help=target_help)
    jobs_help = "how many files to work on at a time (default: as many as there are cores)"
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=count, metavar="N", help=jobs_help)
    scheduler_help = "work on the cluster of this Dask scheduler (tcp://HOST:8786); needs tt2gl[dask]"
    where.add_argument("--scheduler", metavar="ADDRESS", help=scheduler_help)
    resume_help = "go on with a port that was interrupted: what its journal has is not done again"
    parser.add_argument("--resume", action="store_true", help=resume_help)
    report_help = "also write report.html, report.md and report.json into this folder"
    parser.add_argument("--report", type=Path, metavar="DIR", help=report_help)
    rules = parser.add_mutually_exclusive_group()
    rules.add_argument("--only", type=names, default=(), metavar="RULES", help="optimising rules to apply: A,B,...")
    rules.add_argument("--no", type=names, default=(), metavar="RULES", help="optimising rules to leave out: A,B,...")
    add_run_options(parser)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Port the folder, tell what became of it."""
    with run.reporting(str(arguments.directory)):
        config = project_config()
        asked = arguments.target or ([config.target] if config.target else [])
        targets = [name for name in dict.fromkeys(asked) if known_target(name)]
        settings = _settings(arguments, config)

        from tt2gl.port.api import port
        from tt2gl.report.progress import progress

        seen = {"done": 0, "total": 0}
        try:
            with progress(f"porting {arguments.directory}") as advance:

                def on_progress(step: str, done: int, total: int) -> None:
                    seen.update(done=done, total=total)
                    advance(done, total, step)

                ported = port(
                    arguments.directory,
                    arguments.out,
                    targets=targets,
                    settings=settings,
                    jobs=arguments.jobs,
                    resume=arguments.resume,
                    scheduler=arguments.scheduler,
                    layouts=arguments.report is not None,
                    on_progress=on_progress,
                )
        except KeyboardInterrupt:
            say(f"{arguments.out}: {seen['done']} of {seen['total']} files are done; go on with --resume")
            raise
        _note(ported, config)
        _tell(ported, arguments, run)
        if arguments.report is not None:
            _report(ported, arguments)
    if arguments.json:
        run.print_document()


def _settings(arguments: argparse.Namespace, config: Config) -> Settings:
    from tt2gl.port.jobs import Settings

    launches, root = given_launches(arguments, config)
    return Settings(
        launches=tuple(launches) if launches is not None else None,
        root=root,
        timeout=arguments.timeout,
        only=tuple(arguments.only),
        without=tuple(arguments.no if arguments.only or arguments.no else sorted(config.no)),
        run=arguments.run,
        simulation=simulation_options(arguments),
    )


def _note(ported: Port, config: Config) -> None:
    """Have the project's lock, where there is one, say what the ports were made of."""
    from tt2gl.check.ports import note_port
    from tt2gl.check.project import find_home

    home = find_home(Path.cwd(), config.folder)
    for file in ported.files:
        if any(report.status == "converted" for report in file.kernels):
            note_port(Path(file.output), Path(file.path), file.target, home)


def _tell(ported: Port, arguments: argparse.Namespace, run: Run) -> None:
    from tt2gl.report.document import FileEntry

    for file in ported.files:
        run.kernels.extend(file.kernels)
        run.files.append(FileEntry(file.path, file.output, file.up_to_date))
        ported_kernels = [report for report in file.kernels if report.status != "kept"]
        run.end_with(verdict(ported_kernels, arguments.run) if ported_kernels else ExitCode.CLEAN)
        errors = any(each.severity == Severity.ERROR for each in file.diagnostics)
        if errors or any(report.status != "converted" for report in file.kernels):
            run.end_with(ExitCode.UNKNOWN)
    run.diagnostics.extend(each for file in ported.files for each in file.diagnostics)
    if arguments.json:
        return
    from tt2gl.report.terminal import print_diagnostics, tally

    for file in ported.files:
        print_diagnostics([*file.diagnostics, *(each for report in file.kernels for each in report.diagnostics)])
        if file.kernels:
            say(f"{file.path}: {tally(file.kernels)}")
    say(_summary(ported, arguments.out))


def _report(ported: Port, arguments: argparse.Namespace) -> None:
    from tt2gl.files import read_if_there
    from tt2gl.report.page.contents import FileSides
    from tt2gl.report.page.write import write_report

    sides = [
        FileSides(
            file.path,
            file.output,
            file.target,
            read_if_there(Path(file.path)) or "",
            read_if_there(Path(file.output)) or "",
            file.kernels,
            file.diagnostics,
            file.layouts,
        )
        for file in ported.files
    ]
    write_report(arguments.report, f"Port of {arguments.directory}", sides)
    say(f"wrote {arguments.report / 'report.html'}, report.md and report.json")


def _summary(ported: Port, out: Path) -> str:
    statuses: Counter[tuple[str, str]] = Counter()
    for file in ported.files:
        worst: dict[str, str] = {}
        for report in sorted(file.kernels, key=lambda each: ("converted", "kept", "failed").index(each.status)):
            worst[report.kernel] = report.status
        statuses.update((file.target, status) for status in worst.values())
    parts = [_of_target(target, statuses) for target in dict.fromkeys(file.target for file in ported.files)]
    results = [report.simulate or report.device for file in ported.files for report in file.kernels]
    ran = [result.equal for result in results if result is not None]
    if ran:
        parts.append(f"{sum(ran)} launch{'es' * (sum(ran) != 1)} equal, {len(ran) - sum(ran)} not")
    copied = f"{ported.copied} file{'s' * (ported.copied != 1)} copied"
    return "; ".join([f"wrote {out}", *parts, copied])


def _of_target(target: str, statuses: Counter[tuple[str, str]]) -> str:
    words = {"converted": "converted", "kept": "kept as Triton", "failed": "failed"}
    counts: Sequence[str] = [
        f"{statuses[target, name]} {word}" for name, word in words.items() if statuses[target, name]
    ]
    return f"{target}: {', '.join(counts) or 'no kernel'}"
