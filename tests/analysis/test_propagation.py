"""Who has a layout, who takes one, who is converted: seen in the converted text, which must compile."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tt2gl.launches import Launch

pytestmark = pytest.mark.once

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

VECTOR = "x_ptr=*fp16 y_ptr=*fp16 n=i32"
TILE = "x_ptr=*fp16 y_ptr=*fp16 M=i32 N=i32"

TILES = """
@triton.jit
def kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    {}
"""

VECTORS = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    {}
"""


@pytest.fixture
def tiles(port: Port, launch: MakeLaunch) -> Port:
    """Statements on tiles of 64 rows and 32 columns, ported."""

    def apply(statements: str, types: str = TILE, **values: int) -> str:
        text = TILES.format(statements.strip("\n").replace("\n", "\n    "))
        return port(text, launch(types, **({"BM": 64, "BN": 32} | values)))

    return apply


@pytest.fixture
def vectors(port: Port, launch: MakeLaunch) -> Port:
    """Statements on blocks of 1024 elements, ported."""

    def apply(statements: str, types: str = VECTOR, **values: int) -> str:
        text = VECTORS.format(statements.strip("\n").replace("\n", "\n    "))
        return port(text, launch(types, **({"BLOCK": 1024} | values)))

    return apply


def conversions(text: str) -> int:
    """How many values are converted."""
    return text.count("gl.convert_layout(")


def layouts(text: str) -> list[str]:
    """The layouts that are named."""
    return re.findall(r"^    (\w+): gl\.constexpr = ", text, re.M)


class TestOneLayout:
    """Nothing is converted and nothing stands twice where one layout serves."""

    @pytest.mark.parametrize(
        "statements",
        [
            pytest.param("tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)", id="elementwise"),
            pytest.param(
                "mask = offs < n\nx = tl.load(x_ptr + offs, mask=mask, other=0)\ntl.store(y_ptr + offs, x, mask=mask)",
                id="masks",
            ),
            pytest.param(
                "x = tl.load(x_ptr + offs)\nif n > 3:\n    x += 1\nelse:\n    x = -x\ntl.store(y_ptr + offs, x)",
                id="a branch",
            ),
            pytest.param(
                "x = tl.load(x_ptr + offs)\nx = tl.where(x > 0, x, 0) if n > 3 else x\ntl.store(y_ptr + offs, x)",
                id="a conditional expression",
            ),
            pytest.param("tl.store(y_ptr + offs, tl.cumsum(tl.load(x_ptr + offs), 0))", id="a scan"),
            pytest.param("tl.store(y_ptr, tl.sum(tl.load(x_ptr + offs).to(tl.float32), 0))", id="a reduction"),
            pytest.param("if n > 3:\n    return\ntl.store(y_ptr + offs, tl.load(x_ptr + offs))", id="an early return"),
        ],
    )
    def test_of_vectors(self, vectors: Port, statements: str) -> None:
        made = vectors(statements)
        assert conversions(made) == 0
        assert len(layouts(made)) == 1
        assert made.count("gl.arange(") == 1

    def test_of_tiles(self, tiles: Port) -> None:
        made = tiles("at = rows[:, None] * N + cols[None, :]\ntl.store(y_ptr + at, tl.load(x_ptr + at))")
        assert conversions(made) == 0
        assert "gl.arange(0, BM, layout=gl.SliceLayout(1, tile_layout))" in made
        assert "gl.arange(0, BN, layout=gl.SliceLayout(0, tile_layout))" in made

    @pytest.mark.parametrize(
        "last",
        [
            "tl.arange(0, 32)[None, None, :]",
            "tl.arange(0, 32)",
        ],
    )
    def test_of_three_dimensions(self, vectors: Port, last: str) -> None:
        made = vectors(
            f"at = tl.arange(0, 4)[:, None, None] * n + tl.arange(0, 8)[None, :, None] * 32 + {last}\n"
            "tl.store(y_ptr + at, tl.load(x_ptr + at))"
        )
        assert conversions(made) == 0
        assert made.count("gl.arange(0, 32, layout=") == 1


class TestSmallerValues:
    """What is converted is what a value is made of, where that is smaller."""

    LOADED = "x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])\n"

    @pytest.mark.parametrize("value", ["x", "x * 2", "x + x"])
    def test_values_no_larger_than_their_sources(self, tiles: Port, value: str) -> None:
        made = tiles(f"{self.LOADED}tl.store(y_ptr + cols[None, :] * M + rows[:, None], {value})")
        assert f"gl.convert_layout({value}, y_layout)" in made

    def test_before_it_is_cast_to_a_wider_type(self, tiles: Port) -> None:
        made = tiles(
            f"{self.LOADED}tl.store(y_ptr + cols[None, :] * M + rows[:, None], x.to(tl.float32) * 3)",
            "x_ptr=*fp16 y_ptr=*fp32 M=i32 N=i32",
        )
        assert "gl.convert_layout(x, y_layout).to(gl.float32) * 3" in made


