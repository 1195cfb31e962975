"""Operations, values, regions, blocks and locations of hand-written text."""

from __future__ import annotations

import pytest

from tt2gl.ir.attributes import UNIT
from tt2gl.ir.operations import UNKNOWN, Location, Module, Operation
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import IntegerType

I32 = IntegerType(32)


def parse(*lines: str) -> Module:
    """A module of these lines."""
    return parse_module("\n".join(['"builtin.module"() ({', *lines, "}) : () -> ()", ""]))


def body(*lines: str) -> list[Operation]:
    """The operations of a module of these lines."""
    return parse(*lines).operation.regions[0].entry.operations


def test_operands_are_the_values_themselves() -> None:
    first, second = body('%a = "x.a"() : () -> i32', '%b = "x.b"(%a, %a) : (i32, i32) -> i32')
    assert second.operands == (first.results[0], first.results[0])
    assert second.operands[0] is first.results[0]
    assert (first.results[0].name, first.results[0].type) == ("a", I32)


def test_results_in_groups() -> None:
    made, used = body('%0:2, %x = "x.a"() : () -> (i32, f32, i1)', '"x.b"(%x, %0#1) : (i1, f32) -> ()')
    assert [value.name for value in made.results] == ["0#0", "0#1", "x"]
    assert used.operands == (made.results[2], made.results[1])


def test_quoted_names_have_no_quotes() -> None:
    made, used = body('%"a, b" = "x.a"() : () -> i32', '"x.b"(%"a, b", %"a, b") : (i32, i32) -> ()')
    assert made.results[0].name == "a, b"
    assert used.operands == made.results * 2


def test_properties_and_attributes_are_one_mapping() -> None:
    (operation,) = body('"x.a"() <{axis = 0 : i32, flag}> {tt.more = "}> : ("} : () -> ()')
    assert operation.attributes == {"axis": 0, "flag": UNIT, "tt.more": "}> : ("}


def test_properties_come_before_regions_and_attributes_behind() -> None:
    (operation,) = body('"x.a"() <{a = 1 : i32}> ({', '  "x.b"() : () -> ()', "}, {", "}) {b = 2 : i32} : () -> ()")
    assert operation.attributes == {"a": 1, "b": 2}
    assert [len(region.blocks) for region in operation.regions] == [1, 0]


def test_operands_in_segments() -> None:
    *_, operation = body(
        '%a = "x.a"() : () -> i32',
        '"x.b"(%a, %a, %a) <{operandSegmentSizes = array<i32: 1, 0, 2>}> : (i32, i32, i32) -> ()',
    )
    assert [len(group) for group in operation.segments()] == [1, 0, 2]


def test_blocks_are_successors_before_and_behind() -> None:
    (function,) = body(
        '"x.f"() ({',
        "^bb0(%a: i32, %b: i1):",
        '  "cf.cond_br"(%b, %a, %a)[^bb2, ^bb1] <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (i1, i32, i32) -> ()',
        "^bb1:  // 2 preds: ^bb0, ^bb2",
        '  "cf.br"()[^bb1] : () -> ()',
        "^bb2(%c: i32):",
        '  "cf.br"()[^bb1] : () -> ()',
        "}) : () -> ()",
    )
    first, second, third = function.regions[0].blocks
    assert [value.name for value in first.arguments] == ["a", "b"]
    assert first.operations[0].successors == (third, second)
    assert second.operations[0].successors == third.operations[0].successors == (second,)
    assert third.label == "bb2"


def test_values_used_before_they_are_defined() -> None:
    (function,) = body(
        '"x.f"() ({',
        '  "cf.br"()[^bb2] : () -> ()',
        "^bb1:",
        '  "x.inner"() ({',
        '    "x.use"(%late) : (i32) -> ()',
        "  }) : () -> ()",
        "^bb2:",
        '  %late = "x.define"() : () -> i32',
        '  "cf.br"()[^bb1] : () -> ()',
        "}) : () -> ()",
    )
    _, second, third = function.regions[0].blocks
    use = second.operations[0].regions[0].entry.operations[0]
    assert use.operands[0] is third.operations[0].results[0]


