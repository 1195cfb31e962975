"""What `tt2gl doctor` prints."""

from __future__ import annotations

from tt2gl.report.installation import installation_text


def test_facts_targets_and_what_is_missing() -> None:
    text = installation_text({"triton": "3.7.1", "GPU": None}, {"sm90": True, "gfx1250": False}, ["a GPU, for X. Y."])
    assert text == ("triton    3.7.1\nGPU       none\ntargets   sm90\nnot here  gfx1250\n\nmissing: a GPU, for X. Y.\n")
