"""Why a line became what it is: choices at the author's lines, and at those of ports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_readme import BEFORE, LAUNCHES, README, run
from tt2gl.explain.api import Explained, Explanation, at_line, at_port_line, explain
from tt2gl.launch_file import read_launches

GOLDEN = Path(__file__).parent.parent / "golden"
SECTION = README.partition("### Explain\n")[2].partition("\n### ")[0]
COMMAND, SAID = re.findall(r"^    \$ tt2gl (.*)\n((?:    .*\n)+)", SECTION, re.MULTILINE)[0]


@pytest.fixture(scope="module")
def matmul() -> Explained:
    """The choices of a product in a loop, for sm90."""
    launches = read_launches(GOLDEN / "matmul.launches.json")
    return explain(GOLDEN / "matmul.py", target="sm90", launches=launches, root=GOLDEN)


def number(text: str, words: str) -> int:
    """The line of a text that has the words."""
    (found,) = (place for place, line in enumerate(text.splitlines(), 1) if words in line)
    return found


def here(explained: Explained, words: str) -> list[Explanation]:
    """What is said of the author's line with the words."""
    conversion = explained.conversion
    return at_line(explained.choices, conversion.path, number(conversion.original, words))


def behind(explained: Explained, words: str) -> list[Explanation]:
    """What is said of the port's line with the words."""
    conversion = explained.conversion
    place = number(conversion.text, words)
    return at_port_line(explained.choices, conversion.path, conversion.original, conversion.text, place)


@pytest.mark.slow
def test_a_line_without_choices_has_none(matmul: Explained) -> None:
    assert here(matmul, "import triton.language as tl") == []
    assert behind(matmul, "import triton.language as tl") == []


def test_an_instruction_and_what_it_rests_on(matmul: Explained) -> None:
    (product,) = (one for one in here(matmul, "tl.dot(") if one.kind == "instruction")
    assert product.text == "tl.dot(a, b, acc)"
    assert product.chosen.startswith("wgmma, its sum in mma_layout = gl.NVMMADistributedLayout(")
    assert [under.launch for under in product.launches] == [0, 1]
    assert product.launches[0].facts == "128x64 f16 by 64x128 f16, 8 warps"
    assert product.launches[0].triton.startswith("wgmma, #ttg.nvidia_mma<versionMajor = 3")


def test_a_ring_and_what_was_left(matmul: Explained) -> None:
    (ring,) = here(matmul, "a = tl.load(a_ptrs")
    assert ring.kind == "buffer"
    assert "a ring a_buf" in ring.chosen
    assert "taken in place by the product" in ring.chosen
    assert "rule `pipeline` off" in ring.weighed[0]
    assert ring.launches[0].triton.startswith("3 buffers of 128x64, #ttg.nvmma_shared<")


def test_a_conversion_and_its_cost(matmul: Explained) -> None:
    said = {one.kind: one for one in here(matmul, "tl.store(c_ptrs")}
    assert said["conversion"].chosen == "from mma_layout to c_layout"
    assert said["conversion"].launches[0].facts == "16384 elements, 32768 bytes a program"
    assert said["layout"].chosen.startswith("c_layout = coalesced([BLOCK_M, BLOCK_N], [1, 0]")
    assert "gl.BlockedLayout([1, 8], [2, 16], [8, 1], [1, 0])" in said["layout"].launches[0].triton


def test_what_is_computed_once_for_each_reader(matmul: Explained) -> None:
    chosen = [one.chosen for one in here(matmul, "offs_m = ") if one.text == "offs_m"]
    assert chosen == ["`offs_m` in gl.SliceLayout(1, a_layout)", "`offs_m` in gl.SliceLayout(1, c_layout)"]


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ("a_buf = gl.allocate_shared_memory(", "a = tl.load(a_ptrs", "buffer"),
        ("async_load(a_buf.index(free_slot)", "a = tl.load(a_ptrs", "buffer"),
        ("acc = warpgroup_mma(a, b, acc", "tl.dot(", "instruction"),
        ("gl.store(c_ptrs", "tl.store(c_ptrs", "conversion"),
        ("c_layout: gl.constexpr", "tl.store(c_ptrs", "layout"),
    ],
)
def test_a_line_of_the_port(matmul: Explained, ours: str, theirs: str, kind: str) -> None:
    wanted = [one for one in here(matmul, theirs) if one.kind == kind]
    assert wanted
    assert [one for one in behind(matmul, ours) if one.kind == kind] == wanted


SORT = """\
import triton
import triton.language as tl


@triton.jit
def merge_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.standard.sort_impl(tl.load(x_ptr + offsets)))
"""

MEETING = """\
import triton
import triton.language as tl


@triton.jit
def meeting_kernel(x_ptr, y_ptr, out_ptr, stride, SIZE: tl.constexpr):
    rows = tl.arange(0, SIZE)
    columns = tl.arange(0, SIZE)
    x = tl.load(x_ptr + rows[:, None] * stride + columns[None, :])
    y = tl.load(y_ptr + rows[:, None] + columns[None, :] * stride)
    tl.store(out_ptr + rows[:, None] * stride + columns[None, :], x + y)
"""


def test_why_a_kernel_stays(tmp_path: Path) -> None:
    (tmp_path / "sort.py").write_text(SORT)
    (kept,) = explain(tmp_path / "sort.py", target="sm90").choices
    assert (kept.kind, kept.line) == ("kept", 8)
    assert kept.why.startswith("TTG301 It uses `tl.standard.sort_impl`.")


def test_where_two_layouts_meet(tmp_path: Path) -> None:
    (tmp_path / "meeting.py").write_text(MEETING)
    found = here(explain(tmp_path / "meeting.py", target="sm90"), "x + y)")
    (sum_,) = (one for one in found if one.text == "x + y")
    (moved,) = (one for one in found if one.kind == "conversion")
    assert moved.text == "y"
    assert sum_.weighed == (f"{moved.chosen.removeprefix('from ').partition(' to ')[0]}, which another operand has",)


def test_what_the_readme_shows(tmp_path: Path) -> None:
    text = f"import torch\nimport triton\nimport triton.language as tl\n\n\n{BEFORE}"
    (tmp_path / "softmax.py").write_text(text)
    (tmp_path / "launches.json").write_text(LAUNCHES)
    assert run(tmp_path, COMMAND) == re.sub(r"^    ", "", SAID, flags=re.MULTILINE).strip()