class TestInterleaving:
    """Elements side by side stay in their threads."""

    INTERLEAVED = "at = rows[:, None] * N + tl.arange(0, BN * 2)[None, :]\ntl.store(y_ptr + at, x)"

    @pytest.mark.parametrize("how", ["tl.interleave(x, x + 1)", "tl.join(x, x + 1).reshape(BM, BN * 2)"])
    def test_takes_the_layout_of_what_was_loaded(self, tiles: Port, how: str) -> None:
        made = tiles(f"x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])\nx = {how} * 3\n{self.INTERLEAVED}")
        assert ", widened(x_layout, 1, 2)) * 3" in made

    def test_of_indices_takes_any_layout(self, tiles: Port) -> None:
        made = tiles(
            "x = tl.load(x_ptr + rows[:, None] * (2 * N) + tl.arange(0, BN * 2)[None, :])\n"
            "x = tl.interleave(x, x) + tl.interleave(tl.interleave(cols, cols), tl.interleave(cols, cols))[None, :]\n"
            "tl.store(y_ptr + rows[:, None] * N + tl.arange(0, BN * 4)[None, :], x)"
        )
        assert "gl.SliceLayout(0, widened(x_layout, 1, 2))" in made


class TestReshaping:
    """Threads keep their elements when a value is reshaped."""

    GROUPED = "g = tl.reshape(tl.load(x_ptr + offs), (BLOCK // 32, 32))\ns = tl.max(g, axis=1)\n"
    BACK = "tl.store(y_ptr + offs, tl.reshape(g / s[:, None], (BLOCK,)))\n"

    def test_pairs_are_laid_out_by_what_parts_them(self, vectors: Port) -> None:
        parted = "a, b = tl.split(tl.reshape(tl.load(x_ptr + offs), (BLOCK // 2, 2)))\n"
        assert "reshaped" not in vectors(f"{parted}tl.store(y_ptr + tl.arange(0, BLOCK // 2), a)")

    def test_what_meets_a_loaded_tile_takes_its_layout(self, tiles: Port) -> None:
        made = tiles(
            "at = rows[:, None] * N + cols[None, :]\nx = tl.load(x_ptr + tl.arange(0, BM * BN))\n"
            "tl.store(y_ptr + at, x.reshape(BM, BN) * tl.load(y_ptr + at))"
        )
        assert "gl.convert_layout(x.reshape(BM, BN), tile_layout) * gl.load(" in made

    def test_groups_of_a_row_are_reduced_where_they_were_loaded(self, vectors: Port) -> None:
        made = vectors(self.GROUPED + self.BACK + "tl.store(y_ptr + n + tl.arange(0, BLOCK // 32), s)")
        named = "x_reshaped_layout: gl.constexpr = reshaped(gl.to_linear_layout(x_layout, [BLOCK]), [BLOCK // 32, 32])"
        assert named in made
        assert "gl.arange(0, BLOCK // 32, layout=gl.SliceLayout(1, x_reshaped_layout))" in made
        assert "gl.convert_layout(gl.reshape(g / s[:, None], (BLOCK,)).to(y_ptr.dtype.element_ty), x_layout)" in made

    def test_an_extent_of_one_is_that_however_it_is_said(self, vectors: Port) -> None:
        made = vectors(
            "g = tl.reshape(tl.load(x_ptr + offs), (BLOCK // 2, 2, 1 << 0))\ns = tl.sum(g, 1, keep_dims=True)\n"
            "v = tl.where(tl.arange(0, 2)[None, :, None] > 0, s, s * 2)\n"
            "tl.store(y_ptr + offs, tl.reshape(v, (BLOCK,)))"
        )
        assert "gl.arange(0, 2, layout=gl.SliceLayout(0, gl.SliceLayout(2, reshaped_layout)))" in made
        assert "coalesced([BLOCK // 2, 2, 1]" not in made

    def test_to_what_is_only_summed_needs_no_name(self, tiles: Port) -> None:
        made = tiles(
            "x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])\nflat = tl.ravel(x)\n"
            "tl.store(y_ptr + rows[:, None] * N + cols[None, :], x * tl.sum(flat * 2, 0))"
        )
        assert "flat = gl.ravel(x)" in made
        assert conversions(made) == 0

    HELPED = """
@triton.jit
def largest(x, ROWS: tl.constexpr, OF: tl.constexpr):
    return tl.max(tl.reshape(x, (ROWS, OF)), 1)

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK // 32), largest(x, BLOCK // 32, 32))
"""

    def test_in_a_helper_that_is_given_the_layout(self, port: Port, launch: MakeLaunch) -> None:
        made = port(self.HELPED, launch(VECTOR, BLOCK=1024))
        assert "gl.max(gl.convert_layout(gl.reshape(x, (ROWS, OF)), layout), 1)" in made
        assert "largest(x, BLOCK // 32, 32, layout=x_reshaped_layout)" in made


