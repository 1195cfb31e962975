"""Gluon files that tt2gl made: which file each was made of, and whether that has changed since."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from tt2gl.check.lock import NAME, Lock, Port, digest, read_lock, write_lock
from tt2gl.check.project import Files
from tt2gl.diagnostics import Diagnostic, Severity

_SUFFIX = "_gluon"


def original_of(path: Path, files: Files, lock: Lock) -> Path | None:
    """The file that a port was made of: as the lock says, else NAME.py of NAME_gluon.py, where that has kernels."""
    port = lock.ports.get(files.name(path))
    if port is not None:
        return files.home / port.original
    original = path.with_name(path.name.removesuffix(f"{_SUFFIX}.py") + ".py")
    return original if original != path and files.has_kernels(original) else None


def with_ports(paths: Collection[Path], home: Path) -> list[tuple[Path, Path]]:
    """Originals with their ports, of those among `paths` that are either, each pair once."""
    lock = read_lock(home / NAME) or Lock()
    files = Files(home, None)
    ports = {port.original: home / name for name, port in lock.ports.items()}
    found: dict[tuple[Path, Path], None] = {}
    for path in paths:
        original = original_of(path, files, lock)
        if original is not None:
            found[original, path] = None
            continue
        port = ports.get(files.name(path), path.with_name(f"{path.stem}{_SUFFIX}.py"))
        if files.content(port) is not None and files.has_kernels(path):
            found[path, port] = None
    # The same files may be spelled in two ways: relative, and by the lock.
    return list({(files.name(original), files.name(port)): (original, port) for original, port in found}.values())


def port_now(path: Path, original: Path, files: Files, target: str | None) -> Port:
    """What the lock would say of a port as it is."""
    return Port(files.name(original), _digest(files, original), _digest(files, path), target)


def ports_now(paths: Collection[Path], files: Files, lock: Lock) -> Mapping[str, Port]:
    """The ports among `paths`, as they are."""
    found = {}
    for path in paths:
        original = original_of(path, files, lock)
        if original is not None and files.content(original) is not None:
            before = lock.ports.get(files.name(path))
            found[files.name(path)] = port_now(path, original, files, before.target if before is not None else None)
    return found


def stale(now: Mapping[str, Port], lock: Lock) -> Iterator[Diagnostic]:
    """The ports whose originals are other than those they were made of, while they are as they were."""
    for name, port in now.items():
        before = lock.ports.get(name)
        if before is not None and before.digest == port.digest and before.original_digest != port.original_digest:
            message = f"{port.original} has changed since this was made of it."
            hint = f"Convert {port.original} again, or accept with `tt2gl check --update`."
            yield Diagnostic("TTG610", Severity.ERROR, name, 1, 0, message, hint)


def note_port(output: Path, original: Path, target: str, home: Path) -> None:
    """Have the lock below `home`, where there is one, say that `output` was made of `original` just now."""
    place = home / NAME
    lock = read_lock(place)
    if lock is None:
        return
    files = Files(home, None)
    name, port = files.name(output), port_now(output, original, files, target)
    if lock.ports.get(name) != port:
        write_lock(place, Lock(lock.kernels, {**lock.ports, name: port}))


def _digest(files: Files, path: Path) -> str:
    return digest((files.content(path) or b"").decode("utf-8", errors="replace"))
