"""Targets are found by name, by the GPU present, and by what the installed Triton compiles."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.host import facts
from tt2gl.record.devices import device_of
from tt2gl.targets import TARGETS, get_target, gpu, probe, supported
from tt2gl.targets.base import Device, Target


def test_an_unknown_target_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(DiagnosticError) as caught:
        get_target("sm75")
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.diagnostic.code == "TTG010"
    assert all(name in caught.value.diagnostic.hint for name in TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_is_found_by_its_name(name: str) -> None:
    assert get_target(name).name == name


@pytest.mark.parametrize("name", ["sm80", "sm90", "gfx942"])
def test_the_installed_triton_compiles_for_the_common_targets(name: str) -> None:
    assert supported(get_target(name))


def test_a_target_triton_does_not_know_is_unsupported() -> None:
    bogus = Target("sm999", "cuda", 999, 32, 1, "no such thing", Device("none", 1, 1))
    assert probe((bogus,)) == {"sm999": False}


def test_no_device_files_is_no_gpu_and_cheap(tmp_path: Path) -> None:
    start = time.process_time()
    assert gpu.present_architecture(tmp_path, tmp_path) is None
    assert time.process_time() - start < 0.05


@pytest.mark.parametrize(
    ("version", "name"),
    [(90402, "gfx942"), (90500, "gfx950"), (110000, "gfx1100"), (120001, "gfx1201"), (90010, "gfx90a")],
    ids=str,
)
def test_amd_gpus_are_read_from_the_topology(tmp_path: Path, version: int, name: str) -> None:
    for node, number in (("0", 0), ("1", version)):
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_text(f"cpu_cores_count 4\ngfx_target_version {number}\n")
    (tmp_path / "kfd").touch()
    assert gpu.present_architecture(tmp_path, tmp_path) == name


@pytest.mark.parametrize("name", TARGETS)
def test_host_code_that_is_read_and_host_code_that_is_recorded_see_one_gpu(name: str) -> None:
    read, played = facts.device(name), device_of(TARGETS[name])
    seen = [(gpu.name, gpu.backend, gpu.arch, gpu.warp_size) for gpu in (read, played)]
    assert seen[0] == seen[1]
    assert read.processors == played.multiprocessors
    assert read.shared_bytes == played.shared_memory_bytes
    major = {"sm80": 8, "sm90": 9, "sm100": 10, "sm120": 12, "gfx1100": 11, "gfx1201": 12, "gfx1250": 12}
    assert read.capability[0] == major.get(name, 9)
