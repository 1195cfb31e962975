"""Rule `dots`: where a product stands, and what it is called."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tt2gl.plan import Dot, Position, Scaled, Store, Upcast

NOWHERE: Position = (0, 0, 0, 0)
MEMORY = "[M, N], gl.float32, memory, registers"


def dot(instruction: str, **changes: object) -> Dot:
    layout = "registers"
    made = Dot(
        NOWHERE,
        NOWHERE,
        NOWHERE,
        None,
        instruction,
        layout,
        ("M", "N"),
        "gl.float32",
        None,
        None,
        False,
        "acc",
        "memory",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def lines(text: str) -> Sequence[str]:
    return textwrap.dedent(text).replace("_tt2gl_tcgen05", "tcgen05").splitlines()


def test_a_product_of_one_warp_stays_in_its_expression(body: Callable[..., str]) -> None:
    made = body("acc += tl.dot(a, b) * x", dots={"tl.dot(a, b)": dot("mma_v2")})
    assert lines(made) == ["acc += mma_v2(a, b, gl.zeros([M, N], gl.float32, registers)) * x"]


@pytest.mark.parametrize(
    ("statement", "call", "expected"),
    [
        ("s = tl.dot(a, b)", "tl.dot(a, b)", [f"s = tcgen05(a, b, None, {MEMORY})"]),
        ("s = tl.dot(a, b) * x", "tl.dot(a, b)", [f"s = tcgen05(a, b, None, {MEMORY})", "s = s * x"]),
        # The sum that the statement reads is not overwritten by the product.
        (
            "s += tl.dot(a, b) * x",
            "tl.dot(a, b)",
            [f"s_product = tcgen05(a, b, None, {MEMORY})", "s += s_product * x"],
        ),
        (
            "s = s + tl.dot(a, b) * x",
            "tl.dot(a, b)",
            [f"s_product = tcgen05(a, b, None, {MEMORY})", "s = s + s_product * x"],
        ),
    ],
)
def test_a_product_of_several_warps_is_a_statement(
    body: Callable[..., str], statement: str, call: str, expected: list[str]
) -> None:
    assert lines(body(statement, dots={call: dot("tcgen05")})) == expected


def test_what_is_said_at_a_statement_s_end_stays_at_its_own(body: Callable[..., str]) -> None:
    made = body("s += tl.dot(a, b) * x  # why", dots={"tl.dot(a, b)": dot("tcgen05")})
    assert lines(made) == [f"s_product = tcgen05(a, b, None, {MEMORY})", "s += s_product * x  # why"]
    made = body("f(tl.dot(a, b))  # why", dots={"tl.dot(a, b)": dot("tcgen05")})
    assert lines(made)[-1].endswith("  # why")


def test_an_operand_in_tensor_memory_is_told(body: Callable[..., str]) -> None:
    held = dot("tcgen05", lhs=Store("operand", ("M", "K")))
    made = body("s = tl.dot(a, b)", dots={"tl.dot(a, b)": held})
    assert lines(made) == [f"s = tcgen05(a, b, None, {MEMORY}, [M, K], operand)"]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("tl.dot(p.to(x), v) + z", ["s = warpgroup_mma(p.to(x), v, z)"]),
        (
            "tl.dot(p, v) + tl.dot(q, w) * z",
            ["s = warpgroup_mma(q, w, zeros)", "s = warpgroup_mma(p, v, s * z)"],
        ),
        (
            "tl.dot(p.to(x), v) + tl.dot(q, w) * z",
            ["p_operand = p.to(x)", "s = warpgroup_mma(q, w, zeros)", "s = warpgroup_mma(p_operand, v, s * z)"],
        ),
    ],
)
def test_an_operand_is_computed_before_the_products_that_its_own_adds_up(
    body: Callable[..., str], position: Callable[..., Position], term: str, expected: list[str]
) -> None:
    call = term.partition(" + ")[0]
    whole = f"s = {term}"
    placed = position(f"\n\n\n\n\ndef kernel(x_ptr, BLOCK):\n    {whole}\n", call)
    dots = {term: dot("wgmma", is_sum=True, call=placed)}
    if "tl.dot(q, w)" in term:
        dots["tl.dot(q, w)"] = dot("wgmma")
    assert lines(body(whole, dots=dots).replace("gl.zeros([M, N], gl.float32, registers)", "zeros")) == expected


def test_a_sum_that_is_converted_is_converted_after_its_product(body: Callable[..., str]) -> None:
    whole = "s += tl.dot(a, b)"
    held = dot("tcgen05", is_sum=True)
    made = body(whole, dots={whole: held}, converts={whole: "other"})
    assert lines(made) == [f"s_product = tcgen05(a, b, s, {MEMORY})", "s = gl.convert_layout(s_product, other)"]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("mma_v2", 's = mma_v2(a, b, gl.zeros([M, N], gl.float32, registers), input_precision="ieee")'),
        ("fma", "s = gl.dot_fma(a, b, gl.zeros([M, N], gl.float32, registers))"),
        # Triton 3.6 and 3.7 take no precision here that is written out, and the instruction has no choice of one.
        ("wgmma", "s = warpgroup_mma(a, b, gl.zeros([M, N], gl.float32, registers))"),
    ],
)
def test_only_an_instruction_with_a_choice_is_told_the_precision(
    body: Callable[..., str], instruction: str, expected: str
) -> None:
    made = body("s = tl.dot(a, b)", dots={"tl.dot(a, b)": dot(instruction, precision='"ieee"')})
    assert lines(made) == [expected]


def test_a_product_within_a_statement_without_a_result_has_a_name_of_its_own(body: Callable[..., str]) -> None:
    made = body("b = f(x)\ng(tl.dot(a, b) * b)", dots={"tl.dot(a, b)": dot("wgmma")})
    assert lines(made) == [
        "b = f(x)",
        "acc_product = warpgroup_mma(a, b, gl.zeros([M, N], gl.float32, registers))",
        "g(acc_product * b)",
    ]


def test_an_operand_may_come_into_its_registers_through_shared_memory(body: Callable[..., str]) -> None:
    there = {"a": Store("shared", ("M", "K"))}
    made = body("acc += tl.dot(a, b)", dots={"tl.dot(a, b)": dot("mma_v2")}, stores=there, loads={"a": "lhs"})
    assert lines(made) == [
        "a_smem = gl.allocate_shared_memory(a.dtype, [M, K], shared, a)",
        "acc += mma_v2(a_smem.load(lhs), b, gl.zeros([M, N], gl.float32, registers))",
    ]


def test_operands_that_no_instruction_takes_become_wider(body: Callable[..., str]) -> None:
    held = dot("mma_v2", promoted="gl.float16")
    made = body("acc += tl.dot(a, b)", dots={"tl.dot(a, b)": held})
    assert lines(made) == ["acc += mma_v2(a.to(gl.float16), b.to(gl.float16), gl.zeros([M, N], gl.float32, registers))"]


def test_one_fence_for_what_products_within_one_another_read(body: Callable[..., str]) -> None:
    there = {"c": Store("shared", ("M", "K"))}
    products = {"tl.dot(q, c)": dot("wgmma", name="inner"), "tl.dot(p, v)": dot("wgmma")}
    made = body("s = f(tl.dot(q, c), tl.dot(p, v))", dots=products, stores=there)
    assert lines(made)[:3] == [
        "c_smem = gl.allocate_shared_memory(c.dtype, [M, K], shared, c)",
        "fence_async_shared()",
        "s = warpgroup_mma(q, c_smem, gl.zeros([M, N], gl.float32, registers))",
    ]
    assert made.count("fence_async_shared") == 1


def test_a_second_fence_for_what_is_stored_after_the_first(body: Callable[..., str]) -> None:
    there = {"c": Store("shared", ("M", "K")), "w": Store("shared", ("M", "K"))}
    products = {"tl.dot(q, c)": dot("wgmma", name="inner"), "tl.dot(p, w)": dot("wgmma")}
    made = body("s = f(tl.dot(q, c), tl.dot(p, w))", dots=products, stores=there)
    assert made.count("fence_async_shared") == 2


@pytest.mark.parametrize("instruction", ["wgmma", "mma_v2"])
def test_an_operand_is_upcast_before_the_other_is_put_into_memory(
    body: Callable[..., str], position: Callable[..., Position], instruction: str
) -> None:
    call = 'tl.dot_scaled(a, s, "e4m3", b, t, "e5m2")'
    text = f"\n\n\n\n\ndef kernel(x_ptr, BLOCK):\n    acc = {call}\n"
    upcasts = tuple(Upcast(position(text, form), axis, "False") for form, axis in (('"e4m3"', 1), ('"e5m2"', 0)))
    product = dot(instruction, scaled=Scaled(upcasts))  # type: ignore[arg-type]
    there = {'"e5m2"': Store("shared", ("K", "N"))}
    made = lines(body(f"acc = {call}", dots={call: product}, stores=there, converts={'"e4m3"': "lhs"}))
    first = 'gl.convert_layout(upcast(a, s, "e4m3", "e5m2", 1, False), lhs)'
    stored = [
        'b_operand = upcast(b, t, "e5m2", "e4m3", 0, False)',
        "b_smem = gl.allocate_shared_memory(b_operand.dtype, [K, N], shared, b_operand)",
    ]
    if instruction == "wgmma":
        assert made[:4] == [f"a_operand = {first}", *stored, "fence_async_shared()"]
        assert made[4].startswith("acc = warpgroup_mma(a_operand, b_smem, ")
    else:
        assert made[:2] == stored
        assert made[2].startswith(f"acc = mma_v2({first}, b_smem, ")


def test_an_instruction_of_amds_is_its_chips(body: Callable[..., str]) -> None:
    made = body("acc += tl.dot(a, b)", dots={"tl.dot(a, b)": dot("mfma", chip="cdna3")})
    assert lines(made) == ["acc += gl.amd.cdna3.mfma(a, b, gl.zeros([M, N], gl.float32, registers))"]


def test_what_adds_up_in_a_wider_type_is_made_narrower_afterwards(body: Callable[..., str]) -> None:
    held = dot("wmma", chip="rdna3", dtype="gl.float16", summed="gl.float32")
    made = body("s = tl.dot(a, b)", dots={"tl.dot(a, b)": held})
    assert lines(made) == ["s = gl.amd.rdna3.wmma(a, b, gl.zeros([M, N], gl.float32, registers)).to(gl.float16)"]
    whole = "s = s + tl.dot(a, b)"
    made = body(whole, dots={"s + tl.dot(a, b)": replace(held, is_sum=True)})
    assert lines(made) == ["s = gl.amd.rdna3.wmma(a, b, s.to(gl.float32)).to(gl.float16)"]


@pytest.mark.parametrize("instruction", ["mfma_tf32", "mfma_f8f6f4"])
def test_products_that_gluon_has_no_word_for_go_through_a_helper(body: Callable[..., str], instruction: str) -> None:
    made = body("s = tl.dot(a, b)", dots={"tl.dot(a, b)": dot(instruction, chip="cdna4")})
    assert lines(made) == [f"s = {instruction}(a, b, gl.zeros([M, N], gl.float32, registers))"]


@pytest.mark.parametrize(
    ("instruction", "chip", "function"),
    [("mma_v2_scaled", "", "mma_v2_scaled"), ("mfma_scaled", "cdna4", "gl.amd.cdna4.mfma_scaled")],
)
def test_an_instruction_of_scaled_operands_in_registers_has_each_ones_scales_beside_it(
    body: Callable[..., str], instruction: str, chip: str, function: str
) -> None:
    call = 'tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1", acc)'
    held = dot(instruction, chip=chip, scaled=Scaled((None, None), turned=False))
    made = body(f"s = {call}", dots={call: held})
    zeros = "gl.zeros([M, N], gl.float32, registers)"
    assert lines(made) == [f's = {function}(a, a_scale, "e4m3", b, b_scale, "e2m1", {zeros})']
