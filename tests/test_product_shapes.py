"""Shapes of products and their loops that packages have and a plain matmul lacks: each converts and compiles."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch, Options

HEADER = "import triton\nimport triton.language as tl\n\n\n"

SCORES = """{more}@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, {flags}M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, n, N):
        {load}
        total = tl.dot(q, tl.trans(k), total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)
"""

TYPES = {"q_ptr": "*fp16", "k_ptr": "*fp16", "out_ptr": "*fp32", "n": "i32"}


def written(
    path: Path, text: str, *values: dict[str, object], target: str = "sm90", stages: Sequence[int] = (), **types: str
) -> str:
    """The text of a file whose kernel must convert and compile under launches with these constexprs, and stages."""
    path.write_text(text if "import triton" in text else HEADER + text)
    pointers = TYPES | types
    launches = [
        Launch(
            str(path),
            "scores_kernel",
            {**pointers, **dict.fromkeys(own, "constexpr")},
            own,
            tuple(pointers),
            Options(num_warps=4, num_stages=stages[place] if stages else 3),
        )
        for place, given in enumerate(values or ({},))
        for own in ({"M": 64, "N": 64, "D": 64, **given},)
    ]
    made = convert(path, target=target, launches=launches)
    assert [report.status for report in made.kernels] == ["converted"] * len(launches), made.kernels[0].diagnostics
    return made.text


TILE_POINTERS = """@triton.jit
def tile_pointers(base, rows, cols, stride):
    return base + rows[:, None] * stride + cols[None, :]


"""

EITHER = """if FLAG:
            tiles = tile_pointers(k_ptr, start + cols, dims, D)
        else:
            tiles = tile_pointers(q_ptr, start + cols, dims, D)
        k = tl.load(tiles)"""


def test_a_ring_of_pointers_that_the_loop_makes_says_its_dtype(tmp_path: Path) -> None:
    """No name before the loop points to the tiles' elements: the ring says their dtype itself."""
    text = SCORES.format(more=TILE_POINTERS, flags="FLAG: tl.constexpr, ", load=EITHER)
    made = written(tmp_path / "kernels.py", text, {"FLAG": True})
    assert "k_buf = gl.allocate_shared_memory(gl.float16, [NUM_STAGES, N, D], k_shared)" in made


TAKEN = """def gates(gl):
    return gl


"""


def test_what_pipelining_writes_gives_way_to_the_authors_names(tmp_path: Path) -> None:
    """A file that calls something else `gl` has Gluon's language under another name, in pipelined loops too."""
    load = "k = tl.load(k_ptr + (start + cols)[:, None] * D + dims[None, :])"
    made = written(tmp_path / "kernels.py", SCORES.format(more=TAKEN, flags="", load=load))
    assert "k_buf = gl_2.allocate_shared_memory(" in made
    assert "def gates(gl):\n    return gl\n" in made


BUILD = """def build():
    import triton
    import triton.language as tl

"""


def test_so_it_does_where_a_function_imports_triton_and_makes_the_kernel(tmp_path: Path) -> None:
    scores = SCORES.format(more="", flags="", load="k = tl.load(k_ptr + (start + cols)[:, None] * D + dims[None, :])")
    made = written(tmp_path / "kernels.py", TAKEN + BUILD + textwrap.indent(scores, "    "))
    assert "    k_buf = gl_2.allocate_shared_memory(" in made
    assert not re.search(r"(?<!\w)gl\.", made)


ROW_ADDED = """@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    largest = tl.zeros([D], tl.float32)
    for start in range(0, n, D):
        k = tl.load(k_ptr + (start + dims)[:, None] * D + dims[None, :])
        total = tl.dot(q, k) + largest
        largest = tl.max(total, 0)
        tl.store(out_ptr + (start + rows)[:, None] * D + dims[None, :], total)
"""


def test_a_row_added_to_a_product_is_added_to_its_sum(tmp_path: Path) -> None:
    """Triton makes it the accumulator, broadcast; as a tile of another shape it cannot be that here."""
    made = written(tmp_path / "kernels.py", ROW_ADDED)
    assert "largest_cols[None, :]" in made or "largest[None, :]" in made


