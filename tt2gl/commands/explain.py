"""`tt2gl explain`: why a line became what it is, what else was weighed, and Triton's own choice."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tt2gl.commands.common import Run, given_launches, known_target, print_json, project_config

if TYPE_CHECKING:
    from tt2gl.config import Config
    from tt2gl.explain.api import Explanation


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `explain` alone."""
    place_help = "a file with Triton kernels, or a port of one; with a line, what was decided there"
    parser.add_argument("place", metavar="FILE[:LINE]", help=place_help)
    target_help = "architecture, such as sm90 (default: the GPU present, else sm90)"
    parser.add_argument("--target", metavar="T", help=target_help)


def run(arguments: argparse.Namespace, run: Run) -> None:
    """Convert the file, and tell what was decided."""
    place = re.fullmatch(r"(?P<file>.*?)(?::(?P<line>\d+))?", arguments.place)
    assert place is not None
    file, line = place["file"], int(place["line"] or 0)
    with run.reporting(file):
        from tt2gl.explain.api import at_line, at_port_line, explain
        from tt2gl.files import read_if_there
        from tt2gl.report.document import header
        from tt2gl.report.progress import progress

        config = project_config()
        original, of_port = _original(file, config)
        launches, root = given_launches(arguments, config)
        target = known_target(arguments.target or of_port or config.target)
        with progress(f"explaining {file}"):
            found = explain(original, target=target, launches=launches, root=root, timeout=arguments.timeout)
        choices = list(found.choices)
        if line and original != file:
            text = read_if_there(Path(file)) or found.conversion.text
            choices = at_port_line(choices, original, found.conversion.original, text, line)
        elif line:
            choices = at_line(choices, original, line)
        if arguments.json:
            print_json({**header(), "target": found.target, "choices": [asdict(one) for one in choices]})
            return
        sys.stdout.write("".join(f"{each}\n" for each in lines(choices)))
        if not choices:
            where = f"{file}:{line}" if line else file
            sys.stdout.write(f"{where}: nothing was to be decided here for {found.target}\n")


def _original(file: str, config: Config) -> tuple[str, str | None]:
    """The file that a port was made of, as the lock or its name says, and its target where that is known."""
    from tt2gl.check.lock import NAME, Lock, read_lock
    from tt2gl.check.ports import original_of
    from tt2gl.check.project import Files, find_home

    home = find_home(Path.cwd(), config.folder)
    files, lock = Files(home, None), read_lock(home / NAME) or Lock()
    original = original_of(Path(file), files, lock)
    if original is None:
        return file, None
    port = lock.ports.get(files.name(Path(file)))
    return os.path.relpath(original), port.target if port is not None else None


def lines(choices: Sequence[Explanation]) -> Iterator[str]:
    """What a person is told: the choices of each place under its source."""

    def place(one: Explanation) -> tuple[str, int, int, str, str]:
        return one.file, one.line, one.column, one.text, one.kernel

    for (file, line, _, text, kernel), group in groupby(sorted(choices, key=place), key=place):
        yield f"{file}:{line}: {text}  ({kernel})"
        for one in group:
            yield f"    {one.kind}: {one.chosen}"
            yield f"        why: {one.why}"
            yield from (f"        weighed: {other}." for other in one.weighed)
            yield from _under(one)


def _under(one: Explanation) -> Iterator[str]:
    """What differs between launches: those of which the same is said in one line."""
    said: dict[tuple[str, str], list[int]] = {}
    for under in one.launches:
        said.setdefault((under.facts, under.triton), []).append(under.launch)
    for (facts, triton), launches in said.items():
        if facts or triton:
            numbers = ", ".join(map(str, dict.fromkeys(launches)))
            beside = f"Triton: {triton}" if triton else ""
            yield f"        launch {numbers}: {'; '.join(filter(None, (facts, beside)))}"