class TestScanning:
    """Values scanned together come in one layout."""

    SCANNED = """
@triton.jit
def add(a, b, c, d):
    return a + c, b + d

@triton.jit
def kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + rows * BN + cols)
    total = tl.zeros((BM, BN), dtype=tl.float16)
    for k in range(M):
        total += tl.load(x_ptr + k + cols * BM + rows)
    total, x = tl.associative_scan((total, x), 1, add)
    tl.store(y_ptr + rows * BN + cols, x)
"""

    def test_in_the_layout_that_is_known_first(self, port: Port, launch: MakeLaunch) -> None:
        made = port(self.SCANNED, launch(TILE, BM=64, BN=32))
        assert "gl.associative_scan((gl.convert_layout(total, x_layout), x), 1, add)" in made


class TestGathering:
    """What is gathered comes as its indices do; of tiles, as what it is gathered from."""

    def test_of_a_table(self, vectors: Port) -> None:
        made = vectors(
            "table = tl.load(x_ptr + tl.arange(0, 16))\nq = tl.load(x_ptr + offs).to(tl.int32) & 15\n"
            "tl.store(y_ptr + offs, tl.gather(table, q, 0) + tl.gather(table, offs % 16, 0))"
        )
        assert "gl.gather(table, q, 0) + gl.gather(table, offs % 16, 0)" in made

    def test_of_others(self, tiles: Port) -> None:
        made = tiles(
            "x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])\n"
            "i = tl.load(x_ptr + cols[None, :] * M + rows[:, None])\n"
            "tl.store(y_ptr + rows[:, None] * N + cols[None, :], tl.gather(x, i.to(tl.int32), 1))"
        )
        assert "gather_layout: gl.constexpr = coalesced([BM, BN], [1, 0], 4096 // max(BN, 32), gl.num_warps())" in made
        assert conversions(made) == 3

    def test_a_name_that_is_gathered_from_again_on_each_turn_stays_as_that_wants_it(self, tiles: Port) -> None:
        made = tiles(
            "x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])\n"
            "for step in tl.static_range(3):\n"
            "    i = tl.broadcast_to((tl.arange(0, BM) ^ (1 << step))[:, None], (BM, BN))\n"
            "    x = tl.where(N > step, x + tl.gather(x, i, 0), x)\n"
            "tl.store(y_ptr + rows[:, None] * N + cols[None, :], x)"
        )
        assert "x = gl.where(N > step, x + gl.gather(x, i, 0), x)" in made
        assert conversions(made) == 2


class TestTwoOrders:
    """Loaded in one order, stored in the other."""

    STATEMENTS = """
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
tl.store(y_ptr + cols[None, :] * M + rows[:, None], x)
"""

    def test_the_value_is_converted_once(self, tiles: Port) -> None:
        made = tiles(self.STATEMENTS)
        assert conversions(made) == 1
        assert "gl.convert_layout(x, y_layout)" in made

    def test_indices_are_computed_twice(self, tiles: Port) -> None:
        made = tiles(self.STATEMENTS)
        assert made.count("gl.arange(") == 4
        assert "rows_y = gl.program_id(0) * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, y_layout))" in made

    def test_the_narrower_value_is_converted(self, tiles: Port) -> None:
        """A conversion stands after the cast that makes a value smaller."""
        made = tiles(self.STATEMENTS.replace(", x)", ", x.to(tl.float16))"), TILE.replace("x_ptr=*fp16", "x_ptr=*fp32"))
        assert "gl.convert_layout(x.to(gl.float16), y_layout)" in made

    def test_a_value_stored_many_times_in_a_loop_is_converted_before_it(self, tiles: Port) -> None:
        made = tiles("""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
for i in range(4):
    tl.store(y_ptr + i * N * M + cols[None, :] * M + rows[:, None], x)
""")
        assert conversions(made) == 1
        assert made.index("x_y = gl.convert_layout(x, y_layout)") < made.index("for i in range(4)")

    def test_a_value_made_in_the_loop_is_converted_there(self, tiles: Port) -> None:
        made = tiles("""
for i in range(4):
    x = tl.load(x_ptr + i * N * M + rows[:, None] * N + cols[None, :])
    tl.store(y_ptr + i * N * M + cols[None, :] * M + rows[:, None], x)
""")
        assert conversions(made) == 1
        assert made.index("for i in range(4)") < made.index("gl.convert_layout(x, y_layout)")