EITHER_LOOP = """@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    few = tl.arange(0, N // 2)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    if tl.program_id(0) < 4:
        total = tl.zeros([M, M], tl.float32)
        for i in range(0, tl.cdiv(n, M)):
            tiles = k_ptr + ((i * M).to(tl.int64) + rows)[:, None] * D + dims[None, :]
            total = tl.dot(q, tl.trans(tl.load(tiles)), total)
        tl.store(out_ptr + rows[:, None] * M + rows[None, :], total)
    else:
        sums = tl.zeros([M, N // 2], tl.float32)
        for i in range(0, tl.cdiv(n, D)):
            tiles = k_ptr + (i * D + dims)[:, None] * D + few[None, :]
            sums = tl.dot(q, tl.load(tiles), sums)
        tl.store(out_ptr + rows[:, None] * M + few[None, :], sums)
"""


@pytest.mark.slow
def test_names_of_a_prologue_do_not_meet_those_of_another_branch(tmp_path: Path) -> None:
    """A loop's names end with it, those of its unrolled prologue do not: where another branch has them, they differ."""
    made = written(tmp_path / "kernels.py", EITHER_LOOP)
    assert "tiles_ahead = " in made
    assert "tiles_ahead_2 = " in made
    assert "i = gl.to_tensor(s)" in made, "`(i * M).to(...)` wants a tensor in the prologue, too"


STATE = """@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, FLAG: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    at = rows[:, None] * D + dims[None, :]
    q = tl.load(q_ptr + at)
    state = tl.zeros([M, D], tl.float32)
    if FLAG:
        state = tl.load(out_ptr + at)
    for start in range(0, n, D):
        k = tl.load(k_ptr + (start + dims)[:, None] * D + dims[None, :])
        state = state - tl.dot(q, k)
        state = tl.where((dims < n)[None, :], state, 0.0)
    tl.store(out_ptr + at, state)
"""


@pytest.mark.slow
def test_a_state_stays_in_its_products_layout_whatever_it_starts_from(tmp_path: Path) -> None:
    """Zeros or what a flag loads: one body, in which the loop converts nothing."""
    made = written(tmp_path / "kernels.py", STATE, {"FLAG": False}, {"FLAG": True})
    assert "state = gl.zeros([M, D], gl.float32, layout=mma_layout)" in made
    assert "state = gl.convert_layout(gl.load(out_ptr + at), mma_layout)" in made
    assert made.count("convert_layout") == 2, "the start, and the store"


PRODUCT_OF_TWO = """@triton.jit
def product(a, b):
    return tl.dot(a, b)


@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    few = tl.arange(0, N // 2)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    k = tl.load(k_ptr + few[:, None] * D + dims[None, :])
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], product(q, tl.trans(q)))
    tl.store(out_ptr + rows[:, None] * M + few[None, :], product(q, tl.trans(k)))
"""


def test_a_helper_that_multiplies_tiles_of_several_shapes_says_none(tmp_path: Path) -> None:
    """Its zeros have the extents of what it is given."""
    made = written(tmp_path / "kernels.py", PRODUCT_OF_TWO, target="sm80")
    assert "gl.zeros([a.shape[0], b.shape[1]], gl.float32, " in made


ANOTHER = """

@triton.jit
def other_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    cols = tl.arange(0, N)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    k = tl.load(k_ptr + cols[:, None] * D + dims[None, :])
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], product(q, tl.trans(k)))
"""


def test_so_it_says_none_of_another_kernel_that_knows_them(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + PRODUCT_OF_TWO + ANOTHER)
    values: dict[str, object] = {"M": 64, "N": 64, "D": 64}
    types = {**TYPES, **dict.fromkeys(values, "constexpr")}
    names = ("scores_kernel", "other_kernel")
    launches = [Launch(str(path), name, types, values, tuple(TYPES), Options(num_warps=4)) for name in names]
    made = convert(path, target="sm80", launches=launches)
    assert [report.status for report in made.kernels] == ["converted"] * 2, made.kernels
    assert "gl.zeros([a.shape[0], b.shape[1]], gl.float32, " in made.text


@pytest.mark.slow
def test_it_is_given_no_memory_which_would_not_say_them(tmp_path: Path) -> None:
    made = written(tmp_path / "kernels.py", PRODUCT_OF_TWO, target="sm90")
    assert "a_smem = gl.allocate_shared_memory(a.dtype, " in made


PRODUCT_WITHIN = """@triton.jit
def product(a, b):
    return tl.dot(a, b)


@triton.jit
def within(q_ptr, k_ptr, out_ptr, M: tl.constexpr, COLS: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, COLS)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    k = tl.load(k_ptr + dims[:, None] * D + cols[None, :])
    tl.store(out_ptr + rows[:, None] * COLS + cols[None, :], product(q, k))


@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    within(q_ptr, k_ptr, out_ptr, M, N, D)
"""


