"""The hooks in a throw-away repository, run by pre-commit itself: what regresses is stopped, the rest goes through.

Skipped where pre-commit is not installed. The hooks run this checkout, so that nothing is installed for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.test_check import ADD, LAUNCH

PRE_COMMIT = shutil.which("pre-commit") or shutil.which("pre-commit", path=str(Path(sys.executable).parent))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PRE_COMMIT is None or shutil.which("git") is None, reason="needs pre-commit and git"),
]

CONFIG = """\
repos:
  - repo: {hooks}
    rev: {revision}
    hooks:
      - {{id: tt2gl-check, language: system}}
      - {{id: tt2gl-convert-check, language: system}}
"""


class Repository:
    """A git repository, and what its commits say."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.path = path
        self.environment = environment
        path.mkdir()
        self.run("git", "init", "--quiet")

    def ran(self, *command: str) -> subprocess.CompletedProcess[str]:
        """What came of a command in the repository."""
        return subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False)

    def run(self, *command: str) -> str:
        """What a command prints, which is to succeed."""
        done = self.ran(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def commit(self, message: str) -> tuple[bool, str]:
        """Whether everything as it is could be committed, and what was said."""
        self.run("git", "add", "--all")
        done = self.ran("git", "commit", "--quiet", "--message", message)
        return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def environment(tmp_path: Path, repository: Path) -> dict[str, str]:
    """Nothing of the user's: identities, caches and a `tt2gl` that is this checkout."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "tt2gl"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{repository}" exec "{sys.executable}" -m tt2gl "$@"\n')
    script.chmod(0o755)
    who = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    assert PRE_COMMIT is not None
    path = os.pathsep.join([str(programs), str(Path(PRE_COMMIT).parent), os.environ["PATH"]])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    return {**inherited, **who, "PATH": path, "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "cache")}


@pytest.fixture
def project(tmp_path: Path, repository: Path, environment: dict[str, str]) -> Repository:
    """A project with a kernel, its lock, and both hooks installed."""
    hooks = Repository(tmp_path / "hooks", environment)
    shutil.copy(repository / ".pre-commit-hooks.yaml", hooks.path)
    assert hooks.commit("hooks")[0]
    made = Repository(tmp_path / "project", environment)
    config = CONFIG.format(hooks=hooks.path, revision=hooks.run("git", "rev-parse", "HEAD"))
    (made.path / ".pre-commit-config.yaml").write_text(config)
    (made.path / "pyproject.toml").write_text('[tool.tt2gl]\ntarget = "sm90"\nlaunches = "launches.json"\n')
    (made.path / "launches.json").write_text(json.dumps({"version": 1, "launches": [LAUNCH]}))
    (made.path / "add.py").write_text(ADD)
    made.run("tt2gl", "check", "--update")
    assert PRE_COMMIT is not None
    made.run(PRE_COMMIT, "install")
    accepted, said = made.commit("a kernel and its lock")
    assert accepted, said
    return made


def test_a_commit_that_regresses_is_stopped_and_another_goes_through(project: Repository) -> None:
    kernel = project.path / "add.py"
    kernel.write_text(ADD.replace("    mask =", "    # the last block may be a short one\n    mask ="))
    accepted, said = project.commit("a comment")
    assert accepted, said

    kernel.write_text(ADD.replace("tl.arange", "2 * tl.arange"))
    accepted, said = project.commit("every other element")
    assert not accepted
    assert "add.py:9:0: TTG603 add_kernel (sm90, launch 0): A global load of 128 bits is 32 bits wide now." in said
    assert project.run("git", "log", "--format=%s", "-1") == "a comment"

    project.run("tt2gl", "check", "--update")
    accepted, said = project.commit("every other element, on purpose")
    assert accepted, said


def test_a_port_that_is_behind_is_stopped(project: Repository) -> None:
    project.run("tt2gl", "convert", "add.py")
    project.run("tt2gl", "check", "--update")
    accepted, said = project.commit("its port")
    assert accepted, said

    (project.path / "add.py").write_text(ADD.replace(" + 1", " + 2"))
    accepted, said = project.commit("another sum")
    assert not accepted
    assert "TTG610 add.py has changed since this was made of it." in said
    assert "add_gluon.py would change" in said

    project.run("tt2gl", "convert", "add.py")
    accepted, said = project.commit("another sum, ported")
    assert accepted, said
