"""Loops around pipelined loops: rings that are made once for all their turns, whole kernels compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import converted, equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, N, K, P: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    tiles = tl.cdiv(N, B)
    for tile in range(tl.program_id(0), tiles * tiles, P):
        i, j = tile // tiles * B, tile % tiles * B
        acc = tl.zeros((B, B), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([i, k]), a.load([j, k]).T, acc)
        c.store([i, j], acc.to(tl.float16))
"""


def launch(n: int, k: int, *, stages: int = 3, block: int = 64, step: int = 32, programs: int = 2) -> Launch:
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"a_ptr": "*fp16", "c_ptr": "*fp16", "N": "i32", "K": "i32"}
        | dict.fromkeys(("P", "B", "BK"), "constexpr"),
        constexprs={"P": programs, "B": block, "BK": step},
        divisible_by_16=("a_ptr", "c_ptr"),
        options=Options(4, stages),
        grid=(programs,),
        args={
            "a_ptr": TensorArg("float16", (n, k), (k, 1), None),
            "c_ptr": TensorArg("float16", (n, n), (n, 1), None),
            "N": n,
            "K": k,
        },
    )


MADE_INSIDE = {
    "its descriptor is made in the loop": (
        "        acc = tl.zeros",
        "        a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])\n        acc = tl.zeros",
    ),
    "two loops would have rings side by side": (
        "        c.store",
        "        for k in range(0, K, BK):\n"
        "            acc = tl.dot(a.load([j, k]), a.load([i, k]).T, acc)\n"
        "        c.store",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("reason", MADE_INSIDE)
def test_rings_that_stay_inside(reason: str, tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", KERNEL.replace(*MADE_INSIDE[reason])
    made, codes = converted(path, text, launch(104, 72), "sm90")
    assert codes == []
    assert made.index("for tile in ") < made.index("mbarrier.init(")
    equal(path, text, made, launch(104, 72))


@pytest.mark.slow
@pytest.mark.parametrize("depth", [24, 200])
def test_rings_are_made_once(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, KERNEL, launch(104, depth), "sm90")
    assert codes == []
    before, loop = made.split("    for tile in ")
    assert before.count("mbarrier.init(") == before.count("    phase = 0\n") == 1
    assert loop.count("        free_slot = slot\n") == 1
    assert "mbarrier.init(" not in loop
    invalidated = "\n    for each in gl.static_range(NUM_STAGES):\n        mbarrier.invalidate(bars.index(each))"
    assert loop.rstrip().endswith(f"{invalidated}\n    tma.store_wait(0)")
    equal(path, KERNEL, made, launch(104, depth))


@pytest.mark.slow
def test_one_that_counts_wrong_is_found(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, _ = converted(path, KERNEL, launch(104, 200), "sm90")
    wrong = made.replace("        free_slot = slot\n", "        free_slot = 0\n")
    assert wrong != made
    with pytest.raises(AssertionError):
        equal(path, KERNEL, wrong, launch(104, 200))


@pytest.mark.slow
def test_where_there_is_no_room_rings_stay_inside_then_lose_stages(tmp_path: Path) -> None:
    # A stage takes 64 KiB, and so does the tile that is stored.
    path = tmp_path / "kernel.py"
    text = KERNEL.replace("acc.to(tl.float16)", "acc")
    wide = launch(1024, 1024, block=128, step=128, stages=3)
    wide = replace(wide, signature={**wide.signature, "c_ptr": "*fp32"}, options=Options(8, 3))
    made, codes = converted(path, text, wide, "sm90")
    assert codes == []
    assert made.index("for tile in ") < made.index("mbarrier.init(")
    made, codes = converted(path, text, replace(wide, options=Options(8, 4)), "sm90")
    assert codes == ["TTG321"]
    assert "    stages: gl.constexpr = 3 if NUM_STAGES > 3 else NUM_STAGES\n" in made
    assert "[stages, 1], mbarrier" in made


EDGES = """\
        if i + B <= N:
            c.store([i, j], acc.to(tl.float16))
        else:
            at, to = i + tl.arange(0, B)[:, None], j + tl.arange(0, B)[None, :]
            tl.store(c_ptr + at * N + to, acc.to(tl.float16), mask=(at < N) & (to < N))
"""


@pytest.mark.slow
def test_where_rings_inside_are_room_enough_stores_still_share_a_tile(tmp_path: Path) -> None:
    # What the other store converts through lies where the rings were.
    path = tmp_path / "kernel.py"
    text = KERNEL.replace("        c.store([i, j], acc.to(tl.float16))\n", EDGES)
    made, codes = converted(path, text, replace(launch(1000, 1024, block=128, step=128), options=Options(8, 3)), "sm90")
    assert codes == []
    before, loop = made.split("    for tile in ")
    assert "c_smem = gl.allocate_shared_memory(" in before
    assert "mbarrier.init(" in loop
    assert "store_again_tile(c, [i, j], acc.to(gl.float16), tile=c_smem)" in loop


POINTERS = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, N, K, P: tl.constexpr, B: tl.constexpr, BK: tl.constexpr, FLATTEN: tl.constexpr):
    tiles = tl.cdiv(N, B)
    for tile in tl.range(tl.program_id(0), tiles * tiles, P, flatten=FLATTEN):
        rows = tile // tiles * B + tl.arange(0, B)
        columns = tile % tiles * B + tl.arange(0, B)
        k = tl.arange(0, BK)
        a_ptrs = a_ptr + rows[:, None] % N * K + k[None, :]
        b_ptrs = b_ptr + columns[None, :] % N * K + k[:, None]
        acc = tl.zeros((B, B), tl.float32)
        for start in range(0, K, BK):
            a = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0.0)
            b = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BK
            b_ptrs += BK
        c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
        tl.store(c_ptrs, acc.to(tl.float16), mask=(rows[:, None] < N) & (columns[None, :] < N))
"""


def of_pointers(n: int, k: int, *, stages: int = 3, programs: int = 2, flatten: bool = True) -> Launch:
    tile_launch = launch(n, k, stages=stages, programs=programs)
    assert tile_launch.args is not None
    return replace(
        tile_launch,
        signature={"b_ptr": "*fp16", **tile_launch.signature, "FLATTEN": "constexpr"},
        constexprs={**tile_launch.constexprs, "FLATTEN": flatten},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
        args={**tile_launch.args, "b_ptr": TensorArg("float16", (n, k), (k, 1), None)},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "k", "programs", "stages"),
    [("sm80", 80, 2, 3), ("sm80", 16, 3, 4), ("sm90", 16, 3, 4), ("sm100", 80, 2, 3), ("sm120", 80, 2, 3)],
)
def test_copies_run_on_into_the_next_tile(target: str, k: int, programs: int, stages: int, tmp_path: Path) -> None:
    path, given = tmp_path / "kernel.py", of_pointers(104, k, stages=stages, programs=programs)
    made, codes = converted(path, POINTERS, given, target)
    assert codes == []
    loop = made[made.index("    for tile in ") :]
    assert "gl.static_range" not in loop
    assert "    if start_ahead >= K:\n                tile_ahead += P\n" in loop
    assert loop.endswith("\n    async_copy.wait_group(0)\n")
    equal(path, POINTERS, made, given, target)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("wait_group(NUM_STAGES - 2)", "wait_group(NUM_STAGES - 1)"),
        ("                start_ahead = 0\n", "                start_ahead = BK\n"),
    ],
)
def test_copies_that_go_wrong_are_found(before: str, after: str, tmp_path: Path) -> None:
    path, given = tmp_path / "kernel.py", of_pointers(104, 80)
    made, _ = converted(path, POINTERS, given, "sm80")
    wrong = made.replace(before, after)
    assert wrong != made
    with pytest.raises(AssertionError):
        equal(path, POINTERS, wrong, given, "sm80")


def test_one_body_flattens_where_its_own_launches_do(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(POINTERS)
    both = [of_pointers(104, 80), of_pointers(104, 80, stages=1, flatten=False)]
    made = convert(path, target="sm80", launches=both, root=tmp_path, compile=False).text
    assert "tile_ahead" in made
