"""Kernels and ports simulated: what is equal, what differs, what cannot be simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tt2gl.children import Outcome
from tt2gl.diagnostics import Severity
from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.results import SimulateFinding, SimulateResult
from tt2gl.simulate.findings import Kind
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, SimulationRun, _run_of, simulate_many
from tt2gl.verify.simulated_kernel import Trouble, TroubleKind
from tt2gl.verify.simulation_diagnostics import simulation_diagnostics

TRITON = """\
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x * factor, mask=mask)
"""
GLUON = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    mask = offsets < n
    x = gl.load(x_ptr + offsets, mask=mask)
    gl.store(y_ptr + offsets, x * factor, mask=mask)
"""
LAUNCH = Launch(
    file="scale.py",
    kernel="scale_kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 128},
    grid=(4,),
    args={
        "x_ptr": TensorArg("float32", (500,), (1,)),
        "y_ptr": TensorArg("float32", (500,), (1,)),
        "n": 500,
        "factor": 0.3,
    },
)


def participant(path: Path, text: str, launch: Launch) -> Participant:
    path.write_text(text)
    return Participant(slice_kernel(read_source(path), launch.kernel), launch)


def job(folder: Path, port: str = GLUON, original: str = TRITON, launch: Launch = LAUNCH) -> SimulationJob:
    one = participant(folder / "scale.py", original, launch)
    return SimulationJob(one, participant(folder / "scale_gluon.py", port, launch), "sm90")


def simulated(job: SimulationJob, **options: Any) -> SimulationRun:
    (run,) = simulate_many([job], SimulationOptions(**options))
    return run


def changed(old: str, new: str) -> str:
    assert GLUON.count(old) == 1
    return GLUON.replace(old, new)


def test_a_port_is_equal_bit_for_bit(tmp_path: Path) -> None:
    run = simulated(job(tmp_path))
    assert run.result == SimulateResult(True, True, 0.0)
    assert simulation_diagnostics(run, "scale.py", "scale_kernel") == ()


def test_a_part_of_an_element_is_written_and_the_rest_stays(tmp_path: Path) -> None:
    def with_halves(text: str, language: str) -> str:
        kind = f"{language}.pointer_type({language}.float32)"
        return text.replace("store(y_ptr + offsets,", f"store((y_ptr + offsets).to({kind}),")

    args = LAUNCH.args or {}
    launch = replace(
        LAUNCH,
        signature={**LAUNCH.signature, "y_ptr": "*i64"},
        args={**args, "y_ptr": TensorArg("int64", (500,), (1,))},
    )
    run = simulated(job(tmp_path, with_halves(GLUON, "gl"), with_halves(TRITON, "tl"), launch))
    assert run.result == SimulateResult(True, True, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("x * factor, mask=mask", "x * factor + 1, mask=mask", "y_ptr["),
        ("x * factor, mask=mask", "x * factor, mask=mask & (offsets != 130)", "y_ptr[130] is written by the Triton"),
        ("x = gl.load(x_ptr", "x = gl.load(y_ptr", "nan"),
    ],
    ids=["value", "missing store", "reads its output"],
)
def test_a_wrong_port_is_not_equal(tmp_path: Path, old: str, new: str, reason: str) -> None:
    run = simulated(job(tmp_path, changed(old, new)))
    assert run.result is not None
    assert not run.result.equal
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel", 6)
    assert (told.code, told.severity, told.line) == ("TTG435", Severity.ERROR, 6)
    assert reason in told.message


def test_a_fault_of_the_port_is_an_error_at_its_line(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, changed("x = gl.load(x_ptr + offsets, mask=mask)", "x = gl.load(x_ptr + offsets)")))
    assert run.result is not None
    assert run.result.equal
    assert [found.buffer for found in run.result.own_faults] == ["x_ptr"]
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel")
    assert (told.code, told.severity) == ("TTG440", Severity.ERROR)
    assert (Path(told.file).name, told.line) == ("scale_gluon.py", 10)


def test_a_fault_of_both_is_a_warning_told_once(tmp_path: Path) -> None:
    unmasked = TRITON.replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr + offsets)")
    port = changed("gl.load(x_ptr + offsets, mask=mask)", "gl.load(x_ptr + offsets)")
    run = simulated(job(tmp_path, port, unmasked))
    assert run.result is not None
    assert run.result.own_faults == ()
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel")
    assert (told.code, told.severity, Path(told.file).name, told.line) == ("TTG440", Severity.WARNING, "scale.py", 9)
    assert "(and its port)" in told.message


