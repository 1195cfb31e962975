"""`port`: a folder of kernels converted for each target, written as one tree, and compared with what it was.

Three steps, each a round of independent jobs: convert every file; write the trees, where layouts that several files
need have one place; verify what was written. What a job returns goes to the journal at once, and the trees are made of
the journal's results in the order of the files: how many jobs ran, in what order, and how often the port was
interrupted, shows nowhere.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from tt2gl.check.project import Files
from tt2gl.children import Outcome
from tt2gl.cores import available_cores
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.files import read_if_there, remove_unfinished, write_text
from tt2gl.isolate import map_isolated, preload
from tt2gl.launch_file import launch_to_json
from tt2gl.port.cluster import Cluster, connected
from tt2gl.port.jobs import Converted, ConvertJob, Settings, VerifyJob, run_convert, run_layouts, run_verify
from tt2gl.port.journal import (
    NAME,
    Journal,
    converted_from_json,
    converted_to_json,
    layouts_from_json,
    layouts_to_json,
    reports_from_json,
    reports_to_json,
)
from tt2gl.port.shared_helpers import with_shared_helpers
from tt2gl.port.tree import Tree, copy_file, read_tree
from tt2gl.report.document import header
from tt2gl.results import KernelReport, NamedLayout
from tt2gl.targets import default_target, get_target

T = TypeVar("T")
Work = TypeVar("Work", ConvertJob, VerifyJob)

Place = tuple[str, PurePosixPath]
"""A file of the folder for a target: the target first."""

Progress = Callable[[str, int, int], None]
"""Called with the step, how many of its jobs are done, and how many there are."""

# What a file may take beyond its launches, in seconds: reading, analysis, writing.
_PATIENCE = 300.0
# Launches that a file without given ones may show.
_FOUND_LAUNCHES = 16


@dataclass(frozen=True)
class PortedFile:
    """One file for one target: where it went, whether that was there already just so, what became of its kernels.

    `layouts` are those that its kernels name, where they were asked for.
    """

    path: str
    output: str
    up_to_date: bool
    target: str
    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...]
    layouts: tuple[NamedLayout, ...] = ()


@dataclass(frozen=True)
class Port:
    """What was ported: the files that have kernels, and how many others were copied for each target."""

    files: tuple[PortedFile, ...]
    copied: int


def port(
    directory: Path | str,
    out: Path | str,
    *,
    targets: Sequence[str] = (),
    settings: Settings | None = None,
    jobs: int | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    layouts: bool = False,
    on_progress: Progress | None = None,
) -> Port:
    """Port every file of `directory` into `out`, or for several targets into `out/TARGET`; other files are copied.

    `jobs` files are worked on at a time (default: the cores there are), or on the cluster of the Dask `scheduler` as
    many as its workers take. With `resume`, results that the journal in
    `out` has already are taken from it; with `layouts`, those that the ports name are looked at too. Raises
    DiagnosticError where the folder cannot be read, `out` cannot be written or holds something else (TTG006), and for
    an unknown target.
    """
    out, settings = Path(out), settings or Settings()
    names = list(dict.fromkeys(get_target(name).name for name in targets)) or [default_target().name]
    tree = read_tree(Path(directory), out)
    _check_output(out)
    with ExitStack() as rest, Journal(out / NAME, resume=resume) as journal:
        cluster = rest.enter_context(connected(scheduler)) if scheduler is not None else None
        if cluster is None:
            _import_ahead(settings)
        size = cluster.width if cluster is not None else jobs or available_cores()
        crew = _Crew(journal, size, on_progress, cluster)
        outputs = {name: out / name if len(names) > 1 else out for name in names}
        works = [(name, place) for name in names for place in tree.candidates]
        compiled = {work for work in works if _conversion_key(work, tree, settings, compiled=True) in journal.entries}
        converted = dict(zip(works, _convert(works, compiled, tree, settings, crew), strict=True))
        changed: set[Path] = set()
        while True:
            for name, folder in outputs.items():
                changed |= _write(tree, folder, {place: converted[name, place] for place in tree.candidates})
            reports = _verify(converted, tree, outputs, settings, crew)
            refused = [work for work in works if work not in compiled and any(map(_is_refused, reports[work]))]
            if not refused:
                break
            # A conversion that compiles what it writes falls back to less; most need not, so none does at first.
            compiled.update(refused)
            converted |= dict(zip(refused, _convert(refused, compiled, tree, settings, crew), strict=True))
        named = _layouts(converted, tree, outputs, settings, crew) if layouts else {}
    files = []
    for (name, place), found in converted.items():
        if found.kernels or found.diagnostics:
            source, output = str(tree.path(place)), outputs[name] / place
            told = reports[name, place], found.diagnostics, named.get((name, place), ())
            files.append(PortedFile(source, str(output), output not in changed, name, *told))
    return Port(tuple(files), len(tree.files) - len({file.path for file in files}))


def _import_ahead(settings: Settings) -> None:
    """Import what most jobs need, and each would import in its own process: a tenth of a second and more every time."""
    import black  # noqa: F401

    if settings.run == "simulate":
        import tt2gl.verify.simulate
        import tt2gl.verify.simulation_diagnostics  # noqa: F401


def _check_output(out: Path) -> None:
    """Refuse a folder that holds anything, unless a port has been there."""
    if out.exists() and not (out / NAME).exists() and (not out.is_dir() or any(out.iterdir())):
        hint = "Name an empty folder, one that is not there yet, or that of an earlier port."
        problem = Diagnostic("TTG006", Severity.ERROR, str(out), 0, 0, "The output is not empty, and no port.", hint)
        raise DiagnosticError(problem, ExitCode.USAGE)


@dataclass(frozen=True)
class _Crew:
    """Who does the jobs: so many at a time, none that the journal has."""

    journal: Journal
    size: int
    on_progress: Progress | None
    cluster: Cluster | None = None

    @property
    def cores(self) -> int:
        """Cores for each of the jobs that run beside each other; of a cluster's machines, one."""
        if self.cluster is not None:
            return 1
        return max(1, available_cores() // self.size)

    def do(
        self,
        step: str,
        keys: Sequence[str],
        function: Callable[[Work], T],
        jobs: Sequence[Work],
        to_json: Callable[[Work, Outcome[T]], Mapping[str, Any]],
        timeout: float,
    ) -> Iterator[Mapping[str, Any]]:
        """The journal's entries of these jobs, once those are done that it did not have."""
        waiting = [index for index, key in enumerate(keys) if key not in self.journal.entries]
        # The longest first, so that none is left over when the others are done.
        waiting.sort(key=lambda index: -jobs[index].path.stat().st_size)
        done = len(jobs) - len(waiting)
        self._tell(step, done, len(jobs))

        def on_done(index: int, outcome: Outcome[T]) -> None:
            nonlocal done
            key = keys[waiting[index]]
            entry = {"step": step, **to_json(jobs[waiting[index]], outcome)}
            self.journal.append(key, entry)
            self.journal.entries[key] = entry
            done += 1
            self._tell(step, done, len(jobs))

        arguments = [(replace(jobs[index], ledger=self.journal.ledger(keys[index])),) for index in waiting]
        if waiting and self.cluster is not None:
            self.cluster.map(function, arguments, timeout=timeout, on_done=on_done)
        elif waiting:
            preload()
            map_isolated(function, arguments, workers=self.size, timeout=timeout, on_done=on_done)
        return (self.journal.entries[key] for key in keys)

    def _tell(self, step: str, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(step, done, total)


# ------------------------------------------------------------------------------------------------- the steps


def _convert(
    works: Sequence[Place], compiled: Collection[Place], tree: Tree, settings: Settings, crew: _Crew
) -> Iterator[Converted]:
    """The files converted; those of `compiled` as what does not compile is kept."""
    jobs = [ConvertJob(tree.path(work[1]), work[0], settings, crew.cores, compiled=work in compiled) for work in works]
    keys = [_conversion_key(work, tree, settings, compiled=work in compiled) for work in works]

    def to_json(job: ConvertJob, outcome: Outcome[Converted]) -> Mapping[str, Any]:
        found = outcome.value or Converted(None, (), (_broken(job, "converted", outcome),))
        return {"file": str(job.path), "target": job.target, **converted_to_json(found)}

    return map(converted_from_json, crew.do("converting", keys, run_convert, jobs, to_json, _limit(settings)))


def _write(tree: Tree, folder: Path, converted: Mapping[PurePosixPath, Converted]) -> set[Path]:
    """One target's tree: ports where there are some, all else as it is. What was not there just so already."""
    texts = {}
    for place, found in converted.items():
        original = read_if_there(tree.path(place))
        if found.text is not None and original is not None and found.text != original:
            texts[place] = (original, found.text)
    packages = frozenset(place.parent for place in tree.files if place.name == "__init__.py")
    taken = frozenset(place.parts[0].partition(".")[0] for place in tree.files)
    ported = with_shared_helpers(texts, packages, taken)
    # A port that was killed while it wrote one of these files left it unfinished.
    remove_unfinished({folder / place for place in (*tree.files, *ported)})
    copied = [place for place in tree.files if place not in ported]
    changed = {folder / place for place in copied if copy_file(tree.path(place), folder / place)}
    for place, text in ported.items():
        if read_if_there(folder / place) != text:
            write_text(folder / place, text)
            changed.add(folder / place)
        if tree.path(place).exists():
            shutil.copymode(tree.path(place), folder / place)
    return changed


def _verify(
    converted: Mapping[Place, Converted],
    tree: Tree,
    outputs: Mapping[str, Path],
    settings: Settings,
    crew: _Crew,
) -> dict[Place, tuple[KernelReport, ...]]:
    """The conversions' reports with what verification found of the kernels that were ported."""
    works = [work for work, found in converted.items() if any(each.status == "converted" for each in found.kernels)]
    if settings.run == "gpu":
        crew = replace(crew, size=1, cluster=None)
    elif settings.simulation.memory_limit:
        share = replace(settings.simulation, memory_limit=max(1, settings.simulation.memory_limit // crew.size))
        settings = replace(settings, simulation=share)
    written = {name: Files(outputs[name].absolute(), settings.root) for name in outputs}
    jobs = _verify_jobs(works, converted, tree, outputs, settings, crew)
    facts = {**_conversion_facts(settings), "run": settings.run, "simulation": asdict(settings.simulation)}
    facts["simulation"].pop("memory_limit")
    keys = [_key("verify", work, tree.digest + _written(written[work[0]], work[1]), facts) for work in works]

    def to_json(job: VerifyJob, outcome: Outcome[tuple[KernelReport, ...]]) -> Mapping[str, Any]:
        broken = [] if outcome.ok else [_broken(job, "verified", outcome).to_json()]
        place = {"file": str(job.path), "target": job.target}
        return {**place, "kernels": reports_to_json(outcome.value or ()), "diagnostics": broken}

    found = crew.do("verifying", keys, run_verify, jobs, to_json, _limit(settings))
    seen = dict(zip(works, found, strict=True))
    return {work: tuple(_joined(each.kernels, seen.get(work))) for work, each in converted.items()}


def _layouts(
    converted: Mapping[Place, Converted],
    tree: Tree,
    outputs: Mapping[str, Path],
    settings: Settings,
    crew: _Crew,
) -> dict[Place, tuple[NamedLayout, ...]]:
    """The layouts that ports name; none of a file whose job did not return: nothing else depends on them."""
    works = [work for work, found in converted.items() if any(each.status == "converted" for each in found.kernels)]
    written = {name: Files(outputs[name].absolute(), settings.root) for name in outputs}
    jobs = _verify_jobs(works, converted, tree, outputs, settings, crew)
    facts = _conversion_facts(settings)
    keys = [_key("layouts", work, tree.digest + _written(written[work[0]], work[1]), facts) for work in works]

    def to_json(job: VerifyJob, outcome: Outcome[tuple[NamedLayout, ...]]) -> Mapping[str, Any]:
        return {"file": str(job.path), "target": job.target, "layouts": layouts_to_json(outcome.value or ())}

    found = crew.do("drawing", keys, run_layouts, jobs, to_json, _limit(settings))
    return {work: layouts_from_json(entry["layouts"]) for work, entry in zip(works, found, strict=True)}


def _verify_jobs(
    works: Sequence[Place],
    converted: Mapping[Place, Converted],
    tree: Tree,
    outputs: Mapping[str, Path],
    settings: Settings,
    crew: _Crew,
) -> list[VerifyJob]:
    return [
        VerifyJob(
            tree.path(place), outputs[name] / place, name, settings, crew.cores, found=converted[name, place].found
        )
        for name, place in works
    ]


def _joined(kernels: Sequence[KernelReport], verified: Mapping[str, Any] | None) -> Iterator[KernelReport]:
    """A conversion's reports, each with what verification of it says; what kept or broke verification is in all."""
    if verified is None:
        yield from kernels
        return
    found = {(report.kernel, report.launch): report for report in reports_from_json(verified["kernels"])}
    broken = converted_from_json({"text": None, "kernels": [], "diagnostics": verified["diagnostics"]}).diagnostics
    for report in kernels:
        seen = found.get((report.kernel, report.launch))
        if report.status != "converted" or (seen is None and not broken):
            yield report
        elif seen is None:
            yield replace(report, diagnostics=(*report.diagnostics, *broken))
        else:
            told = tuple(dict.fromkeys((*report.diagnostics, *seen.diagnostics)))
            yield replace(seen, rules=report.rules, diagnostics=told)


# ---------------------------------------------------------------------------------------------------- details


def _conversion_facts(settings: Settings) -> dict[str, Any]:
    launches = None if settings.launches is None else [launch_to_json(each) for each in settings.launches]
    chosen = {"only": sorted(settings.only), "without": sorted(settings.without), "timeout": settings.timeout}
    return {"launches": launches, "root": str(settings.root), **chosen}


def _conversion_key(work: Place, tree: Tree, settings: Settings, *, compiled: bool) -> str:
    return _key("convert", work, tree.digest, {**_conversion_facts(settings), "compiled": compiled})


def _key(step: str, work: Place, content: str, facts: Mapping[str, Any]) -> str:
    """A digest of all that a job's result depends on."""
    target, place = work
    versions = {name: value for name, value in header().items() if name != "version"}
    text = json.dumps([step, str(place), target, content, facts, versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _written(files: Files, place: PurePosixPath) -> str:
    """A digest of a port and all that it imports of the tree that it was written in."""
    path = files.home / place
    return " ".join(f"{files.name(each)} {files.digest(each)}" for each in (path, *files.imported(path)))


def _is_refused(report: KernelReport) -> bool:
    return report.gluon is not None and not report.gluon.ok


def _limit(settings: Settings) -> float:
    """Seconds after which a file's job hangs, whatever its kernels' own limits do: launches follow each other."""
    files = Counter(launch.file for launch in settings.launches or ())
    launches = max([*files.values(), _FOUND_LAUNCHES])
    each = 2 * settings.timeout + (settings.simulation.timeout if settings.run != "none" else 0.0)
    return _PATIENCE + launches * each


def _broken(job: ConvertJob | VerifyJob, what: str, outcome: Outcome[Any]) -> Diagnostic:
    """A job that did not return: its file stays as it is, or unverified."""
    message = f"Internal error: the file could not be {what} for {job.target}: {outcome.error.rstrip('.')}."
    hint = "This is a bug in tt2gl: please report it, with the file and its launches."
    return Diagnostic("TTG900", Severity.ERROR, str(job.path), 0, 0, message, hint)
