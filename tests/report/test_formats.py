"""Diagnostics for code scanning and for pull requests."""

from __future__ import annotations

import json

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.github import annotation
from tt2gl.report.sarif import sarif

NARROW = Diagnostic("TTG603", Severity.ERROR, "a b.py", 12, 4, "50% of it:\nnarrow, now.", "Look.")
NOTE = Diagnostic("TTG600", Severity.NOTE, "tt2gl.lock", 0, 0, "No lock.")


def test_an_annotation_is_one_line_with_what_ends_a_field_escaped() -> None:
    expected = "::error file=a b.py,title=TTG603,line=12,col=5::50%25 of it:%0Anarrow, now. Look."
    assert annotation(NARROW) == expected
    assert annotation(NOTE) == "::notice file=tt2gl.lock,title=TTG600::No lock."
    assert "file=x%2Cy%3A.py" in annotation(Diagnostic("TTG600", Severity.NOTE, "x,y:.py", 1, 0, ""))


def test_a_sarif_document() -> None:
    document = json.loads(json.dumps(sarif([NARROW, NOTE])))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert run["tool"]["driver"]["rules"] == [{"id": "TTG600"}, {"id": "TTG603"}]
    narrow, note = run["results"]
    assert (narrow["ruleId"], narrow["ruleIndex"], narrow["level"]) == ("TTG603", 1, "error")
    where = narrow["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "%SRCROOT%"}
    assert where["region"] == {"startLine": 12, "startColumn": 5}
    assert (note["level"], note["ruleIndex"]) == ("note", 0)
    assert "region" not in note["locations"][0]["physicalLocation"]


def test_a_fingerprint_does_not_depend_on_the_line() -> None:
    moved = Diagnostic("TTG603", Severity.ERROR, "a b.py", 30, 4, NARROW.message)
    prints = [result["partialFingerprints"] for result in sarif([NARROW, moved, NOTE])["runs"][0]["results"]]
    assert prints[0] == prints[1] != prints[2]
