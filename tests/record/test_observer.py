"""The observer in this process: what it does where there is a GPU, and what it makes of values."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from enum import Enum, IntEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tt2gl.record.observer import kernels, values
from tt2gl.record.observer.journal import Journal
from tt2gl.record.observer.values import NoPlaceError, constant

KERNELS = Path(__file__).parent.parent / "fixtures" / "record" / "kernels.py"


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, bool]]:
    """Launches that reach Triton, on a machine that seems to have a GPU: each with its grid, and whether a warm-up."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    ran: list[tuple[Any, bool]] = []

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> str:
        ran.append((grid, warmup))
        return "compiled"

    monkeypatch.setattr(JITFunction, "run", run)
    active = SimpleNamespace(get_current_target=lambda: GPUTarget("cuda", 90, 32))
    monkeypatch.setattr(driver, "_active", active)
    return ran


def load_kernels() -> ModuleType:
    """The fixture's module, anew."""
    spec = importlib.util.spec_from_file_location("kernels_of_record", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launches(journal: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line["launch"] for line in lines if "launch" in line]


def test_with_a_gpu_kernels_run_as_ever(launched: list[tuple[Any, bool]], tmp_path: Path) -> None:
    kernels.observe(Journal(str(tmp_path / "journal")), None)
    module = load_kernels()
    tensor = module.Tensor("uint16", 8)
    flags = [1, 1, True, 1.0, 1]
    for flag in flags:
        call = module.values_kernel[(3,)]
        assert call((tensor, 3), None, 1, 0.5, flag, TYPE=1, FUNCTION=2, LIMITS=3) == "compiled"
    assert launched == [((3,), False)] * len(flags)
    assert [launch["signature"]["flag"] for launch in launches(tmp_path / "journal")] == ["constexpr", "u1", "fp32"]


def test_launches_of_tensors_that_differ_in_alignment_alone(launched: list[tuple[Any, bool]], tmp_path: Path) -> None:
    kernels.observe(Journal(str(tmp_path / "journal")), None)
    module = load_kernels()
    for address in (4096, 4096, 8192, 4100):
        tensor = module.Tensor("int32", 8, values=[1, 2], address=address)
        module.tiles_kernel[lambda meta: (meta["BLOCK"],)](tensor, BLOCK=3)
    found = launches(tmp_path / "journal")
    assert [(launch["grid"], launch["divisible_by_16"]) for launch in found] == [([3, 1, 1], ["tile"]), ([3, 1, 1], [])]


def test_a_launch_that_does_not_bind_is_tritons_to_refuse(launched: list[tuple[Any, bool]], tmp_path: Path) -> None:
    import triton.language.standard as standard

    kernels.observe(Journal(str(tmp_path / "journal")), None)
    assert standard.cdiv[(1,)](1, 2, 3) == "compiled"
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [list(line) for line in lines] == [["triton"], ["refused"]]
    assert launched == [((1,), False)]


class Color(Enum):
    RED = 1


class Name(str):
    """Looks like a string, and a kernel would see what it really is."""


class Level(IntEnum):
    HIGH = 2


@pytest.mark.parametrize("value", [Color.RED, Name("x"), object(), {"a": 1}, (1, object())])
def test_values_without_a_place_are_refused(value: Any) -> None:
    with pytest.raises(NoPlaceError):
        constant(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [(True, True), (3, 3), (2.5, 2.5), ("a", "a"), ([1, (2,)], [1, {"tuple": [2]}]), (float("nan"), {"float": "nan"})],
)
def test_values_with_a_place(value: Any, written: Any) -> None:
    assert constant(value) == written


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("torch.bfloat16", "bfloat16"), ("fp8e4nv", "float8_e4m3fn"), ("int1", "bool"), ("int32", "int32")],
)
def test_dtypes_have_torchs_names(dtype: str, name: str) -> None:
    assert values.dtype_name(dtype) == name


def descriptors() -> list[str]:
    """Those that this process has open."""
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_a_full_disk_loses_a_launch_and_does_not_end_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, full = os.write, [True]

    def on_a_full_disk(descriptor: int, data: bytes) -> int:
        if full and full.pop():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr("tt2gl.record.observer.journal.os.write", on_a_full_disk)
    before = descriptors()
    for number in (1, 2):
        Journal(str(tmp_path / "journal")).append({"launch": number})
    assert full == []
    assert (tmp_path / "journal").read_text() == '{"launch": 2}\n'
    assert descriptors() == before
