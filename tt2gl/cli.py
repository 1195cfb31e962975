"""The command line: commands, their options and exit codes; no logic.

Whatever costs time to import (Triton, LibCST, rich) is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tt2gl import __version__
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity

if TYPE_CHECKING:
    from tt2gl.config import Config
    from tt2gl.launches import Launch
    from tt2gl.report.document import FileEntry
    from tt2gl.results import Conversion, JsonDocument, KernelReport

# What tt2gl is installed with; `doctor` alone does without them.
_REQUIRED = ("triton", "libcst", "rich", "numpy", "ml_dtypes", "greenlet")

_EPILOG = """\
exit codes:
  0    done and clean
  1    the answer is no: --check found an output missing or out of date, two kernels are not equal, a port has
       a fault, or doctor misses what a conversion needs
  2    could not tell: a kernel could not be converted, compiled, simulated or run
  64   wrong usage     65   bad source     66   no such file     73   cannot write
  70   internal error  130  interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but a bug seen under --debug leaves as a traceback."""
    with contextlib.suppress(ValueError):  # called from a thread: the signal is its owner's
        signal.signal(signal.SIGTERM, _terminate)
    try:
        arguments = _parser().parse_args(argv)
        return int(_run(arguments))
    except KeyboardInterrupt:
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout went away, as `head` does; the interpreter must not try to flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(arguments: argparse.Namespace) -> int:
    run = _Run(arguments)
    with run.reporting():
        arguments.command(arguments, run)
    sys.stdout.flush()
    return run.exit_code


@dataclass
class _Run:
    """What one command gathers while it goes through its files."""

    arguments: argparse.Namespace
    exit_code: int = ExitCode.CLEAN
    started: float = field(default_factory=time.monotonic)
    kernels: list[KernelReport] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: list[FileEntry] = field(default_factory=list)

    def end_with(self, code: int) -> None:
        """Exit with the worst code seen; a definite no outweighs a could-not-tell."""
        rank: list[int] = [ExitCode.CLEAN, ExitCode.UNKNOWN, ExitCode.NO]
        self.exit_code = max(self.exit_code, code, key=lambda each: rank.index(each) if each in rank else each)

    @contextlib.contextmanager
    def reporting(self, file: str = "tt2gl") -> Iterator[None]:
        """Tell what ends the work on `file`, and go on after it."""
        try:
            yield
        except DiagnosticError as error:
            diagnostic = error.diagnostic
            self._tell(replace(diagnostic, file=diagnostic.file or file), error.exit_code, error)
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in _REQUIRED:
                self._tell(_internal(file, error), os.EX_SOFTWARE, error)
                return
            message = f"The Python package {package} is missing, or too old: there is no {error.name}."
            hint = "See `tt2gl doctor` for what to install."
            self._tell(Diagnostic("TTG012", Severity.ERROR, file, 0, 0, message, hint), ExitCode.UNKNOWN, error)
        except Exception as error:  # noqa: BLE001 - the one place where a bug turns into a message
            self._tell(_internal(file, error), os.EX_SOFTWARE, error)

    def _tell(self, diagnostic: Diagnostic, code: int, error: Exception) -> None:
        if self.arguments.debug:
            _say("".join(traceback.format_exception(error)).rstrip())
        _say(str(diagnostic))
        self.diagnostics.append(diagnostic)
        self.end_with(code)

    def print_document(self) -> None:
        """The JSON document of all that was gathered, on stdout."""
        from tt2gl.report.document import document

        seconds = time.monotonic() - self.started
        _print_json(document(self.kernels, seconds=seconds, diagnostics=self.diagnostics, files=self.files))


def _internal(file: str, error: Exception) -> Diagnostic:
    message = f"Internal error: {type(error).__name__}: {' '.join(str(error).split())}."
    hint = "This is a bug in tt2gl: please report it, with the output of --debug."
    return Diagnostic("TTG900", Severity.ERROR, file, 0, 0, message, hint)


def _convert(arguments: argparse.Namespace, run: _Run) -> None:
    with run.reporting():
        from tt2gl.files import output_paths

        config = _config()
        outputs = output_paths(arguments.files, arguments.out)
        target = _known(arguments.target or config.target)
        launches, root = _launches(arguments, config)

        from tt2gl.convert import convert
        from tt2gl.report.progress import progress

        options: dict[str, Any] = {
            "target": target,
            "launches": launches,
            "root": root,
            "timeout": arguments.timeout,
            "only": arguments.only,
            "without": arguments.no if arguments.only or arguments.no else config.no,
        }
        for file, output in zip(arguments.files, outputs, strict=True):
            with run.reporting(file):
                with progress(f"converting {file}"):
                    conversion = convert(file, **options)
                _deliver(conversion, output, run)
    if arguments.json:
        run.print_document()


def _deliver(conversion: Conversion, output: Path, run: _Run) -> None:
    """Write, compare or show one converted file, as the options say."""
    from tt2gl.files import read_if_there, write_text
    from tt2gl.report.diff import unified_diff
    from tt2gl.report.document import FileEntry

    arguments = run.arguments
    up_to_date = read_if_there(output) == conversion.text
    diff = unified_diff(conversion.original, conversion.text, conversion.path, str(output)) if arguments.diff else None
    if arguments.check:
        outcome = f"{output} is up to date" if up_to_date else f"{output} would change"
    elif arguments.diff:
        outcome = f"{output} not written"
    else:
        if not up_to_date:
            write_text(output, conversion.text)
        outcome = f"{output} is up to date" if up_to_date else f"wrote {output}"
    run.kernels.extend(conversion.kernels)
    run.files.append(FileEntry(conversion.path, str(output), up_to_date, diff))
    if arguments.check:
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


def _verify(arguments: argparse.Namespace, run: _Run) -> None:
    with run.reporting(arguments.file):
        config = _config()
        names = arguments.target or ([config.target] if config.target else [])
        targets = [name for name in dict.fromkeys(names) if _known(name)]
        launches, root = _launches(arguments, config)

        from tt2gl.report.progress import progress
        from tt2gl.verify.api import verify
        from tt2gl.verify.options import SimulationOptions

        memory, seconds = arguments.memory_limit, arguments.simulate_timeout
        with progress(f"verifying {arguments.file}") as advance:
            reports = verify(
                arguments.file,
                arguments.gluon_file,
                targets=targets,
                launches=launches,
                root=root,
                run=arguments.run,
                simulation=SimulationOptions(arguments.arithmetic, arguments.seeds, memory, seconds),
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


def _config() -> Config:
    from tt2gl.config import read_config

    return read_config(Path.cwd())


def _doctor(arguments: argparse.Namespace, run: _Run) -> None:
    with run.reporting():
        from tt2gl.doctor import diagnose
        from tt2gl.report.installation import installation_text

        found = diagnose()
        run.end_with(ExitCode.CLEAN if found.healthy else ExitCode.NO)
        if arguments.json:
            _print_json({"version": 1, **found.to_json()})
            return
        facts = {"tt2gl": found.tt2gl, "python": found.python, **found.versions, "ptxas": found.ptxas, "GPU": found.gpu}
        missing = [f"{each.missing}, for {each.needed_for}. {each.remedy}" for each in found.advice]
        sys.stdout.write(installation_text(facts, found.targets, missing))


def _known(target: str | None) -> str | None:
    """`target`, once it is known to exist: told once, not for every file."""
    from tt2gl.targets import get_target

    return get_target(target).name if target is not None else None


def _launches(arguments: argparse.Namespace, config: Config) -> tuple[Sequence[Launch] | None, Path | None]:
    """The launches named on the command line, else the project's, else None: to be found in the file."""
    path = arguments.launches or config.launches
    root = arguments.root or (None if arguments.launches else config.root)
    if path is None:
        return None, root
    from tt2gl.launch_file import read_launches

    return read_launches(path), root


