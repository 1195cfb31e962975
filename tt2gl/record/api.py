"""The user's own command, run with every Triton launch observed, and what was observed as a launches file.

The command's Python finds `site/sitecustomize.py` on its PYTHONPATH, which loads `observer`; so do the processes that
it starts. Launches come back through a journal beside the output, line by line: what a command did before it crashed,
or was interrupted, is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.launch_file import launch_from_json, write_launches
from tt2gl.launches import Launch
from tt2gl.record.devices import device_of
from tt2gl.record.observer import JOURNAL, STAND_IN
from tt2gl.targets import Target, default_target, get_target
from tt2gl.targets.gpu import present_architecture

_SITE = Path(__file__).parent / "site"
# torch.compile would compile kernels away before they are launched, and for a GPU that is not there.
_EAGER = {"TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1"}


@dataclass(frozen=True)
class Recording:
    """What a command launched: `exit_code` is the command's, `skipped` says that no kernel ran for want of a GPU."""

    launches: tuple[Launch, ...]
    exit_code: int
    skipped: bool
    diagnostics: tuple[Diagnostic, ...] = ()


def record(
    command: Sequence[str],
    out: Path | str,
    *,
    root: Path | None = None,
    target: str | None = None,
    stdout: IO[str] | None = None,
) -> Recording:
    """Run `command` and write the launches it made to `out`, each distinct one once; none made, nothing is written.

    Their files are relative to `root` (default: the working directory). Without a GPU kernels are skipped, and host
    code finds one of `target` (default: sm90). `stdout` is where the command's goes. Raises DiagnosticError: TTG010 for
    an unknown target, TTG013 where the command cannot be started, TTG005 where `out` cannot be written.
    """
    out, played = Path(out), get_target(target) if target else default_target()
    skipped = present_architecture() is None
    with _journal(out) as journal:
        exit_code = _run(command, _environment(journal, played if skipped else None), stdout)
        lines = list(_lines(journal))
        launches, diagnostics = _gathered(lines, Path(root) if root is not None else Path.cwd())
        if launches:
            write_launches(out, launches)
        else:
            diagnostics = (*diagnostics, _nothing(out, lines))
    return Recording(launches, exit_code, skipped, diagnostics)


@contextlib.contextmanager
def _journal(out: Path) -> Iterator[Path]:
    """An empty journal beside the output, which goes away with success: what could not be written is still in it."""
    place = Path(os.path.realpath(out))
    journal = place.with_name(f"{place.name}.journal")
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        journal.write_bytes(b"")
    except OSError as error:
        message = f"The output cannot be written: {error.strerror or error}."
        hint = "Choose another place with -o, or make this one writable."
        diagnostic = Diagnostic("TTG005", Severity.ERROR, str(out), 0, 0, message, hint)
        raise DiagnosticError(diagnostic, ExitCode.CANNOT_WRITE) from error
    yield journal
    journal.unlink(missing_ok=True)


