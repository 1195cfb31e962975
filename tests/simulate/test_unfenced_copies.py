"""What cp.async brought, read through the async proxy with no fence: a fault where Triton fences it itself."""

from __future__ import annotations

import pytest

from tests.simulate.faults import FAULTS
from tests.simulate.running import Job, run

pytestmark = pytest.mark.once

(FAULT,) = (fault for fault in FAULTS if fault.name == "wgmma_cp_async_not_fenced")


@pytest.mark.parametrize("fenced", [True, False])
def test_a_missing_fence_behind_copies(fenced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tt2gl.simulate.ops.async_copies.fences_copies", lambda: fenced)
    (outcome,) = run([Job(FAULT.case, FAULT.text(FAULT.case.path.read_text()))])
    assert outcome.value is not None, outcome.error
    assert outcome.value.kinds == ({"missing-fence"} if fenced else set())
    assert not outcome.value.wrong
