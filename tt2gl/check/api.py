"""`check`: the kernels of a project held against its lock. What is slow to import is imported where it is needed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.check.cache import Cache, Record, read_cache
from tt2gl.check.compare import Finding, Tolerances, improvements, regressions
from tt2gl.check.lock import NAME, Key, Lock, Port, lock_text, read_lock, write_lock
from tt2gl.check.lowering import Lowering, Measured
from tt2gl.check.match import Match, match
from tt2gl.check.ports import original_of, ports_now, stale
from tt2gl.check.project import Files, find_files, launches_digest
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity

if TYPE_CHECKING:
    from tt2gl.check.measure import Trouble, Work
    from tt2gl.launches import Launch

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Settings:
    """What is checked, and how: `home` is the folder of the lock, to which `patterns` are relative.

    `launches` is a launches file for all of the project, with files relative to `root`; without it, FILE.launches.json
    beside a file is taken.
    """

    home: Path
    patterns: tuple[str, ...] = ()
    targets: tuple[str, ...] = ("sm90",)
    launches: Path | None = None
    root: Path | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)
    timeout: float = 60.0


@dataclass(frozen=True)
class Compared:
    """One kernel, what it was under which launch, and what of it is worse (`findings`) or better."""

    now: Measured
    before: Lowering | None
    before_launch: str = ""
    findings: tuple[Finding, ...] = ()
    better: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that a check found. `updated`: the lock was written, as it was asked to be and was out of date."""

    lock: Path
    kernels: tuple[Compared, ...]
    diagnostics: tuple[Diagnostic, ...]
    exit_code: ExitCode
    updated: bool = False


def held_targets(home: Path) -> tuple[str, ...]:
    """The targets that the lock of a project has lowerings for."""
    lock = read_lock(home / NAME) or Lock()
    return tuple(sorted({key.target for key in lock.kernels}))


def check(
    settings: Settings, paths: Sequence[Path] = (), *, update: bool = False, on_progress: Progress | None = None
) -> Report:
    """Hold the kernels of `paths`, files or folders (default: of the project), against the lock.

    With `update`, make what they are now the lock.

    Raises DiagnosticError for a lock that cannot be read (TTG601) or written (TTG005).
    """
    place = settings.home / NAME
    lock = read_lock(place)
    files = Files(settings.home, settings.root)
    triton = importlib.metadata.version("triton")
    cache = read_cache(settings.home, triton)
    kept = [path.absolute() for path in paths if not path.is_dir()]
    folders = [path.absolute() for path in paths if path.is_dir()]
    found = (find_files(folder, ()) for folder in folders) if paths else (find_files(settings.home, settings.patterns),)
    kept += [path for each in found for path in each if files.has_kernels(path)]
    known = lock or Lock()
    sources = [_source(path, settings, files, known) for path in kept]
    measuring = _Measuring(settings, files, cache, on_progress)
    measured, told = measuring.run(sources)
    compared, gone = _held_against(known, measured, triton, settings, measuring.looked_at)
    blind = {one.now.file for one in compared if one.findings and one.now.spots is None}
    if blind:
        # Compiled before as an equal kernel, so that nobody looked for the lines: look now.
        measured, told = measuring.run(sources, anew=blind)
        compared, gone = _held_against(known, measured, triton, settings, measuring.looked_at)
    if not paths:
        names = {source.file for source in sources}
        gone += [key for key in known.kernels if _is_of_file_gone(key, names, triton, settings)]
        cache.keep(names)
    cache.save()
    ports = ports_now(kept, files, known)
    if update:
        updated = _updated(known, measured, gone, ports, triton, measuring.looked_at, None if paths else files)
        written = lock is None or lock_text(updated) != lock_text(known)
        if written:
            write_lock(place, updated)
        accepted = [replace(one, severity=Severity.NOTE) for one in _diagnostics(compared, known, ports)]
        failed = ExitCode.UNKNOWN if told else ExitCode.CLEAN
        return Report(place, tuple(compared), (*told, *accepted), failed, written)
    diagnostics = [*told, *_diagnostics(compared, known, ports), *_notes(compared, gone, known, triton)]
    if compared and not any(key.triton == triton for key in known.kernels):
        diagnostics.append(_nothing_held(place, lock, triton))
    return Report(place, tuple(compared), tuple(diagnostics), _exit_code(diagnostics, told))