class TestCopies:
    """Cheap statements stand once for each layout, every definition of their name with them."""

    STORE = "tl.store(y_ptr + cols[None, :] * M + rows[:, None], x)"

    def test_an_index_that_a_loop_moves(self, tiles: Port) -> None:
        made = tiles(f"""
for i in range(0, N, BN):
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    {self.STORE}
    cols += BN
""")
        assert "        cols += BN\n        cols_y += BN\n" in made
        assert conversions(made) == 1

    def test_an_index_that_a_branch_changes(self, tiles: Port) -> None:
        made = tiles(f"""
if M > 3:
    cols = cols + 8
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
{self.STORE}
""")
        assert "        cols = cols + 8\n        cols_y = cols_y + 8\n" in made

    def test_a_definition_before_which_the_first_layout_was_read(self, tiles: Port) -> None:
        made = tiles(f"""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
cols = cols + 8
{self.STORE}
""")
        assert "    cols_y = cols_y + 8\n" in made
        assert "    cols = cols + 8\n" not in made

    @pytest.mark.parametrize(
        ("statement", "expected"),
        [
            ("M, cols = M - 1, cols + M", "        M, cols = M - 1, cols + M\n"),
            ("cols, M = cols + 8, M - 1", "        cols = cols + 8\n        cols_y = cols_y + 8\n        M = M - 1\n"),
        ],
        ids=["a part reads another", "apart"],
    )
    def test_what_a_tuple_gives(self, tiles: Port, statement: str, expected: str) -> None:
        made = tiles(f"""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
while M > 0:
    {statement}
{self.STORE}
tl.store(x_ptr + rows[:, None] * N + cols[None, :], x)
""")
        assert expected in made


class TestLoops:
    """What a loop carries keeps one layout."""

    def test_an_accumulator_takes_the_layout_of_what_is_added(self, tiles: Port) -> None:
        made = tiles("""
acc = tl.zeros([BM, BN], tl.float32)
for i in range(4):
    acc += tl.load(x_ptr + i * N * M + rows[:, None] * N + cols[None, :])
tl.store(y_ptr + rows[:, None] * N + cols[None, :], acc)
""")
        assert "acc = gl.zeros([BM, BN], gl.float32, layout=tile_layout)" in made
        assert conversions(made) == 0

    def test_the_deepest_definition_decides(self, tiles: Port) -> None:
        """The value before the loop is converted, not the one that every turn adds."""
        made = tiles("""
acc = tl.load(y_ptr + cols[None, :] * M + rows[:, None]).to(tl.float32)
for i in range(4):
    acc += tl.load(x_ptr + i * N * M + rows[:, None] * N + cols[None, :])
tl.store(x_ptr + rows[:, None] * N + cols[None, :], acc)
""")
        loop = made[made.index("for i in") : made.index("gl.store")]
        assert conversions(made) == 1
        assert conversions(loop) == 0

    def test_a_row_accumulator_is_a_slice(self, tiles: Port) -> None:
        made = tiles("""
acc = tl.zeros([BM], tl.float32)
for i in range(4):
    acc += tl.sum(tl.load(x_ptr + i * BN + rows[:, None] * N + cols[None, :]).to(tl.float32), 1)
tl.store(y_ptr + rows, acc)
""")
        assert "acc = gl.zeros([BM], gl.float32, layout=gl.SliceLayout(1, tile_layout))" in made

    def test_pointers_that_a_loop_moves(self, tiles: Port) -> None:
        made = tiles("""
p = x_ptr + rows[:, None] * N + cols[None, :]
q = y_ptr + rows[:, None] * N + cols[None, :]
for i in range(4):
    tl.store(q, tl.load(p))
    p += BN
    q += BN
""")
        assert conversions(made) == 0

    def test_an_unrolled_loop_that_turns_a_scalar_into_a_tensor(self, vectors: Port) -> None:
        made = vectors("""
acc = 0.0
for i in tl.static_range(4):
    acc += tl.load(x_ptr + i * n + offs).to(tl.float32)
tl.store(y_ptr + offs, acc)
""")
        assert conversions(made) == 0

    def test_a_tensor_of_a_loop_by_the_name_of_a_scalar_before_it(self, tiles: Port) -> None:
        made = tiles("""
if N > 7:
    at = tl.load(x_ptr).to(tl.int32)
    tl.store(y_ptr, at)
for i in range(4):
    at = i * BN + cols
    tl.store(y_ptr + at[:, None] * N + rows[None, :], tl.load(x_ptr + rows[:, None] * N + at[None, :]).T)
""")
        assert {"SliceLayout(0, x_layout)", "SliceLayout(1, y_layout)"} <= set(re.findall(r"SliceLayout\(.*?\)", made))
        assert made.count(" = i * BN + ") == 2

    @pytest.mark.slow
    def test_what_is_known_of_a_name_is_asked_of_one_of_its_layouts(self, tiles: Port) -> None:
        made = tiles("""
for i in range(4):
    at = i * BN + cols
    tl.store(y_ptr + at[:, None] * N + rows[None, :], tl.load(x_ptr + rows[:, None] * N + at[None, :]).T)
for i in range(4):
    at = i * BN + cols
    twice = (at * 2).to(at.dtype)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + rows[:, None] * N + twice[None, :])))
""")
        alone = re.findall(r"twice = \((\w+) \* 2\)\.to\((\w+)\.dtype\)", made)
        assert len(alone) == 1
        assert alone[0][0] == alone[0][1]
        assert f" {alone[0][0]} = i * BN + " in made[made.rindex("for i in") :], "the second loop's own"

    def test_a_while_loop(self, vectors: Port) -> None:
        made = vectors("""
acc = tl.zeros([BLOCK], tl.float32)
i = 0
while i < n:
    acc += tl.load(x_ptr + i + offs)
    i += BLOCK
tl.store(y_ptr + offs, acc)
""")
        assert conversions(made) == 0