REASSOCIATED = changed("x * factor, mask=mask", "x * (factor * 3.0) / 3.0, mask=mask")


def test_rounding_is_told_from_bugs_by_the_field(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, REASSOCIATED))
    assert run.result is not None
    assert (run.result.equal, run.result.bitwise, run.result.field) == (True, False, True)
    assert 0 < run.result.max_error <= 4
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel")
    assert (told.code, told.severity) == ("TTG436", Severity.NOTE)
    assert "Field arithmetic agrees exactly" in told.message


def test_a_small_error_that_is_no_rounding_is_a_bug(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, changed("x * factor, mask=mask", "x * (factor + 1e-7), mask=mask")))
    assert run.result is not None
    assert not run.result.equal
    assert "in field arithmetic" in run.reason
    alone = simulated(
        job(tmp_path, changed("x * factor, mask=mask", "x * (factor + 1e-7), mask=mask")), arithmetic="ieee"
    )
    assert alone.result is not None
    assert (alone.result.equal, alone.result.field) == (True, None)


def test_the_field_alone(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, REASSOCIATED), arithmetic="field")
    assert run.result == SimulateResult(True, True, 0.0, field=True)


def test_a_launch_that_says_too_little(tmp_path: Path) -> None:
    for launch in (replace(LAUNCH, grid=None), replace(LAUNCH, args={**(LAUNCH.args or {}), "n": None})):
        run = simulated(job(tmp_path, launch=launch))
        assert [told.code for told in simulation_diagnostics(run, "k.py", "k")] == ["TTG432"]


GUESSED = replace(LAUNCH, grid=None, args=None, origin="guessed")


def on_made_up(folder: Path, port: str = GLUON, original: str = TRITON, launch: Launch = GUESSED) -> SimulationRun:
    return simulated(replace(job(folder, port, original, launch), made_up=True))


def test_guessed_launches_are_simulated_on_made_up_arguments_where_asked(tmp_path: Path) -> None:
    assert [told.code for told in simulation_diagnostics(simulated(job(tmp_path, launch=GUESSED)), "k.py", "k")] == [
        "TTG432"
    ]
    run = on_made_up(tmp_path)
    assert run.result == SimulateResult(True, True, 0.0)
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert (told.code, told.severity) == ("TTG438", Severity.NOTE)
    assert "a grid of 2, n=101, factor=0.5." in told.message


@pytest.mark.slow
def test_a_wrong_port_differs_on_made_up_arguments(tmp_path: Path) -> None:
    run = on_made_up(tmp_path, changed("x * factor, mask=mask", "x * factor + 1, mask=mask"))
    assert run.result is not None
    assert not run.result.equal
    assert {told.code for told in simulation_diagnostics(run, "k.py", "k")} == {"TTG435", "TTG438"}


def test_one_program_is_asked_where_several_write_one_place(tmp_path: Path) -> None:
    """Each program scales what the one before left: with several of them both hang on their order."""
    triton = TRITON.replace("tl.program_id(0) * BLOCK + ", "").replace("x * factor", "x * factor * tl.program_id(0)")
    gluon = GLUON.replace("gl.program_id(0) * BLOCK + ", "").replace("x * factor", "x * factor * -gl.program_id(0)")
    run = on_made_up(tmp_path, gluon, triton)
    assert run.result is not None
    assert run.result.equal
    assert "a grid of 1, " in run.made_up


@pytest.mark.slow
def test_arguments_with_which_the_original_is_at_fault_say_nothing(tmp_path: Path) -> None:
    run = on_made_up(
        tmp_path, original=TRITON.replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr - offsets)")
    )
    assert run.result is None
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert (told.code, told.severity) == ("TTG432", Severity.WARNING)
    assert "do not suit it: the Triton kernel: load outside x_ptr" in told.message


def test_a_launch_whose_tensors_are_of_another_type(tmp_path: Path) -> None:
    args = {**(LAUNCH.args or {}), "x_ptr": TensorArg("float16", (500,), (1,))}
    run = simulated(job(tmp_path, launch=replace(LAUNCH, args=args)))
    assert run.trouble is not None
    assert run.trouble.message == "the elements of x_ptr are float16 and the kernel takes f32"


def test_more_memory_than_the_limit(tmp_path: Path) -> None:
    run = simulated(job(tmp_path), memory_limit=3000)
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert told.code == "TTG433"


