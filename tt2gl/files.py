"""Output files: where a conversion goes, and writing it whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity

_UNFINISHED = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.tmp")


def output_paths(sources: Sequence[str], out: str | None) -> list[Path]:
    """The file each of `sources` converts to: `out`, a file in the folder `out`, or NAME_gluon.py beside it.

    `out` is a folder where it is one already, ends in a slash, or several sources share it. Raises TTG006 where an
    output would be an input, or two sources would write to one file.
    """
    paths = [_output_path(Path(source), out, several=len(sources) > 1) for source in sources]
    inputs = {os.path.realpath(source): source for source in sources}
    claimed: dict[str, str] = {}
    for source, path in zip(sources, paths, strict=True):
        place = os.path.realpath(path)
        if place in inputs:
            raise _usage_error(str(path), "The output would overwrite an input.", "Name another file with -o.")
        if place in claimed:
            message = f"Both {claimed[place]} and {source} would be written here."
            raise _usage_error(str(path), message, "Convert them one by one, each with its own -o.")
        claimed[place] = source
    return paths


def _output_path(source: Path, out: str | None, *, several: bool) -> Path:
    name = f"{source.stem}_gluon.py"
    if out is None:
        return source.with_name(name)
    is_folder = several or out.endswith(os.sep) or Path(out).is_dir()
    return Path(out) / name if is_folder else Path(out)


def _usage_error(file: str, message: str, hint: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic("TTG006", Severity.ERROR, file, 0, 0, message, hint), ExitCode.USAGE)


def read_if_there(path: Path) -> str | None:
    """The text of a file as its bytes spell it, line ends and all; None where there is none to compare with."""
    try:
        return path.read_bytes().decode("utf-8") if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path` in one step: written beside it, synced, then renamed over it.

    Missing folders are made; a link is followed; an existing file keeps its permissions; a device or pipe is written
    to as it is. Raises TTG005 where anything fails, with what was there before still there.
    """
    place = Path(os.path.realpath(path))
    content = text.encode("utf-8")
    try:
        mode = place.stat().st_mode if place.exists() else None
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            place.write_bytes(content)
            return
        if mode is not None and not os.access(place, os.W_OK):
            raise PermissionError("the file is read-only")
        place.parent.mkdir(parents=True, exist_ok=True)
        _replace(place, content, mode)
    except OSError as error:
        raise _unwritable(path, error) from error


def refuse_unwritable(path: Path) -> None:
    """Raise TTG005 where it can be seen beforehand that nothing can be written at `path`. Makes nothing.

    A file that is there is left to `write_text`: what is up to date is not written.
    """
    place = Path(os.path.realpath(path))
    try:
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if place.exists():
            return
        folder = next(each for each in place.parents if each.exists())
        if not folder.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> DiagnosticError:
    reason = "its folder is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
    message = f"The output cannot be written: {reason}."
    hint = "Choose another place with -o, or make this one writable."
    return DiagnosticError(Diagnostic("TTG005", Severity.ERROR, str(path), 0, 0, message, hint), ExitCode.CANNOT_WRITE)


def _replace(place: Path, content: bytes, mode: int | None) -> None:
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    try:
        # Not tempfile.mkstemp: its files are private, and the umask should decide.
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            # A full disk may show here only; the old file must still be there then.
            os.fsync(stream.fileno())
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def remove_unfinished(paths: Collection[Path]) -> None:
    """Remove what a `write_text` to one of `paths` left beside it when it was killed, before the rename.

    Nobody else may be writing to them. What cannot be listed or removed stays.
    """
    for folder in sorted({path.parent for path in paths}):
        with contextlib.suppress(OSError):
            for each in list(folder.iterdir()):
                match = _UNFINISHED.fullmatch(each.name)
                if match is not None and folder / match["name"] in paths:
                    each.unlink()
