"""Warps of their own for copies, products and the rest of a loop on Blackwell, whole kernels compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import converted, equal
from tests.test_persistent import KERNEL
from tests.test_persistent import launch as persistent
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options
from tt2gl.pipelining.partitions import partitioned

PERSISTENT = (
    KERNEL.replace("P):\n", "P, flatten=True, warp_specialize=True):\n")
    .replace("in range(tl.program", "in tl.range(tl.program")
    .replace("            acc = tl.dot(a.load", "            # a step\n            acc = tl.dot(a.load")
)
SINGLE = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, N, K, P: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    row = tl.program_id(0) * B
    acc = tl.zeros((B, B), tl.float32)
    offset = 0
    for _ in tl.range(0, tl.cdiv(K, BK), warp_specialize=P > 1):
        # tiles of rows
        a = a_desc.load([row, offset])
        b = a_desc.load([0, offset])
        # and their product
        acc = tl.dot(a, b.T, acc)
        offset += BK
    c_desc.store([row, 0], acc.to(tl.float16))
"""


def launch(depth: int = 200) -> Launch:
    return persistent(256, depth, block=128, step=64)


def apart(path: Path, text: str, given: Launch) -> tuple[str, list[str]]:
    made, codes = converted(path, text, given, "sm100")
    if codes == ["TTG401"]:
        pytest.skip("this Triton does not compile the loop with warps of its own")
    return made, codes


@pytest.mark.slow
def test_a_persistent_loop(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = apart(path, PERSISTENT, launch())
    assert codes == []
    head, epilogue, products, loads, kernel = made.split("@gluon.jit\ndef kernel")
    assert "tma_load(" not in head + epilogue + products + kernel
    assert loads.count("    tma_load(a, ") == 2
    assert "# a step" in products
    assert "tcgen05_mma(" not in head + epilogue + loads + kernel
    assert epilogue.count("tile(c, ") == 1
    assert (
        "for " not in kernel.partition("gl.warp_specialize(")[0].rpartition("free_acc_bars = ")[0].partition("bars")[0]
    )
    equal(path, PERSISTENT, made, launch(), "sm100")


@pytest.mark.slow
def test_only_what_says_where_tiles_are_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    text = PERSISTENT.replace("        acc = tl.zeros", "        at = 0\n        acc = tl.zeros")
    text = text.replace("[i, k]", "[i, at]").replace("k]).T, acc)\n", "k]).T, acc)\n            at += BK\n")
    stored = "        done += P\n        i, j = done // tiles * B, done % tiles * B\n        c.store"
    text = text.replace("        c.store", stored).replace(
        "    for tile in", "    done = tl.program_id(0) - P\n    for tile in"
    )
    made, codes = apart(path, text, launch())
    assert codes == []
    loads = made.split("@gluon.jit\ndef kernel")[3]
    assert "at += BK" in loads
    assert "done" not in loads
    equal(path, text, made, launch(), "sm100")


@pytest.mark.slow
def test_a_loop_of_no_turns_leaves_zeros(tmp_path: Path) -> None:
    path, given = tmp_path / "kernel.py", launch(64)
    text = PERSISTENT.replace("range(0, K, BK)", "range(64, K, BK)")
    made, codes = apart(path, text, given)
    assert codes == []
    assert "if 64 < K:" in made
    assert "use_acc=k > 64)" in made
    equal(path, text, made, given, "sm100")


@pytest.mark.slow
def test_a_single_loop(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = apart(path, SINGLE, launch())
    assert codes == []
    _, epilogue, products, loads, kernel = made.split("@gluon.jit\ndef kernel")
    assert "# tiles of rows\n        tma_load(a_desc, " in loads
    assert "offset += BK" in loads
    assert "# and their product\n        tcgen05_mma(a, b.permute((1, 0)), acc_tmem, use_acc=step > 0)" in products
    assert epilogue.count("\n    ") == 2
    assert "    if gl.cdiv(K, BK) > 0:\n        acc = acc_tmem.load(" in kernel
    equal(path, SINGLE, made, launch(), "sm100")


@pytest.mark.slow
def test_a_tile_that_is_stored_in_halves(tmp_path: Path) -> None:
    path, given = tmp_path / "kernel.py", replace(launch(), options=Options(8, 3))
    halves = """        left, right = tl.split(tl.permute(tl.reshape(acc, (B, 2, B // 2)), (0, 2, 1)))
        c.store([i, j], left.to(tl.float16))
        c.store([i, j + B // 2], right.to(tl.float16))
"""
    text = PERSISTENT.replace("        c.store([i, j], acc.to(tl.float16))\n", halves).replace(
        "[B, B])", "[B, B // 2])"
    )
    made, codes = apart(path, text, given)
    assert codes == []
    # They are what Triton loads of the sum, and what each thread has of it.
    assert "loaded_in_parts_layout([B, B], gl.num_warps(), 2)" in made
    assert "convert_layout" not in made
    equal(path, text, made, given, "sm100")


@pytest.mark.slow
def test_one_that_counts_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, _ = apart(path, PERSISTENT, launch())
    wrong = made.replace("    phase = 1\n", "    phase = 0\n")
    assert wrong != made
    with pytest.raises(AssertionError):
        equal(path, PERSISTENT, wrong, launch(), "sm100")


@pytest.mark.slow
def test_launches_that_do_not_ask_have_a_body_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(SINGLE)
    alone = replace(launch(), constexprs={**launch().constexprs, "P": 1})
    made = convert(path, target="sm100", launches=[launch(), alone], root=tmp_path, compile=True)
    if {each.code for report in made.kernels for each in report.diagnostics} == {"TTG401"}:
        pytest.skip("this Triton does not compile the loop with warps of its own")
    assert {report.status for report in made.kernels} == {"converted"}
    assert made.text.count("gl.warp_specialize(") == 1
    assert made.text.count("mma_phase = 0") == 1
    for given in (launch(), alone):
        equal(path, SINGLE, made.text, given, "sm100")


def test_only_loops_of_ours_lose_what_they_ask_by() -> None:
    text = "for i in range(4, warp_specialize=True):\n    pass\nfor i in tl.range(4, warp_specialize=True):\n    pass\n"
    assert partitioned(text, []) == (text.replace("4, warp_specialize=True", "4", 1), frozenset())


WHOLE = {
    "its sum does not start from zeros": (
        "acc = tl.zeros((B, B), tl.float32)",
        "acc = tl.full((B, B), 1.0, tl.float32)",
    ),
    "the sum is read in the loop": ("acc = tl.dot(a, b.T, acc)", "acc = tl.dot(a, b.T, acc) * 0.5"),
    "a number of the loop is read after it": ("c_desc.store([row, 0]", "c_desc.store([row, offset - offset]"),
    "tiles lie where memory says": (
        "        offset += BK\n",
        "        offset += tl.load(a_ptr + offset).to(tl.int32) * 0 + BK\n",
    ),
}


@pytest.mark.parametrize("reason", WHOLE)
def test_loops_that_stay_whole(reason: str, tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", SINGLE.replace(*WHOLE[reason])
    assert text != SINGLE
    path.write_text(text)
    made = convert(path, target="sm100", launches=[launch()], root=tmp_path, compile=False)
    assert made.kernels[0].status == "converted"
    assert "warp_specialize" not in made.text
    assert "TTG332" in {each.code for each in made.kernels[0].diagnostics}
