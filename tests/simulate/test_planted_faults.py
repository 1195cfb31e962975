"""No fault is found in a correct kernel, and every planted one is."""

from __future__ import annotations

import pytest

from tests.simulate.faults import FAULTS, Fault
from tests.simulate.kernels import suite
from tests.simulate.running import Job, Ran, run

pytestmark = [pytest.mark.once, pytest.mark.slow]

CASES = suite.cases()


@pytest.fixture(scope="module", params=[0, 1], ids=["normal", "positive"])
def correct(request: pytest.FixtureRequest) -> dict[str, Ran]:
    """Every correct kernel, simulated on the inputs of one seed."""
    outcomes = run([Job(case, seed=request.param) for case in CASES])
    assert {case.name: outcome.error for case, outcome in zip(CASES, outcomes, strict=True) if not outcome.value} == {}
    return {case.name: outcome.value for case, outcome in zip(CASES, outcomes, strict=True) if outcome.value}


def test_nothing_is_found_in_a_correct_kernel(correct: dict[str, Ran]) -> None:
    assert {name: ran.findings for name, ran in correct.items() if ran.findings} == {}


def test_correct_kernels_compute_what_their_references_say(correct: dict[str, Ran]) -> None:
    assert {name: ran.wrong for name, ran in correct.items() if ran.wrong} == {}


def test_schedules_make_no_difference_to_a_correct_kernel(correct: dict[str, Ran]) -> None:
    different = [
        f"{name}: {tensor}"
        for name, ran in correct.items()
        for tensor, late in ran.outputs["late"].items()
        if late.tobytes() != ran.outputs["early"][tensor].tobytes()
    ]
    assert different == []


def test_every_planted_fault_is_found() -> None:
    texts = {fault.name: fault.text(fault.case.path.read_text()) for fault in FAULTS}
    outcomes = run([Job(fault.case, texts[fault.name]) for fault in FAULTS])
    missed = [
        f"{fault.name} ({fault.category}): {_told(outcome.value, outcome.error)}"
        for fault, outcome in zip(FAULTS, outcomes, strict=True)
        if outcome.value is None or not outcome.value.kinds & fault.finds
    ]
    assert missed == []


def test_findings_are_at_lines_of_the_kernel() -> None:
    chosen = [fault for fault in FAULTS if fault.category in ("missing wait", "missing fence", "store out of bounds")]
    outcomes = run([Job(fault.case, fault.text(fault.case.path.read_text())) for fault in chosen])
    for fault, outcome in zip(chosen, outcomes, strict=True):
        lines = [line for _, line, _ in outcome.value.findings] if outcome.value else []
        assert any(_inside(fault, line) for line in lines), f"{fault.name}: {lines}"


def _told(ran: Ran | None, error: str) -> str:
    return error if ran is None else f"found {sorted(ran.kinds) or 'nothing'}"


def _inside(fault: Fault, line: int) -> bool:
    """Whether a line is one of the faulty file's statements."""
    lines = fault.case.path.read_text().splitlines()
    return 0 < line <= len(lines) and bool(lines[line - 1].strip())
