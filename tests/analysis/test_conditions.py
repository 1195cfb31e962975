"""What tells groups of launches apart when a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tt2gl.analysis.conditions import Case, Decision, decided, tellings
from tt2gl.analysis.facts import DotFact, DotOperandFact, Instruction, LaunchFacts, Lowered
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch
from tt2gl.plan import Choice

MakeLaunch = Callable[..., Launch]

NO_LAYOUT = DialectAttr("ttg.blocked", ())


def facts(instruction: Instruction | None, rows: int) -> LaunchFacts:
    """A launch with one dot of that many rows, or without any."""
    if instruction is None:
        return LaunchFacts("kernel", {}, {})
    operand = DotOperandFact(False, (rows, 32), "f16", NO_LAYOUT)
    dot = DotFact(instruction, NO_LAYOUT, operand, operand, False)
    return LaunchFacts("kernel", {}, {}, Lowered({(("kernel.py", 1, 0),): dot}))


def chosen(*cases: tuple[str, Launch], instruction: str = "", asks_stages: bool = False) -> Choice | None:
    """The choice between functions of those names; those that begin with `instruction` are its."""
    made = found(*cases, instruction=instruction, asks_stages=asks_stages)
    return None if made is None else made.choice


def found(*cases: tuple[str, Launch], instruction: str = "", asks_stages: bool = False) -> Decision | None:
    """The choice with its flags."""

    def case(name: str, launch: Launch) -> Case:
        rows = launch.constexprs.get("BM", 1)
        kind: Any = ("wgmma" if name == instruction else "mma_v2") if instruction else None
        return Case(launch, facts(kind, rows), name, asks_stages)

    return decided([case(name, launch) for name, launch in cases])


def test_nothing_tells(launch: MakeLaunch) -> None:
    one = launch("x=*fp16 n=i32", BM=64)
    assert chosen(("a", one), ("b", one)) is None


def test_what_is_not_known_when_it_is_compiled_does_not_tell(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 n=i32"), launch("x=*fp16 n=i64")
    assert chosen(("a", one), ("b", other)) is None


@pytest.mark.parametrize(
    ("one", "other", "condition"),
    [
        pytest.param({"FLAG": True}, {"FLAG": False}, "FLAG", id="a flag"),
        pytest.param({"B": None}, {"B": 1}, "B is None", id="presence"),
        pytest.param({"WORD": "x"}, {"WORD": "y"}, 'WORD == "x"', id="a word"),
        pytest.param({"BM": 64}, {"BM": 128}, "BM >= 128", id="a threshold"),
        pytest.param({"num_warps": 2}, {"num_warps": 8}, "gl.num_warps() >= 8", id="warps"),
        pytest.param({"types": "x=*fp16"}, {"types": "x=*fp32"}, "x.dtype.element_ty == gl.float16", id="a type"),
        pytest.param({"types": "x=*i8"}, {"types": "x=*fp8e4b8"}, "x.dtype.element_ty == gl.int8", id="bytes"),
        pytest.param({"types": "x=*ku8"}, {"types": "x=*u1"}, "x.dtype.element_ty == gl.uint8", id="unsigned"),
    ],
)
def test_one_condition(launch: MakeLaunch, one: dict[str, Any], other: dict[str, Any], condition: str) -> None:
    launches = [launch(**{"types": "x=*fp16", "SAME": 1, **values}) for values in (one, other)]
    made = chosen(("a", launches[0]), ("b", launches[1]))
    assert made is not None
    assert made.condition == condition
    assert (made.then, made.otherwise) == (
        ("b", "a") if ">=" in condition and "warps() % 4" not in condition else ("a", "b")
    )


def test_constant_memory_is_no_other_type(launch: MakeLaunch) -> None:
    assert chosen(("a", launch("x=*fp16")), ("b", launch("x=*kfp16"))) is None


def test_a_value_between_others(launch: MakeLaunch) -> None:
    cases = [("a" if value == 64 else "b", launch("x=*fp16", BM=value)) for value in (32, 64, 128)]
    assert chosen(*cases) == Choice("BM == 64", "a", "b")


def test_two_conditions_at_once(launch: MakeLaunch) -> None:
    cases = [("b" if m and n else "a", launch("x=*fp16", M=m, N=n)) for m in (False, True) for n in (False, True)]
    assert chosen(*cases) == Choice("M and N", "b", "a")


@pytest.mark.parametrize(
    ("wanted", "condition"),
    [
        ([(True, False)], "M and not N"),
        ([(False, True)], "N and not M"),
        ([(True, False), (False, True), (True, True)], "M or N"),
    ],
)
def test_a_flag_without_another_and_either(launch: MakeLaunch, wanted: list[tuple[bool, bool]], condition: str) -> None:
    both = [(m, n) for m in (False, True) for n in (False, True)]
    cases = [("b" if flags in wanted else "a", launch("x=*fp16", M=flags[0], N=flags[1])) for flags in both]
    assert chosen(*cases) == Choice(condition, "b", "a")


def test_exact_values_where_nothing_else_tells(launch: MakeLaunch) -> None:
    cases = [("a" if m == n else "b", launch("x=*fp16", M=m, N=n)) for m in (32, 64) for n in (32, 64)]
    assert chosen(*cases) == Choice("M == 32 and N == 32 or M == 64 and N == 64", "a", "b")


def test_words_of_several_launches(launch: MakeLaunch) -> None:
    cases = [("b" if word == "z" else "a", launch("x=*fp16", WORD=word, SAME="s")) for word in "xyz"]
    assert chosen(*cases) == Choice('WORD == "z"', "b", "a")
    cases = [(name, launch("x=*fp16", WORD=word)) for name, word in zip("aabb", "wxyz", strict=True)]
    assert chosen(*cases) == Choice('WORD == "w" or WORD == "x"', "a", "b")
    # A launch that none of the words tells apart leaves nothing to ask.
    assert chosen(*cases, ("b", launch("x=*fp16", WORD="w"))) is None


def test_three_functions(launch: MakeLaunch) -> None:
    cases = [(name, launch("x=*fp16", BM=value)) for name, value in (("a", 16), ("b", 32), ("c", 64))]
    assert chosen(*cases) == Choice("BM >= 32", Choice("BM >= 64", "c", "b"), "a")


def test_the_instruction_has_a_rule_of_its_own(launch: MakeLaunch) -> None:
    cases = [("wgmma", 4, 64), ("wgmma", 8, 128), ("mma", 2, 64), ("mma", 4, 32)]
    launches = [
        (name, launch("x=*fp16", warps, OTHER=0 if name == "mma" else 1, BM=rows)) for name, warps, rows in cases
    ]
    made = chosen(*launches, instruction="wgmma")
    assert made is not None
    assert made.condition == "gl.num_warps() % 4 == 0 and BM >= 64"
    assert (made.then, made.otherwise) == ("wgmma", "mma")
    assert "64 rows" in made.comment


def test_a_type_tells_instructions_apart_before_numbers_do(launch: MakeLaunch) -> None:
    cases = [("wgmma", launch("x=*fp16", BM=64, BN=32)), ("fma", launch("x=*fp32", BM=64, BN=64))]
    made = chosen(*cases, instruction="wgmma")
    assert made is not None
    assert made.condition == "x.dtype.element_ty == gl.float16"


def test_an_integer_that_is_one(launch: MakeLaunch) -> None:
    one = launch("x=*fp16 stride=i32")
    known = replace(one, signature={**one.signature, "stride": "constexpr"}, constexprs={"stride": 1})
    made = chosen(("a", known), ("b", one))
    assert made is not None
    assert (made.condition, made.then, made.otherwise) == ("isinstance(stride, int)", "a", "b")


def test_alignment_is_told_by_the_launch(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 m=i32 n=i32"), launch("x=*fp16 m=i32 n=i32", aligned=False)
    made = found(("a", one), ("b", replace(other, divisible_by_16=("x", "m"))))
    assert made is not None
    assert (made.choice.condition, made.choice.then, made.choice.otherwise) == ("ALIGNED", "a", "b")
    assert made.flags == {"ALIGNED": ("n",)}


def test_alignment_is_no_reason_for_an_instruction(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 n=i32"), launch("x=*fp16 n=i32", aligned=False)
    assert found(("wgmma", one), ("mma", other), instruction="wgmma") is None


def test_a_flag_avoids_the_names_of_parameters(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 n=i32", ALIGNED=1), launch("x=*fp16 n=i32", aligned=False, ALIGNED=1)
    made = found(("a", one), ("b", other))
    assert made is not None
    assert made.flags == {"ALIGNED_2": ("n",)}


def test_stages_tell_where_the_kernel_knows_them(launch: MakeLaunch) -> None:
    one = launch("x=*fp16")
    other = replace(one, options=replace(one.options, num_stages=1))
    assert chosen(("a", one), ("b", other)) is None
    assert chosen(("a", one), ("b", other), asks_stages=True) == Choice("NUM_STAGES >= 3", "a", "b")


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        ("FLAG", "flag", "no_flag"),
        ("B is None", "without_b", "with_b"),
        ("isinstance(stride, int)", "stride_is_1", "any_stride"),
        ("BM >= 64", "bm_from_64", "bm_below_64"),
        ("gl.num_warps() >= 8", "num_warps_from_8", "num_warps_below_8"),
        ('WORD == "x"', "word_x", "word_not_x"),
        ("x.dtype.element_ty == gl.float16", "x_float16", "x_not_float16"),
        ("A and B", "", ""),
    ],
)
def test_what_a_condition_says_of_a_function(condition: str, yes: str, no: str) -> None:
    assert tellings(Choice("OTHER", Choice(condition, "a", "b"), "c")) == {"a": yes, "b": no, "c": "no_other"}
