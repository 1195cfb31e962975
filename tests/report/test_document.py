"""The JSON document: a key whose step did not run is absent, and the text is strict JSON."""

from __future__ import annotations

import json
from typing import Any

import tt2gl
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.document import FileEntry, document
from tt2gl.results import CompileResult, DeviceResult, KernelReport, Metrics, SimulateFinding, SimulateResult


def kernel(**fields: Any) -> KernelReport:
    defaults: dict[str, Any] = {"file": "k.py", "kernel": "k", "target": "sm90", "launch": 0, "status": "converted"}
    return KernelReport(**(defaults | fields))


def test_steps_that_did_not_run_are_absent() -> None:
    found = document([kernel()], seconds=1.23456)
    assert set(found) == {"version", "tt2gl", "triton", "seconds", "kernels", "summary"}
    assert (found["version"], found["tt2gl"], found["seconds"]) == (1, tt2gl.__version__, 1.235)
    assert found["kernels"] == [
        {
            "file": "k.py",
            "kernel": "k",
            "target": "sm90",
            "launch": 0,
            "status": "converted",
            "rules": [],
            "diagnostics": [],
        }
    ]
    assert found["summary"] == {"converted": 1, "kept": 0, "failed": 0}


def test_compile_results() -> None:
    metrics = Metrics(0, 32, 0, 1024, 1, {"128": 4})
    entry = document([kernel(triton=CompileResult(True, metrics), gluon=CompileResult(False, error="no"))], seconds=0)
    compiled = entry["kernels"][0]["compile"]
    assert compiled["triton"]["ok"] is True
    assert compiled["triton"]["metrics"]["global_loads"] == {"128": 4}
    assert compiled["gluon"] == {"ok": False, "metrics": {}, "error": "no"}


def test_runs_are_counted() -> None:
    ran = [DeviceResult("GPU", equal, equal, 0.0 if equal else float("inf"), 1.0, 0.5) for equal in (True, False)]
    found = document([kernel(device=result) for result in ran] + [kernel(status="kept")], seconds=0)
    assert found["summary"] == {"converted": 2, "kept": 1, "failed": 0, "equal": 1, "not_equal": 1}
    assert found["kernels"][0]["device"]["speedup"] == 2.0
    assert found["kernels"][1]["device"]["max_error"] == {"float": "inf"}
    json.dumps(found, allow_nan=False)


def test_simulations() -> None:
    fault = SimulateFinding("gluon", "race", "two writes", "g.py", 3, "ring", "g.py", 5)
    results = [SimulateResult(True, True, 0.0), SimulateResult(False, False, float("inf"), (fault,), field=False)]
    found = document([kernel(simulate=result) for result in results], seconds=0)
    one, two = (entry["simulate"] for entry in found["kernels"])
    assert one == {"equal": True, "bitwise": True, "max_error": 0.0, "findings": []}
    assert (two["equal"], two["max_error"]) == (False, {"float": "inf"})
    assert two["findings"][0]["kind"] == "race"
    assert two["findings"][0]["other_line"] == 5
    assert found["summary"]["equal"] == found["summary"]["not_equal"] == 1
    json.dumps(found, allow_nan=False)


def test_files_and_their_diagnostics() -> None:
    diagnostic = Diagnostic("TTG001", Severity.ERROR, "m.py", 0, 0, "no such file.", "Name another.")
    found = document([], seconds=0, diagnostics=[diagnostic], files=[FileEntry("k.py", "k_gluon.py", False)])
    assert found["diagnostics"][0]["severity"] == "error"
    assert found["files"] == [{"file": "k.py", "output": "k_gluon.py", "up_to_date": False}]