class TestRank:
    """Slices, expansions and reductions."""

    def test_a_reduction_over_rows_is_a_slice_that_a_small_store_takes(self, tiles: Port) -> None:
        made = tiles(
            """
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]).to(tl.float32)
tl.store(y_ptr + rows, tl.sum(x, 1))
""",
            BM=4,
        )
        assert conversions(made) == 0
        assert made.count("gl.arange(0, BM") == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("kept", ["tl.sum(x, 1)[:, None]", "tl.sum(x, 1, keep_dims=True)"])
    def test_a_column_is_stored_once_and_not_by_each_element_of_a_thread(self, tiles: Port, kept: str) -> None:
        made = tiles(f"""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]).to(tl.float32)
tl.store(y_ptr + rows[:, None], {kept})
""")
        assert "y_layout: gl.constexpr = coalesced([BM, 1], [0, 1], " in made
        assert conversions(made) == 1

    def test_a_column_that_a_loop_sums_up_is_spread_over_the_threads(self, tiles: Port) -> None:
        made = tiles("""
acc = tl.zeros([BM, BN], tl.float32)
for i in range(4):
    acc += tl.load(x_ptr + i * N + rows[:, None] + cols[None, :] * M).to(tl.float32)
tl.store(y_ptr + rows[:, None], tl.sum(acc, 1)[:, None])
""")
        assert "y_layout: gl.constexpr = coalesced([BM, 1], [0, 1], " in made
        assert conversions(made) == 1

    def test_a_column_of_a_tile_with_an_element_a_thread_is_stored_as_it_is(self, tiles: Port) -> None:
        made = tiles(
            """
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]).to(tl.float32)
tl.store(y_ptr + rows[:, None], tl.sum(x, 1)[:, None])
""",
            BM=8,
            BN=16,
        )
        assert conversions(made) == 0

    @pytest.mark.slow
    def test_a_reduction_expanded_again_needs_no_conversion(self, tiles: Port) -> None:
        made = tiles("""
at = rows[:, None] * N + cols[None, :]
x = tl.load(x_ptr + at).to(tl.float32)
tl.store(y_ptr + at, x / tl.sum(x, 1)[:, None] - tl.max(x, 0)[None, :])
""")
        assert conversions(made) == 0

    @pytest.mark.parametrize("keep", ["keep_dims=True", "True"])
    def test_a_reduction_that_keeps_its_dimension(self, tiles: Port, keep: str) -> None:
        made = tiles(f"""
at = rows[:, None] * N + cols[None, :]
x = tl.load(x_ptr + at).to(tl.float32)
tl.store(y_ptr + at, x - tl.sum(x, 1, {keep}))
""")
        assert conversions(made) == 0

    def test_a_lower_rank_is_expanded_in_the_source(self, tiles: Port) -> None:
        made = tiles("""
at = rows[:, None] * N + cols
tl.store(y_ptr + at, tl.load(x_ptr + at))
""")
        assert "rows[:, None] * N + cols[None, :]" in made
        assert conversions(made) == 0

    def test_a_row_of_weights_large_enough_for_itself_is_converted_small(self, tiles: Port) -> None:
        """256 elements are loaded coalesced, and converted before they are spread over the tile."""
        made = tiles(
            """
w = tl.load(x_ptr + cols)
at = rows[:, None] * N + cols[None, :]
tl.store(y_ptr + at, tl.load(y_ptr + at) * w[None, :])
""",
            BN=256,
        )
        assert conversions(made) == 1
        assert "gl.convert_layout(w, gl.SliceLayout(0, tile_layout))[None, :]" in made

    def test_a_small_row_of_weights_is_loaded_in_the_layout_that_its_reader_has(self, tiles: Port) -> None:
        made = tiles("""
w = tl.load(x_ptr + cols)
at = rows[:, None] * N + cols[None, :]
tl.store(y_ptr + at, tl.load(y_ptr + at) * w[None, :])
""")
        assert conversions(made) == 0
        assert len(layouts(made)) == 1

    def test_broadcast_to(self, tiles: Port) -> None:
        made = tiles("""
w = tl.broadcast_to(tl.load(x_ptr + cols)[None, :], (BM, BN))
tl.store(y_ptr + rows[:, None] * N + cols[None, :], w)
""")
        assert "_layout" in made

    def test_a_transpose(self, tiles: Port) -> None:
        made = tiles("""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
tl.store(y_ptr + cols[:, None] * M + rows[None, :], tl.trans(x))
""")
        assert conversions(made) >= 1

    def test_an_attribute_transpose(self, tiles: Port) -> None:
        made = tiles("""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
tl.store(y_ptr + cols[:, None] * M + rows[None, :], x.T)
""")
        assert conversions(made) >= 1


