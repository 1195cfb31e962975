"""Kernels with several bodies: who gets one of their own, what chooses between them, and that all are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.planner import Planner
from tt2gl.analysis.terms import Root
from tt2gl.analysis.versions import Wanted
from tt2gl.convert import convert
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch, Options
from tt2gl.plan import FunctionPlan
from tt2gl.results import Conversion
from tt2gl.variants import analysed
from tt2gl.verify.api import verify

GOLDEN = Path(__file__).parent / "golden"

HEADER = "import triton\nimport triton.language as tl\n\n\n"

COPY = """
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, SM: tl.constexpr, SN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * SM + tl.arange(0, BN)[None, :] * SN
    tl.store(y_ptr + at, tl.load(x_ptr + at))
"""

PRODUCT = """
@triton.jit
def accumulated(a, b, acc):
    return tl.dot(a, b, acc)


@triton.jit
def product_kernel(x_ptr, y_ptr, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    \"\"\"y = x @ x.T, of whole tiles.\"\"\"
    rows, cols, steps = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BK):
        a = tl.load(x_ptr + rows[:, None] * n + k + steps[None, :])
        b = tl.load(x_ptr + cols[None, :] * n + k + steps[:, None])
        acc = accumulated(a, b, acc)
    tl.store(y_ptr + rows[:, None] * BN + cols[None, :], acc)
"""

Convert = Callable[..., Conversion]


def launch(kernel: str, num_warps: int = 4, num_stages: int = 3, **values: int) -> Launch:
    """A launch with every pointer and integer divisible by 16."""
    options = Options(num_warps, num_stages)
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", **dict.fromkeys(values, "constexpr")}
    return Launch("kernels.py", kernel, signature, values, ("x_ptr", "y_ptr", "n"), options)


def product_launches(num_stages: int) -> list[Launch]:
    """Launches for wgmma, for too few warps, and for too few rows.

    Without loads ahead of the loop the call of the helper stays.
    """
    sizes = ((4, 64), (2, 64), (4, 32))
    return [launch("product_kernel", warps, num_stages, BM=rows, BN=64, BK=32) for warps, rows in sizes]


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Convert:
    """A text converted for sm90."""
    monkeypatch.chdir(tmp_path)

    def apply(text: str, *launches: Launch, **options: Any) -> Conversion:
        Path("kernels.py").write_text(HEADER + text.lstrip("\n"))
        return convert("kernels.py", target="sm90", launches=launches, **options)

    return apply


def function(made: Conversion, name: str) -> str:
    """The text of one function."""
    return made.text[made.text.index(f"def {name}(") :].partition("\n\n\n")[0]


def test_one_group_of_launches_has_one_body(port: Convert) -> None:
    launches = [launch("product_kernel", num_stages=1, BM=64, BN=size, BK=32) for size in (32, 64)]
    made = port(PRODUCT, *launches, compile=False)
    assert made.text.count("def product_kernel") == 1
    assert made.text.count("@gluon.jit\ndef accumulated(") == made.text.count("def accumulated") == 1


def test_instructions_have_bodies_and_helpers_that_differ_too(port: Convert) -> None:
    made = port(PRODUCT, *product_launches(num_stages=1))
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())] * 3
    assert "if gl.num_warps() % 4 == 0 and BM >= 64:\n        product_kernel_wgmma(" in function(made, "product_kernel")
    assert "accumulated_wgmma(" in function(made, "product_kernel_wgmma")
    assert "accumulated_mma_v2(" in function(made, "product_kernel_mma_v2")
    assert "= warpgroup_mma(" in function(made, "accumulated_wgmma")
    assert "return mma_v2(" in function(made, "accumulated_mma_v2")
    assert "def accumulated(" not in made.text


@pytest.mark.slow
def test_a_helper_that_is_written_out_has_the_instruction_of_each_body(port: Convert) -> None:
    made = port(PRODUCT, *product_launches(num_stages=3))
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())] * 3
    assert "acc = warpgroup_mma(a, b, acc, is_async=True)" in function(made, "product_kernel_wgmma")
    assert "acc = mma_v2(a, b, acc)" in function(made, "product_kernel_mma_v2")
    assert "accumulated_" not in made.text


class Disagreeing(Planner):
    """Wants two layouts at one place of a text that is for two launches."""

    def plans(self) -> list[FunctionPlan]:
        """The plans, where no text is for two launches."""
        for place, analysis in enumerate(self.analyses):
            if len(analysis.scenes) == 2:
                wanted: Wanted = {(place, 0, ()): Root("rows"), (place, 1, ()): Root("columns")}
                raise Conflict(analysis.body(analysis.function), (1, 0, 1, 1), [wanted])
        return super().plans()


def test_launches_that_want_two_layouts_have_bodies(port: Convert, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tt2gl.variants.Planner", Disagreeing)
    launches = [launch("copy_kernel", SM=m, SN=n, BM=64, BN=64) for m, n in ((64, 1), (1, 64))]
    made = port(COPY, *launches)
    assert [report.status for report in made.kernels] == ["converted"] * 2
    assert "if SM >= 64:\n        copy_kernel_sm_from_64(" in function(made, "copy_kernel")
    assert "[BM, BN], [1, 0]" in function(made, "copy_kernel_sm_from_64")
    assert "[BM, BN], [0, 1]" in function(made, "copy_kernel_sm_below_64")


TURNED = """
@triton.jit
def turned_kernel(x_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x_ptr + rows[:, None] * K + ks[None, :])
    if TURNED:
        ptrs = x_ptr + cols[:, None] * K + ks[None, :]
    else:
        ptrs = x_ptr + ks[:, None] * N + cols[None, :]
    b = tl.load(ptrs)
    if TURNED:
        acc = tl.dot(a, tl.trans(b))
    else:
        acc = tl.dot(a, b)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], acc)