def test_an_unknown_operation_is_told_at_its_line(tmp_path: Path) -> None:
    unknown = TRITON.replace(
        "tl.store(y_ptr + offsets, x * factor",
        'y = tl.inline_asm_elementwise("bogus $0, $1;", "=r,r", [x], tl.float32, True, 1)\n'
        "    tl.store(y_ptr + offsets, y",
    )
    run = simulated(job(tmp_path, original=unknown))
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert (told.code, Path(told.file).name, told.line) == ("TTG431", "scale.py", 10)


def test_a_kernel_that_does_not_compile_fails(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, changed("x * factor", "x * undefined_name")))
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert told.code == "TTG430"
    assert "undefined_name" in told.message


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome("timeout", error="took longer than 1 s"), "too long"),
        (Outcome("error", error="MemoryError: Unable to allocate 3 TiB"), "too large"),
        (Outcome("crash", error="SIGSEGV"), "failed"),
    ],
)
def test_how_a_child_may_end(outcome: Outcome[SimulationRun], kind: TroubleKind) -> None:
    run = _run_of(outcome)
    assert run.trouble is not None
    assert run.trouble.kind == kind
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert told.hint


def test_what_field_arithmetic_cannot_do_is_told_with_the_rest() -> None:
    result = SimulateResult(True, False, 2.0)
    run = SimulationRun(result, field_trouble=Trouble("failed", "the Triton kernel: bits of a float"))
    (told,) = simulation_diagnostics(run, "k.py", "k")
    assert "could not decide: the Triton kernel: bits of a float." in told.message


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_fault_has_a_code(kind: str) -> None:
    found = SimulateFinding("gluon", kind, "something is wrong", "g.py", 3, "ring", "g.py", 5)
    (told,) = simulation_diagnostics(SimulationRun(SimulateResult(True, True, 0.0, (found,))), "k.py", "k")
    assert told.message == "The Gluon kernel k: something is wrong [ring] (the other access: g.py:5)."
    assert (told.file, told.line) == ("g.py", 3)
    assert told.hint


DESCRIBED = """\
import triton
import triton.language as tl


@triton.jit
def tile_kernel(x_desc, y_ptr, BLOCK: tl.constexpr):
    x = x_desc.load([tl.program_id(0) * BLOCK, 0])
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, 16)
    tl.store(y_ptr + (tl.program_id(0) * BLOCK + rows[:, None]) * 16 + columns[None, :], x)
"""