class TestAtomics:
    """Atomics want tiles; they are no loads."""

    TYPES = "x_ptr=*i32 y_ptr=*i32 n=i32"

    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            (
                "tl.atomic_add(y_ptr + offs, 1)",
                "gl.atomic_add(y_ptr + offs, gl.full([BLOCK], 1, y_ptr.dtype.element_ty, layout))",
            ),
            (
                "tl.atomic_max(y_ptr + offs, val=n, mask=offs < n)",
                "gl.atomic_max(y_ptr + offs, val=gl.full([BLOCK], n, y_ptr.dtype.element_ty, layout), mask=offs < n)",
            ),
            (
                "tl.atomic_add(y_ptr + offs, offs, mask=n > 3)",
                "gl.atomic_add(y_ptr + offs, offs, mask=gl.full([BLOCK], n > 3, gl.int1, layout))",
            ),
        ],
    )
    def test_a_scalar_becomes_a_tile(self, vectors: Port, call: str, expected: str) -> None:
        assert expected in vectors(call, self.TYPES)

    @pytest.mark.parametrize(
        "call",
        [
            "tl.atomic_add(y_ptr + offs, offs)",
            "tl.atomic_xchg(y_ptr + offs, offs, mask=None)",
            "tl.atomic_cas(y_ptr + offs, offs, offs + 1)",
            "tl.atomic_add(y_ptr, n)",
        ],
    )
    def test_tiles_and_scalar_atomics_stay(self, vectors: Port, call: str) -> None:
        assert "gl.full(" not in vectors(call, self.TYPES)

    def test_a_result_is_used(self, vectors: Port) -> None:
        made = vectors("old = tl.atomic_add(y_ptr + offs, offs)\ntl.store(x_ptr + offs, old)", self.TYPES)
        assert conversions(made) <= 1


class TestPairs:
    """`join` and `split` keep two elements in a thread."""

    def test_split_and_join(self, vectors: Port) -> None:
        made = vectors("""
a, b = tl.split(tl.reshape(tl.load(x_ptr + offs), (BLOCK // 2, 2)))
tl.store(y_ptr + offs, tl.reshape(tl.join(b, -a), (BLOCK,)))
""")
        assert "gl.join(b, -a)" in made

    def test_joined_loads(self, vectors: Port) -> None:
        made = vectors("""
a = tl.load(x_ptr + offs)
b = tl.load(x_ptr + n + offs)
tl.store(y_ptr + tl.arange(0, BLOCK * 2), tl.reshape(tl.join(a, b), (BLOCK * 2,)))
""")
        assert "gl.join(a, b)" in made

    @pytest.mark.slow
    def test_interleave(self, vectors: Port) -> None:
        made = vectors("""
a = tl.load(x_ptr + offs)
b = tl.load(x_ptr + n + offs)
tl.store(y_ptr + tl.arange(0, BLOCK * 2), tl.interleave(a, b))
""")
        assert "interleave(a, b)" in made


class TestIndices:
    """Reductions with indices."""

    @pytest.mark.parametrize(
        "statements",
        [
            "tl.store(y_ptr, tl.argmax(tl.load(x_ptr + offs), 0))",
            "v, i = tl.max(tl.load(x_ptr + offs), 0, return_indices=True)\ntl.store(y_ptr + i, v)",
            "v, i = tl.min(tl.load(x_ptr + offs), 0, return_indices=True, return_indices_tie_break_left=False)\n"
            "tl.store(y_ptr + i, v)",
            "v, i = tl.max(tl.load(x_ptr + offs), 0, True)\ntl.store(y_ptr + i, v)",
        ],
    )
    def test_of_vectors(self, vectors: Port, statements: str) -> None:
        assert "_with_index(" in vectors(statements)

    @pytest.mark.slow
    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_of_tiles(self, tiles: Port, axis: int) -> None:
        made = tiles(
            f"""
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
tl.store(y_ptr + {"cols" if axis == 0 else "rows"}, tl.argmin(x, axis={axis}))
""",
            BM=4,
        )
        assert conversions(made) == 0


