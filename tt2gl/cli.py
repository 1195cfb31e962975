"""The command line: which commands there are, the options that they share, and exit codes.

Whatever costs time to import (Triton, LibCST, rich) is imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from tt2gl import __version__
from tt2gl.children import COLLECTED_AFTER
from tt2gl.commands import check, convert, doctor, explain, port, record, verify
from tt2gl.commands.common import Run, say, seconds
from tt2gl.diagnostics import ExitCode

_EPILOG = """\
exit codes:
  0    done and clean
  1    the answer is no: --check found an output missing or out of date, two kernels are not equal, a port has
       a fault, check found a kernel worse or a port stale, or doctor misses what a conversion needs
  2    could not tell: a kernel could not be converted, compiled, simulated or run, or there is no lock
  64   wrong usage     65   bad source     66   no such file     73   cannot write
  70   internal error  130  interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but a bug seen under --debug leaves as a traceback."""
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    with contextlib.suppress(ValueError):  # called from a thread: the signal is its owner's
        signal.signal(signal.SIGTERM, _terminate)
    try:
        arguments = _parsed(list(sys.argv[1:] if argv is None else argv))
        return int(_run(arguments))
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout went away, as `head` does; the interpreter must not try to flush to it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run(arguments: argparse.Namespace) -> int:
    run = Run(arguments)
    with run.reporting():
        arguments.command(arguments, run)
    sys.stdout.flush()
    return run.exit_code


def _terminate(_signal: int, _frame: object) -> NoReturn:
    """End as on Ctrl-C, so that children and temporary files go too."""
    raise SystemExit(128 + signal.SIGTERM)


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The command line. What `record` is to run stands behind the first `--`, and no option in it is ours."""
    parser = _parser()
    if argv[:1] != ["record"]:
        return parser.parse_args(argv)
    end = argv.index("--") if "--" in argv else len(argv)
    words = argv[end + 1 :]
    if not words and not {"-h", "--help"} & set(argv):
        parser.error("record: give the command behind `--`, as in: tt2gl record -o L.json -- python train.py")
    arguments = parser.parse_args(argv[:end])
    arguments.words = words
    return arguments


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
    launched.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help=limit_help)

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

    with_launches = [common, launched]
    summary = "Convert the Triton kernels of a file to Gluon."
    convert.add_options(add("convert", convert.run, summary, with_launches))
    summary = "Compile a file's kernels and their Gluon, compare."
    verify.add_options(add("verify", verify.run, summary, with_launches))
    summary = "Port a folder: convert every file, verify, copy the rest."
    port.add_options(add("port", port.run, summary, with_launches))
    summary = "Run a command, and write down the Triton launches that it makes."
    record.add_options(add("record", record.run, summary, [common]))
    summary = "Hold a project's kernels against tt2gl.lock: what compiles to something worse is stopped."
    check.add_options(add("check", check.run, summary, with_launches))
    summary = "Say why a line of a kernel, or of its port, became what it is, and what else was weighed."
    explain.add_options(add("explain", explain.run, summary, with_launches))
    add("doctor", doctor.run, "Show versions, targets and GPU, and what is missing.", [common])
    return parser
