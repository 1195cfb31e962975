"""What is missing is named, with a remedy; only what a conversion needs makes the installation unhealthy."""

from __future__ import annotations

import json

import pytest

from tt2gl import doctor
from tt2gl.doctor import diagnose
from tt2gl.targets import TARGETS


def test_this_installation_can_convert() -> None:
    found = diagnose()
    assert found.healthy
    assert found.versions["triton"]
    assert found.versions["libcst"]
    assert found.targets["sm90"]
    assert set(found.targets) == set(TARGETS)
    assert found.ptxas is not None
    assert found.ptxas.startswith("V")


def test_it_is_json() -> None:
    document = json.loads(json.dumps(diagnose().to_json()))
    assert document["healthy"] is True
    assert document["targets"]["gfx942"] is True


@pytest.mark.parametrize("package", ["triton", "libcst"])
def test_a_missing_package_is_unhealthy_and_has_a_remedy(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == package else real(name))
    found = diagnose()
    assert not found.healthy
    (advice,) = [advice for advice in found.advice if advice.required]
    assert advice.missing == package
    assert "pip install" in advice.remedy


def test_a_triton_that_does_not_import_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ImportError("libtriton.so")

    monkeypatch.setattr(doctor, "_import_triton", fail)
    found = diagnose()
    assert not found.healthy
    assert not any(found.targets.values())


def test_a_gpu_without_torch_gets_advice_but_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "torch" else real(name))
    monkeypatch.setattr(doctor, "present_architecture", lambda: "sm90")
    found = diagnose()
    assert found.healthy
    assert [advice.missing for advice in found.advice] == ["torch"]