def test_a_helper_between_passes_extents_on_by_its_own_parameters(tmp_path: Path) -> None:
    """It gets none twice, and says those that it calls otherwise in its own words."""
    made = written(tmp_path / "kernels.py", PRODUCT_WITHIN, {"N": 32}, target="gfx942")
    assert "gl.zeros([M, N], gl.float32, " in made
    assert "product(q, k, D=D, M=M, N=COLS, " in made


ADDED = """@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    dims = tl.arange(0, D)
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, n, D):
        q = tl.load(q_ptr + rows[:, None] * n + (start + dims)[None, :])
        k = tl.load(k_ptr + cols[None, :] * n + (start + dims)[:, None])
        total += tl.dot(q, k)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)
"""


def test_a_sum_of_floats_takes_products_of_floats_up_and_stands_beside_those_of_integers(tmp_path: Path) -> None:
    """Two launches, two bodies: an instruction has one type to add up in."""
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + ADDED)
    types = TYPES | dict.fromkeys("MND", "constexpr")
    launches = [
        Launch(str(path), "scores_kernel", types | {"q_ptr": kind, "k_ptr": kind}, dict.fromkeys("MND", 64))
        for kind in ("*fp16", "*i8")
    ]
    made = convert(path, target="gfx942", launches=launches)
    assert [report.status for report in made.kernels] == ["converted"] * 2, made.kernels[0].diagnostics
    assert re.search(r"total = gl.amd.cdna3.mfma\(.*, total\)", made.text)
    assert re.search(r"total \+= gl.amd.cdna3.mfma\([^+]*, gl.zeros\(\[M, N\], gl.int32, ", made.text)


def test_a_loop_of_two_turns_has_a_ring_as_deep_as_one_of_many(tmp_path: Path) -> None:
    """Triton's compiler leaves none of the loop, in which there would be one more store than in front of it."""
    load = "k = tl.load(k_ptr + (start + cols)[:, None] * D + dims[None, :])"
    text = SCORES.format(more="", flags="", load=load).replace("range(0, n, N)", "range(0, 2 * N, N)")
    assert "# a ring of NUM_STAGES - 1 tiles; " in written(tmp_path / "kernels.py", text, target="gfx942")


MASKED = """if FLAG:
            mask = None
        else:
            mask = (start + cols)[:, None] < n
        k = tl.load(k_ptr + (start + cols)[:, None] * D + dims[None, :], mask=mask)"""


def test_a_mask_that_a_flag_leaves_out_is_true_where_iterations_have_their_own(tmp_path: Path) -> None:
    """`None & (start < n)` is an error."""
    text = SCORES.format(more="", flags="FLAG: tl.constexpr, ", load=MASKED)
    made = written(tmp_path / "kernels.py", text, {"FLAG": False}, {"FLAG": True})
    assert made.count("mask = True") == 2, "in the prologue and in the loop"


OPTIONAL = """if FLAG:
            mask = None
            other = None
        else:
            mask = start + cols < n
            other = 0.0
        k = tl.load(k_ptr + (start + cols)[:, None] * D + dims[None, :])
        scale = tl.load(k_ptr + (start + cols) * D, mask=mask, other=other)
        k = (k * scale[:, None]).to(tl.float16)"""


def test_a_mask_that_a_flag_leaves_out_is_true_in_last_iterations_that_there_may_not_be(tmp_path: Path) -> None:
    text = SCORES.format(more="", flags="FLAG: tl.constexpr, ", load=OPTIONAL)
    made = written(tmp_path / "kernels.py", text, {"FLAG": True}, {"FLAG": False}, target="gfx942", stages=(2, 2))
    assert "mask=mask & exists" in made
    assert [made.count(line) for line in ("mask = None", "mask = True", "other = None")] == [1, 1, 2]


TWO_MASKS = """@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    mask = True
    mask &= (rows < n)[:, None]
    x = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=mask)
    tl.store(k_ptr + rows[:, None] + dims[None, :] * M, x, mask=mask)
"""


def test_a_scalar_that_becomes_two_tiles_is_read_before_it_changes(tmp_path: Path) -> None:
    """`mask &= ...` for one layout comes after the copy that makes another layout's mask of the same scalar."""
    made = written(tmp_path / "kernels.py", TWO_MASKS)
    assert made.index("mask_k = mask & (") < made.index("mask &= (")