class TestOther:
    """Operations that take or give layouts in their own way."""

    def test_a_histogram(self, vectors: Port) -> None:
        made = vectors(
            "tl.store(y_ptr + tl.arange(0, 256), tl.histogram(tl.load(x_ptr + offs), 256))",
            "x_ptr=*i32 y_ptr=*i32 n=i32",
        )
        assert "gl.histogram(gl.load(x_ptr + offs), 256, layout=" in made

    def test_whole_quotients_are_made_where_they_are_read(self, vectors: Port) -> None:
        made = vectors(
            "blocks = tl.cdiv(tl.load(x_ptr + offs), 4)\n"
            "rows = max(0, tl.arange(0, 32)[:, None] - n)\n"
            "square = rows * 32 + tl.arange(0, 32)[None, :]\n"
            "tl.store(y_ptr + square, tl.reshape(blocks, (32, 32)))",
            "x_ptr=*i32 y_ptr=*i32 n=i32",
        )
        assert "tl.cdiv(gl.load(x_ptr + offs), 4)" in made.replace("gl.cdiv", "tl.cdiv")

    @pytest.mark.slow
    def test_what_a_helper_is_given_and_does_not_use(self, port: Port, launch: MakeLaunch) -> None:
        text = """
@triton.jit
def scaled(x, bias, BIASED: tl.constexpr):
    return x + bias if BIASED else x * 2

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    half = tl.arange(0, BLOCK) * 2
    tile = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + tile + tl.sum(half, 0))
    tl.store(y_ptr + tile, scaled(x, half, False))
    tl.store(y_ptr + half, scaled(offs, half[None, :], False))
"""
        assert "scaled(" in port(text, launch("x_ptr=*i32 y_ptr=*i32 n=i32", BLOCK=256))

    @pytest.mark.parametrize(
        ("given", "how"),
        [
            ("offs", "offs_cols = gl.arange(0, offs.shape[0], layout="),
            ("offs + 1", "(offs[:, None] == offs_2[None, :] + i)"),
            ("tl.arange(32, 64)", "(offs[:, None] == offs_2[None, :] + i)"),
        ],
    )
    def test_a_range_that_a_helper_is_given_is_made_anew(
        self, port: Port, launch: MakeLaunch, given: str, how: str
    ) -> None:
        text = f"""
@triton.jit
def squared(x, offs, n):
    for i in range(n):
        x = x * (offs[:, None] == offs[None, :] + i)
    return x

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, 32)
    tile = offs[:, None] * 32 + offs[None, :]
    tl.store(y_ptr + tile, squared(tl.load(x_ptr + tile), {given}, n))
"""
        made = port(text, launch("x_ptr=*i32 y_ptr=*i32 n=i32", BLOCK=256))
        assert how in made
        assert "convert_layout(offs" not in made

    @pytest.mark.parametrize(
        ("given", "how"), [("offs", "inside_cols = (i + offs_cols) < n"), ("offs + 1", "gl.convert_layout(inside, ")]
    )
    def test_so_is_what_a_helper_computes_of_it(self, port: Port, launch: MakeLaunch, given: str, how: str) -> None:
        text = f"""
@triton.jit
def squared(x, offs, n):
    for i in range(n):
        inside = (i + offs) < n
        x = tl.where(inside[:, None] & inside[None, :], x * x, x)
    return x

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, 32)
    tile = offs[:, None] * 32 + offs[None, :]
    tl.store(y_ptr + tile, squared(tl.load(x_ptr + tile), {given}, n))
"""
        assert how in port(text, launch("x_ptr=*i32 y_ptr=*i32 n=i32", BLOCK=256))

    def test_custom_reductions(self, port: Port, launch: MakeLaunch) -> None:
        text = """
@triton.jit
def combine(a, b):
    return tl.maximum(a, b)

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, tl.associative_scan(x, 0, combine))
    tl.store(y_ptr, tl.reduce(x, 0, combine))
"""
        made = port(text, launch(VECTOR, BLOCK=1024))
        assert conversions(made) == 0

    @pytest.mark.slow
    def test_what_a_helper_returns_beside_what_it_loads(self, port: Port, launch: MakeLaunch) -> None:
        """A count of constants alone, which comes back in the layout of what is counted."""
        text = """
@triton.jit
def step(value, total, count, first):
    if first:
        new_count = tl.full(count.shape, 1, count.dtype)
        new_total = value
    else:
        new_count = count + 1
        new_total = total + value
    return new_total, new_count

@triton.jit
def kernel(x_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    total = tl.zeros([M, N], tl.float32)
    count = tl.zeros([M, N], tl.float32)
    for start in range(0, n, N):
        cols = start + tl.arange(0, N)[None, :]
        x = tl.load(x_ptr + rows * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        next_total, next_count = step(x, total, count, start == 0)
        total = tl.where(cols < n, next_total, total)
        count = tl.where(cols < n, next_count, count)
    tl.store(y_ptr + rows, tl.sum(total / count, 1)[:, None])
"""
        made = port(text, launch("x_ptr=*fp32 y_ptr=*fp32 n=i32", M=64, N=64))
        assert conversions(made[: made.index("gl.store(")]) == 0

    def test_tuples_of_tensors(self, vectors: Port) -> None:
        made = vectors("""
pair = (tl.load(x_ptr + offs), offs)
tl.store(y_ptr + pair[1], pair[0])
""")
        assert conversions(made) == 0

    def test_swapped_names(self, vectors: Port) -> None:
        made = vectors("""
a = tl.load(x_ptr + offs)
b = tl.load(x_ptr + n + offs)
a, b = b, a
tl.store(y_ptr + offs, a - b)
""")
        assert conversions(made) == 0

    def test_a_name_that_changes_its_shape(self, tiles: Port) -> None:
        made = tiles(
            """
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :]).to(tl.float32)
x = tl.sum(x, 1)
tl.store(y_ptr + rows, x)
""",
            BM=4,
        )
        assert conversions(made) == 0

    def test_random_numbers(self, vectors: Port) -> None:
        made = vectors("tl.store(y_ptr + offs, tl.rand(n, offs))")
        assert conversions(made) == 0

    def test_a_kernel_that_loads_nothing(self, vectors: Port) -> None:
        assert "gl.arange(0, BLOCK, layout=layout)" in vectors("tl.store(y_ptr + offs, offs)")

    def test_values_that_nothing_stores(self, vectors: Port) -> None:
        assert "layout=" in vectors("tl.device_assert(offs < n)\nm = tl.max(offs, 0)\ntl.store(y_ptr, m)")