def _print_json(value: JsonDocument) -> None:
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """End as on Ctrl-C, so that children and temporary files go too."""
    raise SystemExit(128 + signal.SIGTERM)


class _Parser(argparse.ArgumentParser):
    """argparse exits with 2 on wrong usage, which here means "could not tell"."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(ExitCode.USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON document on stdout instead of text")
    common.add_argument(
        "--debug",
        action="store_true",
        default=os.environ.get("TT2GL_DEBUG", "") not in ("", "0"),
        help="show the traceback of errors (also TT2GL_DEBUG=1)",
    )
    launched = argparse.ArgumentParser(add_help=False)
    launched.add_argument("--launches", type=Path, metavar="L.json", help="launches (default: found in the file)")
    launched.add_argument("--root", type=Path, metavar="DIR", help="folder that `file` in L.json is relative to")
    limit_help = "seconds that a kernel may take the compiler under one launch (default: 60)"
    launched.add_argument("--timeout", type=_seconds, default=60.0, metavar="S", help=limit_help)

    parser = _Parser(
        prog="tt2gl",
        description="Lift OpenAI Triton kernels into explicit Gluon, and show that the two are equal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tt2gl {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Any, summary: str, parents: Sequence[Any]) -> argparse.ArgumentParser:
        options: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "epilog": _EPILOG}
        added = commands.add_parser(name, parents=parents, help=summary, description=summary, **options)
        added.set_defaults(command=command)
        return added

    _add_convert(add("convert", _convert, "Convert the Triton kernels of a file to Gluon.", [common, launched]))
    _add_verify(add("verify", _verify, "Compile a file's kernels and their Gluon, compare.", [common, launched]))
    add("doctor", _doctor, "Show versions, targets and GPU, and what is missing.", [common])
    return parser


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="Python files with @triton.jit kernels")
    parser.add_argument("-o", "--out", metavar="OUT", help="output file or folder (default: FILE_gluon.py beside FILE)")
    parser.add_argument(
        "--target", metavar="T", help="architecture, such as sm90 (default: the GPU present, else sm90)"
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--diff", action="store_true", help="print the difference to stdout, write nothing")
    modes.add_argument("--check", action="store_true", help="write nothing, exit 1 if OUT is missing or out of date")
    rules = parser.add_mutually_exclusive_group()
    rules.add_argument("--only", type=_names, default=(), metavar="RULES", help="optimising rules to apply: A,B,...")
    rules.add_argument("--no", type=_names, default=(), metavar="RULES", help="optimising rules to leave out: A,B,...")


def _add_verify(parser: argparse.ArgumentParser) -> None:
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
    simulation.add_argument("--seeds", type=_count, default=2, metavar="N", help=seeds_help)
    memory_help = "memory that all simulations together may take, such as 4GiB, the default"
    simulation.add_argument("--memory-limit", type=_bytes, default=4 << 30, metavar="SIZE", help=memory_help)
    seconds_help = "seconds that a kernel may take the simulator under one launch (default: 300)"
    simulation.add_argument("--simulate-timeout", type=_seconds, default=300.0, metavar="S", help=seconds_help)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _bytes(text: str) -> int:
    """A size such as 512MiB or 4GiB; a bare number is of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B?)", text.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise ValueError
    return int(float(found[1]) * 1024 ** " KMGT".index((found[2] or " ").upper()))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
