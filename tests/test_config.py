"""tt2gl.config: the project's defaults, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.config import CheckConfig, Config, read_config
from tt2gl.diagnostics import DiagnosticError, ExitCode


def test_no_table_no_defaults(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read_config(tmp_path) == Config()


def test_the_nearest_table_wins_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.tt2gl]\ntarget = "gfx942"\nlaunches = "l.json"\nroot = "src"\nno = ["row_cache"]\n'
    )
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.ruff]\n")
    expected = Config("gfx942", tmp_path / "l.json", tmp_path / "src", frozenset({"row_cache"}), folder=tmp_path)
    assert read_config(inner) == expected


def test_what_check_is_told(tmp_path: Path) -> None:
    text = '[tool.tt2gl.check]\nfiles = ["k/*.py"]\ntargets = ["sm90", "gfx942"]\nshared = 1\n'
    (tmp_path / "pyproject.toml").write_text(text)
    assert read_config(tmp_path).check == CheckConfig(("k/*.py",), ("sm90", "gfx942"), 0.1, 1.0)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param('[tool.tt2gl]\ntarget = "sm90"\ncolor = 1\n', 3, "no key 'color'", id="unknown key"),
        pytest.param("[tool.tt2gl]\ntarget = 90\n", 2, "target must be a string", id="wrong type"),
        pytest.param('[tool.tt2gl]\nno = "row_cache"\n', 2, "list of rule names", id="rules not in a list"),
        pytest.param("[tool.tt2gl]\ncheck = 3\n", 2, "not a table", id="check is no table"),
        pytest.param("[tool.tt2gl.check]\nfiles = 'x'\n", 2, "list of patterns", id="files not in a list"),
        pytest.param("[tool.tt2gl.check]\nregisters = -1\n", 2, "a number, from 0 on", id="a share below nothing"),
        pytest.param("[tool.tt2gl.check]\nspills = 1\n", 2, "no key 'spills'", id="unknown key of check"),
        pytest.param("[tool.tt2gl\n", 1, "is not TOML", id="not TOML"),
        pytest.param("[tool]\ntt2gl = 3\n", 0, "not a table", id="not a table"),
    ],
)
def test_bad_configuration_is_a_usage_error(tmp_path: Path, text: str, line: int, words: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(DiagnosticError) as caught:
        read_config(tmp_path)
    diagnostic = caught.value.diagnostic
    assert caught.value.exit_code == ExitCode.USAGE
    assert (diagnostic.code, diagnostic.line) == ("TTG007", line)
    assert words in diagnostic.message