def test_a_descriptor_is_spread_as_triton_does(tmp_path: Path) -> None:
    launch = Launch(
        file="tile.py",
        kernel="tile_kernel",
        signature={"x_desc": "tensordesc<fp32[16, 16]>", "y_ptr": "*fp32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 16},
        grid=(2,),
        args={
            "x_desc": DescriptorArg("float32", (30, 16), (16, 1), (16, 16)),
            "y_ptr": TensorArg("float32", (32, 16), (16, 1)),
        },
    )
    one = participant(tmp_path / "tile.py", DESCRIBED, launch)
    run = simulated(SimulationJob(one, one, "sm90"))
    assert run.result == SimulateResult(True, True, 0.0)


def in_tuples(text: str) -> str:
    """The kernel with its arguments in a tuple, of which `factor` is one more deep, and a constant beside it."""
    text = text.replace("x_ptr, y_ptr, n, factor, BLOCK", "values, BLOCK")
    return text.replace("    offsets =", "    x_ptr, y_ptr, (n, one, factor), nothing = values\n    offsets =")


IN_TUPLES = replace(
    LAUNCH,
    signature={"values": "(*fp32, *fp32, (i32, constexpr, fp32), constexpr)", "BLOCK": "constexpr"},
    args={"values": (TensorArg("float32", (500,), (1,)), TensorArg("float32", (500,), (1,)), (500, 1, 0.3), None)},
)


def test_tuples_of_arguments(tmp_path: Path) -> None:
    run = simulated(job(tmp_path, in_tuples(GLUON), in_tuples(TRITON), IN_TUPLES))
    assert run.result == SimulateResult(True, True, 0.0), run
    wrong = changed("x * factor, mask=mask", "x * n, mask=mask")
    run = simulated(job(tmp_path, in_tuples(wrong), in_tuples(TRITON), IN_TUPLES))
    assert run.reason.startswith("values[1][")


def test_a_tuple_of_other_elements_than_its_type(tmp_path: Path) -> None:
    launch = replace(IN_TUPLES, args={"values": (1, 2)})
    run = simulated(job(tmp_path, in_tuples(GLUON), in_tuples(TRITON), launch))
    assert run.trouble is not None
    assert run.trouble.message == "the launch does not say what values was"


# In the last program the sum is of elements that nothing defines, too.
OPEN = TRITON.replace("x * factor, mask=mask", "x * factor + tl.sum(x, 0), mask=mask")
FILLED = changed("mask=mask)\n    gl.store", "mask=mask, other=0.0)\n    gl.store").replace(
    "x * factor, mask=mask", "x * factor + gl.sum(x, 0), mask=mask"
)


@pytest.mark.parametrize("arithmetic", ["ieee", "field"])
def test_what_masks_leave_undefined_is_compared_with_zeros_there(tmp_path: Path, arithmetic: str) -> None:
    run = simulated(job(tmp_path, FILLED, OPEN), arithmetic=arithmetic)
    assert run.result is not None
    assert (run.result.equal, run.result.bitwise, run.result.undefined) == (True, True, True)
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel")
    assert (told.code, told.severity) == ("TTG437", Severity.WARNING)


@pytest.mark.parametrize(
    "wrong",
    [
        FILLED.replace("mask=mask, other", "mask=mask & (offsets != 3), other"),
        FILLED.replace("gl.sum(x, 0)", "gl.sum(x, 0) * 2"),
        FILLED.replace("+ gl.sum(x, 0)", "+ gl.sum(x, 0) + gl.where(offsets > 400, 1.0, 0.0)"),
    ],
    ids=["defined", "everywhere", "undefined"],
)
def test_a_wrong_port_of_a_kernel_with_undefined_results_is_not_equal(tmp_path: Path, wrong: str) -> None:
    assert wrong != FILLED
    run = simulated(job(tmp_path, wrong, OPEN))
    assert run.result is not None
    assert not run.result.equal


def test_nan_of_what_masks_leave_undefined_hides_no_wrong_port(tmp_path: Path) -> None:
    one = replace(LAUNCH, grid=(1,))
    assert one.args is not None
    short = replace(one, args={**one.args, "n": 100})
    both = FILLED.replace(", other=0.0", ""), OPEN
    run = simulated(job(tmp_path, *both, short))
    assert run.result is not None
    assert (run.result.equal, run.result.undefined) == (True, True)
    run = simulated(job(tmp_path, both[0].replace("gl.sum(x, 0)", "gl.sum(x, 0) * 2"), both[1], short))
    assert run.result is not None
    assert not run.result.equal


def test_nan_of_other_bits_is_no_rounding(tmp_path: Path) -> None:
    text = "x * factor, mask=mask"
    port = changed(text, "(x - x) / (x - x), mask=mask")
    run = simulated(
        job(tmp_path, port.replace("(x - x) /", "-(x - x) /"), TRITON.replace(text, "(x - x) / (x - x), mask=mask"))
    )
    assert run.result is not None
    assert (run.result.equal, run.result.max_error, run.result.field) == (True, 0.0, None)


def test_an_other_that_the_port_leaves_out_is_not_undefined(tmp_path: Path) -> None:
    original = OPEN.replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr + offsets, mask=mask, other=0.0)")
    run = simulated(job(tmp_path, FILLED.replace(", other=0.0", ""), original))
    assert run.result is not None
    assert (run.result.equal, run.result.undefined) == (False, False)


# What a program finds in x_ptr[0] is what those before it left there.
QUEUED = """
    found = tl.load(x_ptr) * 2 + tl.program_id(0)
    tl.store(x_ptr, found)
    tl.store(y_ptr + BLOCK + tl.program_id(0), tl.load(x_ptr))
"""
TOLD = QUEUED.replace("tl.load(x_ptr))", "found)").replace("tl.", "gl.")


def test_what_hangs_on_the_order_of_programs_is_compared_in_turn(tmp_path: Path) -> None:
    launch = replace(LAUNCH, grid=(3,), args={**(LAUNCH.args or {}), "n": 128})
    run = simulated(job(tmp_path, GLUON + TOLD, TRITON + QUEUED, launch))
    assert run.result is not None
    assert (run.result.equal, run.result.ordered) == (True, True)
    (told,) = simulation_diagnostics(run, "scale.py", "scale_kernel")
    assert (told.code, told.severity) == ("TTG439", Severity.WARNING)
    run = simulated(job(tmp_path, GLUON + TOLD.replace("* 2", "* 3"), TRITON + QUEUED, launch))
    assert run.result is not None
    assert (run.result.equal, run.result.ordered) == (False, True)