def test_regions_beside_each_other_use_names_again() -> None:
    regions = [f'{{\n  %1 = "x.a"() : () -> {kind}\n  "x.use"(%1) : ({kind}) -> ()\n}}' for kind in ("i32", "f32")]
    (operation,) = body(f'"x.if"() ({", ".join(regions)}) : () -> ()')
    for part in operation.regions:
        made, used = part.entry.operations
        assert used.operands == made.results


def test_functions_by_name_and_the_kernel() -> None:
    module = parse(
        '"tt.func"() <{function_type = () -> (), sym_name = "helper", sym_visibility = "private"}> ({',
        '  "tt.return"() : () -> ()',
        "}) : () -> ()",
        '"tt.func"() <{function_type = () -> (), sym_name = "run", sym_visibility = "public"}> ({',
        '  "tt.return"() : () -> ()',
        "}) {noinline = false} : () -> ()",
    )
    assert list(module.functions) == ["helper", "run"]
    assert module.kernel is module.functions["run"]


LOCATIONS: list[tuple[str, Location]] = [
    ("loc(unknown)", UNKNOWN),
    ('loc("k.py":3:4)', Location("k.py", 3, 4)),
    ('loc("k.py":3:4 to 5:6)', Location("k.py", 3, 4)),
    ('loc("k.py":3:4 to :9)', Location("k.py", 3, 4)),
    (r'loc("a\22b.py":3:4)', Location('a"b.py', 3, 4)),
    ('loc("x"("k.py":3:4))', Location("k.py", 3, 4, "x")),
    ('loc("x"(#loc3))', Location("late.py", 7, 8, "x")),
    ('loc("x")', Location(name="x")),
    ("loc(#loc)", Location("k.py", 1, 0)),
    ("loc(#named)", Location("late.py", 7, 8, "y")),
    ("loc(callsite(#loc at #loc3))", Location("k.py", 1, 0, "", Location("late.py", 7, 8))),
    (
        "loc(callsite(callsite(#loc at #loc3) at #named))",
        Location("k.py", 1, 0, "", Location("late.py", 7, 8, "", Location("late.py", 7, 8, "y"))),
    ),
    ('loc(fused[unknown, #loc3, "k.py":3:4])', Location("late.py", 7, 8)),
    ('loc(fused<"why">[unknown])', UNKNOWN),
    ("loc(fused<#ttg.any<[a -> b]>>[#loc3])", Location("late.py", 7, 8)),
]


@pytest.mark.parametrize(("text", "place"), LOCATIONS, ids=[text for text, _ in LOCATIONS])
def test_a_location(text: str, place: Location) -> None:
    module = parse_module(
        '#loc = loc("k.py":1:0)\n'
        f'"builtin.module"() ({{\n^bb0(%a: i32 {text}):\n  %b = "x.a"() : () -> i32 {text}\n}}) : () -> () {text}\n'
        '#loc3 = loc("late.py":7:8)\n#named = loc("y"(#loc3))\n'
    )
    block = module.operation.regions[0].entry
    assert module.operation.location == place
    assert block.arguments[0].location == place
    assert block.operations[0].location == block.operations[0].results[0].location == place


def test_what_has_no_location_is_at_an_unknown_one() -> None:
    (operation,) = body('"x.a"() : () -> ()')
    assert operation.location == UNKNOWN


def test_the_same_dictionaries_of_two_modules_are_their_own() -> None:
    texts = [f'#x = #ttg.any<{{v = {n}}}>\n"builtin.module"() ({{\n}}) {{e = #x}} : () -> ()\n' for n in (1, 2)]
    assert [parse_module(text).attributes["e"].get("v") for text in texts] == [1, 2]
