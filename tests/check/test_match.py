"""Kernels find their blocks when launches and names change with them."""

from __future__ import annotations

from tt2gl.check.lock import Key, Lock
from tt2gl.check.lowering import Lowering, Measured
from tt2gl.check.match import match

A = "*fp16:16, i32, 64; num_warps=4, num_stages=3, num_ctas=1"
FEWER_WARPS = "*fp16:16, i32, 64; num_warps=1, num_stages=3, num_ctas=1"
OTHER_BLOCK = "*fp16, i32:16, 128; num_warps=4, num_stages=3, num_ctas=1"
OTHER_TYPE = "*fp32:16, i32, 64; num_warps=4, num_stages=3, num_ctas=1"


def key(kernel: str, launch: str = A, **others: str) -> Key:
    return Key(**{"file": "a.py", "kernel": kernel, "target": "sm90", "triton": "3.7.1", "launch": launch, **others})


def measured(kernel: str, launch: str = A, index: int = 0) -> Measured:
    return Measured("a.py", kernel, 1, "sm90", index, launch, Lowering(True))


def pairs(keys: list[Key], now: list[Measured]) -> tuple[list[tuple[str, bool] | None], list[Key]]:
    lock = Lock({one: Lowering(True) for one in keys})
    found, gone = match(lock, now, "3.7.1", {("a.py", "sm90")})
    return [None if one.key is None else (one.key.kernel + one.key.launch, one.same_work) for one in found], gone


def test_blocks_of_other_tritons_files_and_targets_are_left_alone() -> None:
    others = [key("k", triton="3.6.0"), key("k", file="b.py"), key("k", target="sm80")]
    assert pairs(others, [measured("k")]) == ([None], [])


def test_a_launch_finds_its_own_block_whatever_the_order() -> None:
    found, gone = pairs([key("k", A), key("k", FEWER_WARPS)], [measured("k", FEWER_WARPS), measured("k", A, 1)])
    assert found == [("k" + FEWER_WARPS, True), ("k" + A, True)]
    assert gone == []


def test_other_options_are_the_same_work_and_other_constants_are_not() -> None:
    assert pairs([key("k")], [measured("k", FEWER_WARPS)]) == ([("k" + A, True)], [])
    assert pairs([key("k")], [measured("k", OTHER_BLOCK)]) == ([("k" + A, False)], [])


def test_other_types_are_another_launch() -> None:
    assert pairs([key("k")], [measured("k", OTHER_TYPE)]) == ([None], [key("k")])


def test_a_renamed_kernel_is_held_against_its_old_name() -> None:
    assert pairs([key("old"), key("k")], [measured("k"), measured("new")]) == ([("k" + A, True), ("old" + A, True)], [])


def test_which_of_two_new_kernels_was_it_cannot_be_said() -> None:
    assert pairs([key("old")], [measured("new"), measured("newer")]) == ([None, None], [key("old")])
