"""A file is converted alike however its path is spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch

TILES = """import triton
import triton.language as tl


@triton.jit
def tile(ptr, rows, columns, stride):
    return tl.load(ptr + rows[:, None] * stride + columns[None, :])
"""
KERNEL = """

@triton.jit
def kernel(a, b, c, K, B: tl.constexpr):
    o = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(tile(a, o, k + o, K), tile(b, k + o, o, B), acc)
    tl.store(c + o[:, None] * B + o[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("spelled", ["folder/../kernel.py", "link/kernel.py"])
def test_a_path_through_other_folders(tmp_path: Path, own: bool, spelled: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    header = TILES.partition("\n\n\n")[0] + "\nfrom tiles import tile\n"
    (tmp_path / "tiles.py").write_text(TILES)
    (tmp_path / "kernel.py").write_text((TILES if own else header) + KERNEL)
    sizes = {"B": 64}
    kinds = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32", "B": "constexpr"}
    launch = Launch(str(tmp_path / "kernel.py"), "kernel", kinds, sizes, ("a", "b", "c", "K"))
    plain, other = (
        convert(tmp_path / path, target="sm90", launches=[launch], root=tmp_path) for path in ("kernel.py", spelled)
    )
    assert [report.status for report in plain.kernels] == ["converted"]
    assert "warpgroup_mma(" in plain.text
    assert other.text == plain.text