def _exit_code(diagnostics: Sequence[Diagnostic], told: Sequence[Diagnostic]) -> ExitCode:
    if any(_is_no(one) for one in diagnostics):
        return ExitCode.NO
    return ExitCode.UNKNOWN if told or any(one.code == "TTG600" for one in diagnostics) else ExitCode.CLEAN


def _is_no(diagnostic: Diagnostic) -> bool:
    return "TTG602" <= diagnostic.code <= "TTG610" and diagnostic.severity is Severity.ERROR


# ---------------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class _Source:
    """One file to check, before anything slow is imported."""

    file: str
    path: Path
    targets: tuple[str, ...]
    launches: Path | None
    root: Path | None
    original: Path | None

    def inputs(self, files: Files, imported: Sequence[Path]) -> dict[str, str]:
        """Digests of all that the kernels of the file follow from."""
        paths = [self.path, *filter(None, [self.original]), *imported]
        found = {files.name(path): files.digest(path) for path in paths}
        found["root"] = files.name(self.root) if self.root is not None else ""
        if self.launches is not None:
            name = files.name(self.original or self.path)
            found["launches"] = launches_digest(files.content(self.launches), name)
        return found


def _source(path: Path, settings: Settings, files: Files, lock: Lock) -> _Source:
    original = original_of(path, files, lock)
    port = lock.ports.get(files.name(path))
    # A port is for the target that it was made for, where that is known.
    targets = (port.target,) if port is not None and port.target is not None else settings.targets
    beside = (original or path).with_suffix(".launches.json")
    if settings.launches is None and beside.is_file():
        return _Source(files.name(path), path, targets, beside, beside.parent, original)
    return _Source(files.name(path), path, targets, settings.launches, settings.root, original)


class _Measuring:
    """Finds the kernels of files, as they were found before where nothing that they follow from has changed."""

    def __init__(self, settings: Settings, files: Files, cache: Cache, on_progress: Progress | None) -> None:
        self._settings, self._files, self._cache, self._on_progress = settings, files, cache, on_progress
        self.looked_at: set[tuple[str, str]] = set()

    def run(self, sources: Sequence[_Source], anew: Collection[str] = ()) -> tuple[list[Measured], list[Diagnostic]]:
        """All kernels of `sources`, those of the files `anew` compiled whatever is known; and what went wrong."""
        cache, files = self._cache, self._files
        changed = [source for source in sources if source.file in anew or not self._unchanged(source)]
        told: list[Diagnostic] = []
        if changed:
            from tt2gl.check.measure import measure

            known = {} if anew else cache.kernels
            works, troubles = _works(changed)
            found, more = measure(
                works,
                known,
                home=self._settings.home,
                timeout=self._settings.timeout,
                on_progress=self._on_progress,
            )
            cache.kernels.update(known)
            troubles += more
            told = [replace(one, file=files.name(Path(one.file))) for _, one in troubles]
            failed = {file for file, _ in troubles}
            for source in changed:
                # What is wrong with a file is to be said again: it has no inputs that could be as before.
                inputs = {} if source.file in failed else source.inputs(files, files.imported(source.path))
                for target in source.targets:
                    own = tuple(one for one in found if (one.file, one.target) == (source.file, target))
                    cache.records[source.file, target] = Record(inputs, own)
        keys = [(source.file, target) for source in sources for target in source.targets]
        self.looked_at = {key for key in keys if cache.records[key].inputs}
        return [one for key in keys for one in cache.records[key].measured], told

    def _unchanged(self, source: _Source) -> bool:
        records = [self._cache.records.get((source.file, target)) for target in source.targets]
        return all(record is not None and self._holds(source, record) for record in records)

    def _holds(self, source: _Source, record: Record) -> bool:
        own = source.inputs(self._files, [])
        rest = {name: self._files.digest(self._files.home / name) for name in record.inputs if name not in own}
        return dict(record.inputs) == {**own, **rest}


def _works(sources: Sequence[_Source]) -> tuple[list[Work], list[Trouble]]:
    """What is to be measured, and what is wrong with launches files."""
    from tt2gl.check.measure import Work
    from tt2gl.launch_file import read_launches

    read: dict[Path, tuple[Launch, ...]] = {}
    works: list[Work] = []
    troubles: list[Trouble] = []
    for source in sources:
        try:
            if source.launches is not None and source.launches not in read:
                read[source.launches] = read_launches(source.launches)
        except DiagnosticError as error:
            troubles.append((source.file, error.diagnostic))
            continue
        launches = read[source.launches] if source.launches is not None else ()
        works.append(Work(source.file, source.path, source.targets, launches, source.root, source.original))
    return works, troubles


