"""Outcomes of jobs that outlive the process that did them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tt2gl.children import Outcome
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.isolate import map_isolated, remembering
from tt2gl.ledger import Ledger


@dataclass(frozen=True)
class Named:
    """An argument."""

    name: str


def double(value: int) -> int:
    with Path("calls").open("a") as calls:
        calls.write(f"{value}\n")
    if value == 13:
        os.abort()
    return 2 * value


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def doubled(*values: int) -> list[Any]:
    with remembering(Ledger(Path("parts", "ledger"))):
        return [outcome.value for outcome in map_isolated(double, [(value,) for value in values])]


def calls() -> list[str]:
    return sorted(Path("calls").read_text().split())


def test_nothing_is_remembered_without_a_ledger() -> None:
    for _ in range(2):
        map_isolated(double, [(1,)])
    assert calls() == ["1", "1"]
    assert not Path("parts").exists()


def test_other_arguments_and_functions_are_others() -> None:
    ledger = Ledger(Path("ledger"))
    ledger.note(double, (Named("a"),), Outcome("ok", 1))
    known = Ledger(Path("ledger"))
    assert known.recall(double, (Named("b"),)) is None
    assert known.recall(calls, (Named("a"),)) is None
    assert known.recall(double, (Named("a"),)) == Outcome("ok", 1)


def test_what_crashed_or_was_late_is_tried_again() -> None:
    for _ in range(2):
        assert doubled(13) == [None]
    assert calls() == ["13", "13"]


@pytest.mark.parametrize("value", [os.getcwd, print, eval], ids=["posix", "print", "eval"])
def test_only_values_are_read(value: Callable[..., Any]) -> None:
    Ledger(Path("ledger")).note(double, (1,), Outcome("ok", value))
    assert Ledger(Path("ledger")).recall(double, (1,)) is None


def test_a_pickle_that_calls_is_not_read() -> None:
    class Bad:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, ("made",)

    Ledger(Path("ledger")).note(double, (1,), Outcome("ok", Bad()))
    assert b"mkdir" in Path("ledger").read_bytes()
    assert Ledger(Path("ledger")).recall(double, (1,)) is None
    assert not Path("made").exists()


def test_what_is_known_is_not_done_again() -> None:
    seen: list[int] = []
    assert doubled(1, 2) == [2, 4]
    with remembering(Ledger(Path("parts", "ledger"))):
        outcomes = map_isolated(double, [(1,), (3,), (2,)], on_done=lambda index, _: seen.append(index))
    assert [outcome.value for outcome in outcomes] == [2, 6, 4]
    assert sorted(seen) == [0, 1, 2]
    assert calls() == ["1", "2", "3"]


def test_values_come_back_as_they_were() -> None:
    told = Diagnostic("TTG301", Severity.WARNING, "k.py", 3, 4, "A cause.", "Do this.")
    value = {"told": (told, Path("k.py")), "names": frozenset({"a"}), "x": float("inf")}
    Ledger(Path("ledger")).note(double, (1,), Outcome("error", value, "said"))
    assert Ledger(Path("ledger")).recall(double, (1,)) == Outcome("error", value, "said")


@pytest.mark.parametrize("cut", [1, 9, 60])
def test_what_was_cut_short_is_done_again(cut: int) -> None:
    doubled(1)

    doubled(2)
    content = Path("parts", "ledger").read_bytes()
    Path("parts", "ledger").write_bytes(content[:-cut])
    assert doubled(1, 2) == [2, 4]
    assert calls() == ["1", "2", "2"]
    assert Path("parts", "ledger").read_bytes() == content


def test_a_disk_that_is_full_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    assert doubled(1) == [2]
    assert not Path("parts").exists()


def test_pickles_of_another_time_are_done_again() -> None:
    Ledger(Path("ledger")).note(double, (1,), Outcome("ok", 2))
    content = Path("ledger").read_bytes()
    Path("ledger").write_bytes(content.replace(b"tt2gl.children", b"tt2gl.childrex"))
    assert content.count(b"tt2gl.children") == 1
    assert Ledger(Path("ledger")).recall(double, (1,)) is None
