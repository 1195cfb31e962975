"""torch's own calls on a machine without a GPU, while launches are recorded."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tt2gl.launches import TensorArg
from tt2gl.record import api
from tt2gl.record.api import record

SCRIPT = Path(__file__).parent.parent / "fixtures" / "record" / "torch_ops.py"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


@pytest.mark.slow
def test_host_code_for_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "present_architecture", lambda: None)
    with (tmp_path / "printed").open("w") as printed:
        out = tmp_path / "L.json"
        command = [sys.executable, str(SCRIPT)]
        recording = record(command, out, root=SCRIPT.parent, target="sm90", stdout=printed)
    assert (tmp_path / "printed").read_text() == "done\n"
    assert recording.exit_code == 0
    assert [(launch.grid, launch.constexprs) for launch in recording.launches] == [
        ((4, 1, 1), {"BLOCK": 64}),
        ((132, 1, 1), {"BLOCK": 128}),
    ]
    for launch in recording.launches:
        assert launch.args is not None
        assert launch.args["index_ptr"] == TensorArg("int64", (256,), (1,), (0, 255))
        assert launch.args["out_ptr"] == TensorArg("float32", (256,), (1,))