"""


def test_what_is_turned_under_some_launches_has_the_extents_of_each_in_memory(port: Convert) -> None:
    made = port(TURNED, *(launch("turned_kernel", M=64, N=32, K=64, TURNED=turned) for turned in (False, True)))
    assert [(report.status, report.diagnostics) for report in made.kernels] == [("converted", ())] * 2
    assert "gl.allocate_shared_memory(b.dtype, [N if TURNED else K, K if TURNED else N], " in made.text


RANKS = """
@triton.jit
def ranks_kernel(x_ptr, y_ptr, n, WIDTH: tl.constexpr, B: tl.constexpr):
    if WIDTH == 1:
        at = tl.program_id(0) * B + tl.arange(0, B)
    else:
        at = (tl.program_id(0) * B + tl.arange(0, B))[None, :]
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n).to(tl.float32), at < n)
"""


def test_accesses_of_more_dimensions_under_some_launches_have_bodies(port: Convert) -> None:
    made = port(RANKS, *(launch("ranks_kernel", WIDTH=width, B=256) for width in (1, 2)))
    assert [report.status for report in made.kernels] == ["converted"] * 2
    assert {each.code for report in made.kernels for each in report.diagnostics} == {"TTG330"}
    assert function(made, "ranks_kernel").count("ranks_kernel_") == 2


GATHERED = """
@triton.jit
def gathered_kernel(x_ptr, y_ptr, n, BY_ID: tl.constexpr, TURNED: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    if BY_ID:
        rows = tl.load(x_ptr + at).to(tl.int32)
    else:
        rows = tl.where(at == 0, n, 7)
    inside = rows < n
    v = tl.load(x_ptr + rows[:, None] * B + at[None, :], mask=inside[:, None], other=0.0)
    if TURNED:
        tl.store(y_ptr + at[None, :] * B + rows[:, None], v, mask=inside[:, None])
    else:
        tl.store(y_ptr + rows[:, None] * B + at[None, :], v, mask=inside[:, None])
"""


@pytest.mark.parametrize(("flags", "bodies"), [([(1, 1), (0, 1)], 1), ([(1, 0), (0, 1)], 3)])
def test_a_name_that_one_side_of_a_branch_defines_is_read_in_a_body_of_its_own(
    port: Convert, flags: list[tuple[int, int]], bodies: int
) -> None:
    launches = [launch("gathered_kernel", BY_ID=by_id, TURNED=turned, B=64) for by_id, turned in flags]
    made = port(GATHERED, *launches)
    assert {report.status for report in made.kernels} == {"converted"}
    assert made.text.count("@gluon.jit") == bodies


@pytest.mark.slow
def test_how_many_products_are_added_in_fewer_bits_is_the_launch_s_to_say(port: Convert) -> None:
    text = PRODUCT.replace("accumulated(a, b, acc)\n    tl", "tl.dot(a, b, acc, max_num_imprecise_acc=LIMIT)\n    tl")
    text = text.replace("BK: tl.constexpr)", "BK: tl.constexpr, LIMIT: tl.constexpr)")

    def limited(limit: int | None) -> Launch:
        made = launch("product_kernel", BM=64, BN=64, BK=64, LIMIT=limit)  # type: ignore[arg-type]
        return replace(made, signature={**made.signature, "x_ptr": "*fp8e5"})

    called = "max_num_imprecise_acc=LIMIT"
    made = port(text, limited(32), limited(64))
    assert made.text.count(called) == 1
    assert "LIMIT is" not in made.text
    made = port(text, limited(32), limited(None))
    assert [report.status for report in made.kernels] == ["converted", "converted"]
    assert made.text.count(called) == 1
    assert len([line for line in made.text.splitlines() if "acc = warpgroup_mma(" in line]) == 2
    assert "if LIMIT is" in made.text


@pytest.mark.slow
def test_what_only_the_launch_knows_keeps_the_kernel(port: Convert) -> None:
    aligned = launch("product_kernel", BM=64, BN=64, BK=32)
    made = port(PRODUCT, aligned, replace(aligned, divisible_by_16=("y_ptr", "n")), compile=False)
    assert [[d.code for d in report.diagnostics] for report in made.kernels] == [["TTG310"]] * 2
    message = made.kernels[0].diagnostics[0].message
    assert "pipelined under launches 0" in message
    assert "plain under launches 1" in message


@pytest.mark.slow
def test_alignment_that_the_launch_tells(port: Convert) -> None:
    aligned = launch("product_kernel", BM=64, BN=64, BK=32)
    made = port(PRODUCT, aligned, replace(aligned, divisible_by_16=("x_ptr", "y_ptr")))
    assert [report.status for report in made.kernels] == ["converted"] * 2
    given = '@triton.heuristics({"ALIGNED": lambda args: args["n"] % 16 == 0})\n'
    assert given in made.text
    assert "if ALIGNED:\n        product_kernel_pipelined(" in function(made, "product_kernel")


@pytest.mark.slow
def test_a_kernel_that_analysis_fails_on_is_the_one_that_is_kept(
    port: Convert, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(kernel: Any, name: str, *arguments: Any) -> Any:
        if name == "product_kernel":
            raise KeyError("x")
        return analysed(kernel, name, *arguments)

    monkeypatch.setattr("tt2gl.decision.analysed", failing)
    launches = [launch("copy_kernel", SM=64, SN=1, BM=64, BN=64), launch("product_kernel", BM=64, BN=64, BK=32)]
    made = port(PRODUCT + "\n" + COPY, *launches, compile=False)
    kept = {report.kernel: [d.code for d in report.diagnostics] for report in made.kernels}
    assert kept == {"copy_kernel": [], "product_kernel": ["TTG900"]}


@pytest.mark.slow
@pytest.mark.subset
def test_every_body_computes_what_the_kernel_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    launches = read_launches(Path("tuned_matmul.launches.json"))
    reports = verify(
        "tuned_matmul.py", "tuned_matmul.sm90.gluon.py", targets=["sm90"], launches=launches, run="simulate"
    )
    assert [report.simulate and report.simulate.equal for report in reports] == [True] * len(launches)