TILES = """@triton.jit
def scores_kernel(q_tiles, k_tiles, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, n, D):
        total = tl.dot(q_tiles.load([0, start]), k_tiles.load([start, 0]), total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)
"""


def test_tiles_that_an_instruction_cannot_take_as_they_come_are_laid_out_anew(tmp_path: Path) -> None:
    """wgmma takes rows of 32-bit floats along k alone, so that there the second tile is stored transposed."""
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + TILES)
    launches = [
        Launch(
            str(path),
            "scores_kernel",
            {"q_tiles": tile, "k_tiles": tile, "out_ptr": "*fp32", "n": "i32", **dict.fromkeys("MND", "constexpr")},
            dict.fromkeys("MND", 64),
            ("out_ptr", "n"),
        )
        for tile in ("tensordesc<fp16[64, 64]>", "tensordesc<fp32[64, 64]>")
    ]
    made = convert(path, target="sm90", launches=launches)
    assert [report.status for report in made.kernels] == ["converted", "converted"], made.kernels[0].diagnostics
    assert "if q_tiles.dtype == gl.float16:" in made.text
    assert made.text.count("transposed=True") == 1


UNUSED = """@triton.jit
def scores_kernel(q_ptr, n, D: tl.constexpr):
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + dims[:, None] * D + dims[None, :])
    product = tl.dot(q, q)
    tl.store(q_ptr + dims[:, None] * D + dims[None, :], q * 2)
"""


def test_a_product_that_triton_drops_keeps_its_kernel_with_a_reason(tmp_path: Path) -> None:
    """Nothing says which layouts it would have."""
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + UNUSED)
    signature = {"q_ptr": "*fp16", "n": "i32", "D": "constexpr"}
    made = convert(path, target="sm90", launches=[Launch(str(path), "scores_kernel", signature, {"D": 64})])
    assert [each.code for each in made.kernels[0].diagnostics] == ["TTG302"]


MOVED = """@triton.jit
def summed(total, q, keys, n, rows, dims, N: tl.constexpr, D: tl.constexpr):
    for start in range(0, n, N):
        tiles = keys + (start + rows)[:, None] * D + dims[None, :]
        total = tl.dot(q, tl.trans(tl.load(tiles)), total)
    return total


@triton.jit
def scores_kernel(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    k_ptr += tl.program_id(0) * D
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    total = summed(tl.zeros([M, N], tl.float32), q, k_ptr, n, rows, dims, N, D)
    tl.store(out_ptr + rows[:, None] * N + rows[None, :], total)
"""


def test_a_pointer_that_moved_is_known_to_a_helper_by_its_parameter(tmp_path: Path) -> None:
    """The helper's own word for it says the dtype of its ring."""
    made = written(tmp_path / "kernels.py", MOVED)
    assert "tiles_buf = gl.allocate_shared_memory(keys.dtype.element_ty, [" in made


@pytest.mark.slow
def test_packed_bytes_on_their_way_to_shared_memory_lie_in_neighbouring_threads() -> None:
    file = Path(__file__).parents[1] / "corpus" / "block_scaled.py"
    launches = [
        each for each in read_launches(file.with_suffix(".launches.json")) if each.kernel == "mxfp4_matmul_kernel"
    ]
    made = convert(file, target="sm90", launches=launches[:1], root=file.parent, compile=False).text
    name = re.search(r"upcast\(b\.permute\(\(1, 0\)\)\.load\((\w+)\)", made)
    assert name is not None
    assert f"{name[1]}: gl.constexpr = coalesced([BLOCK_K // 2, BLOCK_N], [1, 0], 128, gl.num_warps())" in made


@pytest.mark.slow
def test_scales_are_loaded_where_the_threads_of_a_wave_need_them() -> None:
    """They would be converted by shared memory, where all waves wait in the midst of the products."""
    file = Path(__file__).parents[1] / "corpus" / "block_scaled.py"
    launches = [
        each
        for each in read_launches(file.with_suffix(".launches.json"))
        if each.kernel == "mxfp4_weight_matmul_kernel"
    ]
    made = convert(file, target="gfx942", launches=launches[1:2], root=file.parent, compile=False).text
    made = made[made.index("def mxfp4_weight_matmul_kernel") :]
    assert re.search(
        r"offs_scale = gl\.arange\(0, BLOCK_K // 32, layout=gl\.SliceLayout\(0, \w+_scale_layout\)\)", made
    )
    assert "upcast(w, w_scale, " in made