class TestWidenedRows:
    """A row that becomes wider than it is loaded, and is spread over a tile."""

    ROW = """
w = tl.load(y_ptr + cols)
w = w + 1.0 * N
x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
tl.store(x_ptr + rows[:, None] * N + cols[None, :], x * w[None, :])
"""

    def test_one_that_is_not_wider_is_converted_as_it_is(self, tiles: Port) -> None:
        made = tiles(self.ROW, "x_ptr=*fp32 y_ptr=*fp32 M=i32 N=i32", BN=256)
        assert re.search(r"gl\.convert_layout\(w, gl\.SliceLayout\(0, \w+\)\)\[None, :\]", made)

    def test_one_that_is_stored_as_well_is_converted_as_it_is(self, tiles: Port) -> None:
        made = tiles(self.ROW + "tl.store(y_ptr + cols, w)", "x_ptr=*fp32 y_ptr=*fp16 M=i32 N=i32", BN=256)
        assert re.search(r"gl\.convert_layout\(w, gl\.SliceLayout\(0, \w+\)\)\[None, :\]", made)

    def test_one_that_is_spread_alone_is_converted_before(self, tiles: Port) -> None:
        made = tiles(self.ROW, "x_ptr=*fp32 y_ptr=*fp16 M=i32 N=i32", BN=256)
        assert re.search(r"w = gl\.convert_layout\(w, gl\.SliceLayout\(0, \w+\)\) \+ ", made)
        assert conversions(made) == 1


class TestStoredInFewerBits:
    """What is stored in fewer bits than it has is converted in these."""

    STORE = """
x = tl.load(x_ptr + cols[:, None] * M + rows[None, :])
ptrs = y_ptr + rows[:, None] * N + cols[None, :]
tl.store(ptrs, tl.trans(x))
"""

    def test_not_in_more_bits(self, tiles: Port) -> None:
        made = tiles(self.STORE, "x_ptr=*fp16 y_ptr=*fp32 M=i32 N=i32")
        assert "y_ptr.dtype.element_ty)" not in made

    def test_by_a_name_for_the_address(self, tiles: Port) -> None:
        made = tiles(self.STORE, "x_ptr=*fp32 y_ptr=*fp16 M=i32 N=i32")
        assert ".to(y_ptr.dtype.element_ty), " in made

    def test_in_a_helper_by_its_own_name_for_the_kernels_pointer(self, port: Port, launch: MakeLaunch) -> None:
        text = """
@triton.jit
def kept(x_ptr, out, BM: tl.constexpr, BN: tl.constexpr):
    rows, cols = tl.arange(0, BM), tl.arange(0, BN)
    ptrs = out + rows[:, None] * BN + cols[None, :]
    tl.store(ptrs, tl.trans(tl.load(x_ptr + cols[:, None] * BM + rows[None, :])))

@triton.jit
def kernel(x_ptr, y_ptr, BM: tl.constexpr, BN: tl.constexpr):
    kept(x_ptr, y_ptr, BM, BN)
"""
        made = port(text, launch("x_ptr=*fp32 y_ptr=*fp16", BM=64, BN=32))
        assert ".to(out.dtype.element_ty), " in made
