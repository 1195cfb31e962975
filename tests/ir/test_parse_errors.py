"""Text that cannot be read: one error, at its line and column, that says what was expected."""

from __future__ import annotations

import pickle

import pytest

from tt2gl.ir.lexer import ParseError
from tt2gl.ir.parser import parse_module

# Line 3 of the text of each of these modules is wrong: from the column with the sign on, for the reason given.
ERRORS = [
    ("unknown kind of type", '%a = "x.a"() : () -> ^complex<f32>', "unknown type `complex`"),
    ("unknown word", '"x.a"() {a = ^affine_map<(d0) -> (d0)>} : () -> ()', "unknown type `affine_map`"),
    ("no attribute", '"x.a"() {a = ^?} : () -> ()', "expected a type"),
    ("pretty form", "^%a = arith.constant 1 : i32", "expected an operation in generic form"),
    ("no types", '"x.a"() {a = 1 : i32}^', "expected `:`"),
    ("too few types", '%a, %b = "x.a"(^%r) : () -> (i32, i32)', "1 operands and 0 types of them"),
    ("too few results", '^%a:2 = "x.a"() : () -> i32', "2 results and 1 types of them"),
    ("results without names", '^"x.a"() : () -> i32', "0 results and 1 types of them"),
    ("undefined value", '"x.a"(^%nowhere) : (i32) -> ()', "`%nowhere` is not defined"),
    ("another type", '"x.a"(^%r) : (i64) -> ()', "`%r` is a `i32`, used as a `i64`"),
    ("defined twice", '^%r = "x.a"() : () -> i32', "`%r` is defined twice"),
    ("undefined block", '^"cf.br"()[^bb7] : () -> ()', "block `^bb7` is not defined"),
    ("undefined encoding", '"x.a"() {a = ^#nothing} : () -> ()', "`#nothing` is not defined"),
    (
        "undefined encoding inside",
        '"x.a"() {a = #ttg.slice<{parent = ^#nothing}>} : () -> ()',
        "`#nothing` is not defined",
    ),
    ("undefined type", '"x.a"() {a = ^!nothing} : () -> ()', "`!nothing` is not defined"),
    ("undefined location", '"x.a"() : () -> () loc(^#nothing)', "`#nothing` is not defined"),
    ("alias of itself", '"x.a"() {a = #self} : () -> ()', "`#self` is defined by itself"),
    ("no location", '"x.a"() : () -> () loc(^#shared)', "`#shared` is no location"),
    ("unknown location", '"x.a"() : () -> () loc(^elsewhere[1])', "unknown kind of location"),
    ("unknown float type", '"x.a"() {a = ^0x1 : f80} : () -> ()', "unknown float type `f80`"),
    ("fraction of an integer", '"x.a"() {a = ^1.5 : i32} : () -> ()', "a number of type `i32` cannot have a fraction"),
    (
        "wrong count",
        '"x.a"() {a = dense^<[1, 2]> : tensor<3xi32>} : () -> ()',
        "cannot read these elements of a `tensor<3xi32>`: 2 elements",
    ),
    (
        "no elements' type",
        '"x.a"() {a = dense^<1> : i32} : () -> ()',
        "cannot read these elements of a `i32`: not a tensor or vector",
    ),
    ("unclosed bracket", '"x.a"() {a = ^!new.type<(} : () -> ()', "`<` without its `>`"),
    ("function without a name", '^"tt.func"() ({}) : () -> ()', "a function without a name"),
    (
        "memory",
        '"x.a"() {a = !ttg.memdesc<4xf16, #shared, #shared, ^const>} : () -> ()',
        "expected `mutable` or the shape",
    ),
]


@pytest.mark.parametrize(("line", "message"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_an_error_has_its_place(line: str, message: str) -> None:
    marked = line.find("^") if "^bb7" not in line else 0
    plain = line.replace("^", "", 1) if marked >= 0 else line
    text = "\n".join(
        [
            '"builtin.module"() ({',
            '%r = "x.r"() : () -> i32',
            plain,
            "}) : () -> ()",
            "#shared = #ttg.swizzled_shared<{vec = 1}>",
            "#self = #ttg.slice<{parent = #self}>",
        ]
    )
    with pytest.raises(ParseError, match="line") as caught:
        parse_module(text)
    assert caught.value.message.startswith(message)
    if message.endswith("by itself"):
        assert caught.value.line == 6
    else:
        assert (caught.value.line, caught.value.source) == (3, plain)
    if "<(" not in line and marked >= 0:
        assert caught.value.column == marked + 1
    assert str(caught.value).endswith(caught.value.source.strip())


WHOLE = [
    ("", "expected a module", 1),
    ("module {\n}\n", "expected an operation in generic form", 1),
    ('"x.a"() : () -> ()\n', "expected a `builtin.module`", 1),
    ('"builtin.module"() ({\n}) : () -> ()\n"builtin.module"() ({\n}) : () -> ()\n', "expected one operation", 3),
    ('"builtin.module"() ({\n"x.a"() : () -> ()\n', "expected an operation in generic form", 3),
    ('"builtin.module"() ({\n}) : () -> ()\n#loc = loc("k.py":1:)\n', "expected", 3),
    ('"builtin.module"() ({\n^bb0:\n^bb0:\n}) : () -> ()\n', "block `^bb0` is defined twice", 3),
    (
        '"builtin.module"() ({\n"x.a"(%late) : (i32) -> ()\n%late = "x.b"() : () -> f32\n}) : () -> ()\n',
        "`%late` is a `f32`",
        2,
    ),
    (
        '"builtin.module"() ({\n"x.a"() ({\n%in = "x.b"() : () -> i32\n}) : () -> ()\n"x.c"(%in) : (i32) -> ()\n'
        "}) : () -> ()\n",
        "`%in` is not",
        5,
    ),
]


@pytest.mark.parametrize(("text", "message", "line"), WHOLE, ids=[case[1] for case in WHOLE])
def test_a_whole_text_that_is_wrong(text: str, message: str, line: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert caught.value.message.startswith(message)
    assert caught.value.line == line


def test_an_error_comes_back_from_another_process() -> None:
    with pytest.raises(ParseError) as caught:
        parse_module("module {\n}\n")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.line) == (type(caught.value), str(caught.value), 1)