@pytest.mark.slow
def test_launches_of_three_stages_and_more_share_a_body_where_tiles_are_looked_up(tmp_path: Path) -> None:
    """Triton copies what is looked up, too, from three stages on, and halves the ring of the tiles."""
    load = "at = tl.load(table + start + cols)\n        k = tl.load(k_ptr + at[:, None] * D + dims[None, :])"
    text = SCORES.format(more="", flags="table, ", load=load)
    made = written(tmp_path / "kernel.py", text, {"M": 16}, {"M": 32}, {"M": 16}, stages=(2, 3, 5), table="*i32")
    bodies = re.split(r"\n@gluon.jit\n", made)[-3:]
    assert [re.findall(r"def (\w+)", body) for body in bodies] == [
        ["scores_kernel_num_stages_below_3"],
        ["scores_kernel_num_stages_from_3"],
        ["scores_kernel"],
    ]
    assert "[NUM_STAGES - 1, N, D]" in bodies[0]
    assert "at_buf" not in bodies[0]
    assert "stages: gl.constexpr = (NUM_STAGES + 1) // 2 if NUM_STAGES > 2 else 2" in bodies[1]
    assert "[stages - 1, N, D]" in bodies[1]
    assert "at_buf = gl.allocate_shared_memory(table.dtype.element_ty, [1, N], at_shared)" in bodies[1]


BLOCK_SCALED = """@triton.jit
def scores_kernel(q_ptr, k_ptr, qs_ptr, ks_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    dims = tl.arange(0, D)
    parts = tl.arange(0, D // 32)
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, n, D):
        q = tl.load(q_ptr + rows[:, None] * n + (start + dims)[None, :])
        k = tl.load(k_ptr + cols[None, :] * n + (start + dims)[:, None])
        q_scale = tl.load(qs_ptr + rows[:, None] * (n // 32) + (start // 32 + parts)[None, :])
        k_scale = tl.load(ks_ptr + cols[:, None] * (n // 32) + (start // 32 + parts)[None, :])
        total = tl.dot_scaled(q, q_scale, "e4m3", k, k_scale, "e4m3", total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)
"""


@pytest.mark.slow
def test_scaled_operands_in_registers_are_multiplied_as_they_are(tmp_path: Path) -> None:
    """Gluon has no word for that, and takes Triton's product, whose scales are where the compiler has them."""
    path, kind = tmp_path / "kernels.py", "*fp8e4nv"
    operands = {"target": "sm120", "q_ptr": kind, "k_ptr": kind, "qs_ptr": "*u8", "ks_ptr": "*u8"}
    text = written(path, BLOCK_SCALED, {"D": 128}, {"M": 16, "N": 16, "D": 64}, stages=(3, 3), **operands)
    assert "upcast" not in text
    said = r'mma_v2_scaled\(\s*q, gl.convert_layout\(q_scale, (\w+)\), "e4m3",\s*k, gl.convert_layout\(k_scale, (\w+)\)'
    found = re.search(said, re.sub(r",\n +", ", ", text))
    assert found is not None, text
    for operand, (name, rows) in enumerate(zip(found.groups(), "MN", strict=True)):
        call = rf"operand_scales_layout\(\s*{operand}, mma_v2_layout\(.*\), \[{rows}, D // 32\]"
        assert re.search(rf"{name}: gl.constexpr = {call}", text)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "form", "kind"), [("sm80", "e5m2", "*fp8e5"), ("sm90", "e4m3", "*fp8e4nv")])
def test_scales_come_to_their_elements_as_soon_as_they_are_loaded(
    tmp_path: Path, target: str, form: str, kind: str
) -> None:
    """Brought there later, they keep the assembler from storing one operand while the other is converted."""
    path, source = tmp_path / "kernels.py", BLOCK_SCALED.replace("e4m3", form)
    text = written(path, source, {"D": 128}, target=target, q_ptr=kind, k_ptr=kind, qs_ptr="*u8", ks_ptr="*u8")
    loads = re.search(
        r"q_scale = gl.*\n +(\w+) = gl.convert_layout\(q_scale, (\w+)\)\n +k_scale = gl.*\n +(\w+) = ", text
    )
    assert loads is not None, text
    first, layout, second = loads.groups()
    assert f"{layout}: gl.constexpr = block_scale_layout(" in text
    assert re.search(rf"upcast\(.*, {first}, .*, 1, False\)", text)
    assert re.search(rf"upcast\(.*, {second}, .*, 0, False\)", text)