# ---------------------------------------------------------------------------------------------------- comparing


def _held_against(
    lock: Lock,
    measured: Sequence[Measured],
    triton: str,
    settings: Settings,
    looked_at: Collection[tuple[str, str]],
) -> tuple[list[Compared], list[Key]]:
    matches, gone = match(lock, measured, triton, looked_at)
    return [_compared(one, settings) for one in matches], gone


def _compared(one: Match, settings: Settings) -> Compared:
    if one.before is None or one.key is None:
        return Compared(one.now, None)
    found = regressions(one.before, one.now, settings.tolerances, same_work=one.same_work)
    better = tuple(improvements(one.before, one.now.lowering))
    return Compared(one.now, one.before, one.key.launch, tuple(found), better)


def _diagnostics(kernels: Sequence[Compared], lock: Lock, ports: Mapping[str, Port]) -> Iterator[Diagnostic]:
    """What is worse, at the line to blame, and which ports are stale."""
    for one in kernels:
        for finding in one.findings:
            file, line = finding.spot or (one.now.file, one.now.line)
            where = f"{one.now.target}, launch {one.now.index}"
            message = f"{one.now.kernel} ({where}): {finding.message}"
            yield Diagnostic(finding.code, Severity.ERROR, file, line, 0, message, finding.hint)
    yield from stale(ports, lock)


def _notes(kernels: Sequence[Compared], gone: Sequence[Key], lock: Lock, triton: str) -> Iterator[Diagnostic]:
    """What is no failure, but that the lock is behind: better, new, and gone kernels, each told once."""
    hint = "Hold it with `tt2gl check --update`."
    for one in kernels:
        at = (one.now.file, one.now.line, 0)
        if one.better and not one.findings:
            message = f"{one.now.kernel} ({one.now.target}, launch {one.now.index}) is better: {', '.join(one.better)}."
            yield Diagnostic("TTG611", Severity.NOTE, *at, message, hint)
    if not any(key.triton == triton for key in lock.kernels):
        return
    new = {(one.now.file, one.now.line, one.now.kernel): None for one in kernels if one.before is None}
    for file, line, kernel in new:
        message = f"{kernel} has launches that the lock does not hold."
        yield Diagnostic("TTG612", Severity.NOTE, file, line, 0, message, hint)
    for file, kernel in dict.fromkeys((key.file, key.kernel) for key in gone):
        message = f"The lock holds launches of {kernel} that are gone."
        yield Diagnostic("TTG613", Severity.NOTE, file, 0, 0, message, "Drop them with `tt2gl check --update`.")


def _nothing_held(place: Path, lock: Lock | None, triton: str) -> Diagnostic:
    message = f"The lock has nothing of Triton {triton}." if lock is not None else "There is no lock to compare with."
    return Diagnostic("TTG600", Severity.WARNING, str(place), 0, 0, message, "Make one with `tt2gl check --update`.")


def _is_of_file_gone(key: Key, names: Collection[str], triton: str, settings: Settings) -> bool:
    """Whether a block is of a file that has no kernels any more, where all of the project was looked at."""
    return key.triton == triton and key.target in settings.targets and key.file not in names


def _updated(
    lock: Lock,
    measured: Sequence[Measured],
    gone: Sequence[Key],
    ports: Mapping[str, Port],
    triton: str,
    looked_at: Collection[tuple[str, str]],
    files: Files | None,
) -> Lock:
    """The lock with what was measured; blocks of other Tritons and of what was not looked at stay.

    With `files`, all of the project was looked at, and ports that are gone go.
    """
    kernels = {
        key: lowering
        for key, lowering in lock.kernels.items()
        if key not in gone and not (key.triton == triton and (key.file, key.target) in looked_at)
    }
    kernels |= {Key(one.file, one.kernel, one.target, triton, one.launch): one.lowering for one in measured}
    before = {
        name: port for name, port in lock.ports.items() if files is None or files.content(files.home / name) is not None
    }
    return Lock(kernels, {**before, **ports})