def _environment(journal: Path, target: Target | None) -> dict[str, str]:
    """The command's environment; with a `target` that is played."""
    paths = [str(_SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    added = {"PYTHONPATH": os.pathsep.join(paths), JOURNAL: str(journal), STAND_IN: ""}
    if target is not None:
        added |= {STAND_IN: device_of(target).to_json(), **_EAGER}
    return {**os.environ, **added}


def _run(command: Sequence[str], environment: Mapping[str, str], stdout: IO[str] | None) -> int:
    """The exit code of the command, as a shell has it; Ctrl-C is the command's to hear, and a kill is handed on."""
    if shutil.which(command[0]) is None:
        raise _not_started(command[0], "there is no such program")
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # Handlers, not SIG_IGN, which the command would inherit.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        try:
            process = subprocess.Popen(list(command), env=environment, stdout=stdout)
        except OSError as error:
            raise _not_started(command[0], error.strerror or str(error)) from error
        signal.signal(signal.SIGTERM, lambda number, _frame: process.send_signal(number))
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _not_started(program: str, reason: str) -> DiagnosticError:
    message = f"The command cannot be started: {reason.lower()}."
    hint = "Give it as you would type it, behind `--`."
    return DiagnosticError(Diagnostic("TTG013", Severity.ERROR, program, 0, 0, message, hint), ExitCode.USAGE)


def _lines(journal: Path) -> Iterator[dict[str, Any]]:
    """The journal's entries; one that a full disk cut short is none."""
    for line in journal.read_text("utf-8").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def _gathered(lines: Sequence[Mapping[str, Any]], root: Path) -> tuple[tuple[Launch, ...], tuple[Diagnostic, ...]]:
    """Launches of files below `root`, by file and kernel, then as they came; and what there is to say of the others.

    A request to compile is left out where the same kernel was launched just so.
    """
    base = Path(os.path.realpath(root))
    inside: dict[str, Launch] = {}
    outside: dict[tuple[str, str], int] = {}
    for entry in (line["launch"] for line in lines if "launch" in line):
        launch = launch_from_json(entry)
        if Path(launch.file).is_relative_to(base):
            launch = replace(launch, file=Path(launch.file).relative_to(base).as_posix())
            inside.setdefault(json.dumps({**entry, "args": _without_ranges(entry["args"])}), launch)
        else:
            outside[launch.file, launch.kernel] = outside.get((launch.file, launch.kernel), 0) + 1
    launched = {_compiled(launch) for launch in inside.values() if launch.grid is not None}
    kept = [launch for launch in inside.values() if launch.grid is not None or _compiled(launch) not in launched]
    kept.sort(key=lambda launch: (launch.file, launch.kernel))
    refused = [_refused(line["refused"]) for line in lines if "refused" in line]
    return tuple(kept), (*dict.fromkeys(refused), *_left_out(outside, base))


def _without_ranges(args: Any) -> Any:
    """Arguments as they tell launches apart: two runs of the same shapes may see other numbers."""
    match args:
        case {"range": _}:
            return {**args, "range": None}
        case dict():
            return {name: _without_ranges(value) for name, value in args.items()}
        case list():
            return [_without_ranges(value) for value in args]
    return args


def _compiled(launch: Launch) -> str:
    """What decides what a kernel is compiled to."""
    constexprs, options = sorted(launch.constexprs.items()), sorted(launch.options.to_dict().items())
    return repr((launch.file, launch.kernel, launch.signature, constexprs, launch.divisible_by_16, options))


def _refused(refused: Mapping[str, str]) -> Diagnostic:
    message = f"A launch of {refused['kernel']} was not recorded: {refused['reason'].rstrip('.')}."
    hint = "Add it by hand, or leave it out."
    return Diagnostic("TTG230", Severity.WARNING, refused["file"], 0, 0, message, hint)


def _left_out(outside: Mapping[tuple[str, str], int], root: Path) -> Iterator[Diagnostic]:
    by_file: dict[str, int] = {}
    for (file, _), count in outside.items():
        by_file[file] = by_file.get(file, 0) + count
    for file, count in sorted(by_file.items()):
        message = f"{count} launch{'es' * (count > 1)} of this file left out: it is not below {root}."
        hint = "Give a folder above it with --root, if they are wanted."
        yield Diagnostic("TTG231", Severity.NOTE, file, 0, 0, message, hint)


def _nothing(out: Path, lines: Sequence[Mapping[str, Any]]) -> Diagnostic:
    """Why there is nothing to write, as far as the journal knows."""
    if any("launch" in line for line in lines):
        message = "No launch was recorded: all were of files that are left out."
        hint = "Give a folder above them with --root."
    elif any("triton" in line for line in lines):
        message = "No launch was recorded: the command imported Triton, and launched no kernel."
        hint = "Run something that launches kernels; tests that skip themselves, and TRITON_INTERPRET=1, launch none."
    else:
        message = "No launch was recorded: the command did not import Triton."
        hint = "Run a Python program that launches kernels, without the options -I, -E and -S of Python."
    return Diagnostic("TTG232", Severity.ERROR, str(out), 0, 0, message, hint)
