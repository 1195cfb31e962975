"""The corpus in the simulator: Triton's kernels agree with torch, and every conversion with its original."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.simulated import FAMILIES, conversion, has_products, jobs, original, simulate_alone, small_launches
from tt2gl.isolate import map_isolated, preload
from tt2gl.results import SimulateResult
from tt2gl.verify.inputs import Inputs, make_inputs
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import simulate_many

# Converting a product takes Triton's whole compiler, for each launch; simulating one takes seconds.
_BY_WEIGHT = [pytest.param(name, marks=[pytest.mark.slow] if has_products(name) else []) for name in FAMILIES]


@pytest.mark.parametrize("target", ["sm90", pytest.param("gfx942", marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", _BY_WEIGHT)
def test_conversions_are_equal_bit_for_bit(family: str, target: str, shared: Path) -> None:
    made = conversion(family, target, shared)
    kept = [report for report in made.kernels if report.status != "converted"]
    # Products without an instruction of ours yet; descriptors from the host where there is no TMA.
    assert {report.diagnostics[-1].code for report in kept} <= {"TTG302", "TTG304"}
    assert not kept or has_products(family)
    cases = jobs(family, target, made)
    runs = simulate_many(cases, SimulationOptions(seeds=1), workers=1)
    found = {
        (case.original.launch.kernel, number): run for number, (case, run) in enumerate(zip(cases, runs, strict=True))
    }
    assert {name: run for name, run in found.items() if run.result != SimulateResult(True, True, 0.0)} == {}


@pytest.mark.parametrize("family", _BY_WEIGHT)
def test_kernels_agree_with_their_references(family: str) -> None:
    pytest.importorskip("torch")
    preload()
    launches = small_launches(family)
    inputs = [make_inputs(launch, seed) for seed, launch in enumerate(launches)]
    arguments = [
        (original(family, launch, "sm90"), "sm90", given) for launch, given in zip(launches, inputs, strict=True)
    ]
    problems = {}
    for number, outcome in enumerate(map_isolated(simulate_alone, arguments, workers=1)):
        assert outcome.value is not None, (launches[number].kernel, outcome.error)
        problems[launches[number].kernel, number] = list(off(family, launches[number], inputs[number], outcome.value))
    assert {name: told for name, told in problems.items() if told} == {}


def off(family: str, launch: Any, inputs: Inputs, after: Any) -> Any:
    """Each way in which the tensors differ from what the reference expects."""
    from corpus.references import REFERENCES, tolerance
    from tt2gl.verify.tensors import to_device

    before = to_device(inputs, "cpu").buffers
    arguments = {**inputs.scalars, **{name: buffer.view for name, buffer in before.items()}}
    expected = REFERENCES[family, launch.kernel](arguments, launch.constexprs)
    ends = {
        name: replace(inputs.tensors[name], elements=elements.view(inputs.tensors[name].elements.dtype))
        for name, elements in after.items()
    }
    now = to_device(Inputs(ends, {}, {}), "cpu").buffers
    for name, was in before.items():
        wanted, got = expected.get(name, was.view).double(), now[name].view.double()
        allowed = tolerance(family, launch.kernel, name, was.view.dtype)
        error = (got - wanted).abs() - allowed.relative * wanted.abs() - allowed.absolute
        same = (got == wanted) | (got.isnan() & wanted.isnan())
        wrong = ~((error <= 0) | same)
        if wrong.any():
            yield f"{name}: {int(wrong.sum())} of {wrong.numel()} off, by up to {float(error.max()):.3g}"
