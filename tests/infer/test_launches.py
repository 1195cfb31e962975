"""Launches from a file alone: what it says is found, the rest is guessed and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.infer.launches import infer_launches
from tt2gl.launches import DtypeValue, JitValue, Launch
from tt2gl.source import read_source

HEADER = "import torch\nimport triton\nimport triton.language as tl\n"


def inferred(text: str, limit: int = 4) -> tuple[Launch, ...]:
    source = read_source(Path("kernel.py"), HEADER + text)
    return infer_launches(source, source.kernel("kernel"), limit=limit)[0]


def guess(parameters: str, body: str) -> Launch:
    lines = "\n    ".join(body.split("; "))
    return inferred(f"@triton.jit\ndef kernel({parameters}):\n    {lines}\n")[0]


FULL = '@triton.jit\ndef kernel(x: "*fp16", n: "i32", B: tl.constexpr = 64):\n    tl.store(x + n, 1)\n'


def test_nothing_is_guessed_where_the_file_says_all() -> None:
    source = read_source(Path("kernel.py"), HEADER + FULL)
    launches, notes, types = infer_launches(source, source.kernel("kernel"))
    assert (notes, types) == ((), {})
    assert launches[0].origin == "found"
    assert launches[0].signature == {"x": "*fp16", "n": "i32", "B": "constexpr"}
    assert launches[0].constexprs == {"B": 64}


def test_a_guess_is_named() -> None:
    source = read_source(Path("kernel.py"), HEADER + "@triton.jit\ndef kernel(x, n):\n    tl.store(x + n, 1)\n")
    launches, (diagnostic,), types = infer_launches(source, source.kernel("kernel"))
    assert launches[0].origin == "guessed"
    assert diagnostic.code == "TTG210"
    assert "x: *fp32" in diagnostic.message
    assert types == {"x": "*fp32", "n": "i32"}


def test_seeds_of_random_numbers_are_integers() -> None:
    body = (
        "o = tl.arange(0, 64); s = tl.load(p); tl.store(x + o, tl.randn(SEED, o) + tl.rand(seed, o) + tl.randint(s, o))"
    )
    launch = guess("x, seed, p, SEED: tl.constexpr", body)
    assert (launch.signature["seed"], launch.signature["p"], launch.constexprs) == ("i32", "*i32", {"SEED": 16})


@pytest.mark.parametrize(
    "refusal",
    [
        "tl.static_assert(S == 0)",
        "tl.static_assert(B > 8 and S == 0)",
        "tl.static_assert(not (B < 8 or S != 0))",
        "if S != 0: raise AssertionError(f'it must be 0, got {S}')",
        "if B < 8 or S != 0:\n        raise AssertionError('it must be 0')",
    ],
    ids=["assertion", "one-of-two", "denied", "raise", "raise-for-one-of-two"],
)
def test_a_constant_is_what_the_kernel_refuses_to_be_without(refusal: str) -> None:
    body = f"{refusal}; o = tl.arange(0, B); tl.store(x + o * S, 1)"
    assert guess("x, B: tl.constexpr, S: tl.constexpr", body).constexprs["S"] == 0


@pytest.mark.parametrize("option", ["flatten", "warp_specialize", "disallow_acc_multi_buffer", "disable_licm"])
def test_what_a_loop_is_to_do_or_not_is_a_flag(option: str) -> None:
    body = f"for k in tl.range(0, n, B, {option}=W):; tl.store(x + k, 1)".replace(":; ", ":;     ")
    assert guess("x, n, B: tl.constexpr, W: tl.constexpr", body).constexprs["W"] is False


def test_a_constant_is_not_what_the_kernel_refuses() -> None:
    body = "if S == 3: raise AssertionError('not 3'); o = tl.arange(0, B); tl.store(x + o * S, 1)"
    assert guess("x, B: tl.constexpr, S: tl.constexpr", body).constexprs["S"] != 3


def test_a_guessed_size_is_no_smaller_than_the_tiles_of_the_config() -> None:
    launches = inferred("""\
@triton.autotune(configs=[triton.Config({"B": b}) for b in (32, 128)], key=[])
@triton.jit
def kernel(x, K: tl.constexpr, B: tl.constexpr):
    for k in range(0, K // B):
        tl.store(x + k * B + tl.arange(0, B), 1.0)
""")
    assert [(launch.constexprs["K"], launch.constexprs["B"]) for launch in launches] == [(64, 32), (128, 128)]


AUTOTUNED = """\
@triton.autotune(
    configs=[triton.Config({"B": b}, num_warps=w, num_stages=2) for b in (32, 64) for w in (4, 8)], key=["n"]
)
@triton.jit
def kernel(x, n, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0, mask=tl.arange(0, B) < n)
"""


def test_autotune_configs_are_launches() -> None:
    launches = inferred(AUTOTUNED)
    assert [(launch.constexprs["B"], launch.options.num_warps) for launch in launches] == [
        (32, 4),
        (32, 8),
        (64, 4),
        (64, 8),
    ]
    assert launches[0].options.num_stages == 2


def test_no_more_launches_than_the_limit() -> None:
    assert len(inferred(AUTOTUNED, limit=1)) == 1


def test_launch_calls_say_constexprs_options_and_grid() -> None:
    (launch,) = inferred(
        "SIZE = 2 ** 7\n@triton.jit\ndef kernel(x, n, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 1)\n"
        "def host(x):\n    kernel[(8, 2)](x, 640, B=SIZE, num_warps=8)\n"
    )
    assert launch.constexprs == {"B": 128}
    assert launch.options.num_warps == 8
    assert launch.grid == (8, 2, 1)
    assert launch.divisible_by_16 == ("x", "n")


def test_what_a_launch_call_computes_from_its_arguments_is_guessed() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef kernel(x, B: tl.constexpr):\n    tl.store(x + tl.arange(0, B), 1)\n"
        "def host(x, n):\n    B = triton.next_power_of_2(n)\n    kernel[(1,)](x, B=B)\n"
    )
    assert launch.constexprs == {"B": 1024}
    assert launch.origin == "guessed"


def test_the_dtype_of_a_tensor_made_beside_the_call() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef kernel(x, y):\n    tl.store(y, tl.load(x))\n"
        "def host(x):\n    y = torch.empty(4, dtype=torch.bfloat16)\n    kernel[(1,)](x, y)\n"
    )
    assert launch.signature == {"x": "*fp32", "y": "*bf16"}


def test_none_makes_a_parameter_constexpr() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef kernel(x, bias):\n    if bias is not None:\n        tl.store(x, 1)\n"
        "def host(x):\n    kernel[(1,)](x, None)\n"
    )
    assert launch.signature["bias"] == "constexpr"
    assert launch.constexprs == {"bias": None}


def test_addresses_are_pointers() -> None:
    launch = guess(
        "a, b, s, n", "o = tl.program_id(0) * s + tl.arange(0, 16); tl.store(b + o, tl.load(a + o, mask=o < n))"
    )
    assert launch.signature == {"a": "*fp32", "b": "*fp32", "s": "i32", "n": "i32"}


def test_a_pointer_moved_in_a_variable_is_one() -> None:
    launch = guess("a, s", "p = a; p += tl.program_id(0) * s; tl.store(p + tl.arange(0, 16), 0.0)")
    assert launch.signature == {"a": "*fp32", "s": "i32"}


def test_a_pointer_passed_to_a_helper_is_one() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef get(p, i):\n    return tl.load(p + i)\n"
        "@triton.jit\ndef kernel(a, b):\n    tl.store(b, get(a, 3))\n"
    )
    assert launch.signature == {"a": "*fp32", "b": "*fp32"}


def test_what_is_loaded_is_an_index_where_a_helper_addresses_by_it() -> None:
    helper = "@triton.jit\ndef row(y_ptr, i, n):\n    return tl.load(y_ptr + i * n + tl.arange(0, 64))\n\n"
    kernel = "@triton.jit\ndef kernel(ids, x_ptr, y_ptr, n):\n    x = row(y_ptr, tl.load(ids), n)\n"
    (launch,) = inferred(f"{helper}{kernel}    tl.store(x_ptr + tl.arange(0, 64), x)\n")
    assert launch.signature["ids"] in ("*i32", "*i64")


def test_an_address_may_come_from_a_helper() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef at(p, i, n):\n    return p + i * n\n"
        "@triton.jit\ndef kernel(a, b, n):\n    tl.store(at(b, 1, n), tl.load(at(a, 3, n)))\n"
    )
    assert launch.signature == {"a": "*fp32", "b": "*fp32", "n": "i32"}


def test_loaded_indices_are_integers() -> None:
    launch = guess("table, idx_ptr, out", "i = tl.load(idx_ptr); tl.store(out, tl.load(table + i * 8))")
    assert launch.signature["idx_ptr"].startswith("*i")
    assert launch.signature["table"] == "*fp32"


def test_scalars_in_float_arithmetic_are_floats() -> None:
    launch = guess("x, eps, factor", "v = tl.load(x) * factor; tl.store(x, tl.sqrt(v + eps))")
    assert (launch.signature["eps"], launch.signature["factor"]) == ("fp32", "fp32")


def test_what_atomics_count_and_lock_with_are_integers() -> None:
    body = "tl.atomic_or(bits + i, v); tl.atomic_add(count + i, 1); tl.atomic_cas(lock, 0, -1); tl.atomic_add(s + i, v)"
    launch = guess("bits, count, lock, s, x", f"i = tl.arange(0, 32); v = tl.load(x + i); {body}")
    assert launch.signature == {"bits": "*i32", "count": "*i32", "lock": "*i32", "s": "*fp32", "x": "*fp32"}


def test_what_is_rounded_to_is_an_integer() -> None:
    launch = guess("x, n, scale_align: tl.constexpr", "tl.store(x + ((n + scale_align - 1) & -scale_align), 1.0)")
    assert launch.constexprs == {"scale_align": 16}


def test_what_is_or_has_something_is_true_or_false() -> None:
    launch = guess(
        "is_done_ptr, has_more, y",
        "a = True if y is None else tl.load(is_done_ptr); tl.store(y, 1.0, mask=a & tl.load(has_more))",
    )
    assert launch.signature == {"is_done_ptr": "*i1", "has_more": "*i1", "y": "*fp32"}


def test_row_strides_divide_by_16() -> None:
    launch = guess("x, x_row_stride, flag_count", "tl.store(x + tl.program_id(0) * x_row_stride + flag_count, 0.0)")
    assert launch.divisible_by_16 == ("x", "x_row_stride")


def test_constexprs_are_guessed_by_use() -> None:
    launch = guess(
        "x, B: tl.constexpr, ACT: tl.constexpr, T: tl.constexpr, HEAD_DIM: tl.constexpr, IS_ON: tl.constexpr",
        "v = tl.load(x + tl.arange(0, B)); v = v.to(T) if IS_ON else v; v = v * 2 if ACT == 'silu' else v",
    )
    assert launch.constexprs["ACT"] == "silu"
    assert launch.constexprs["T"] == DtypeValue("fp32")
    assert launch.constexprs["HEAD_DIM"] == 64
    assert launch.constexprs["IS_ON"] is False


def test_bits_that_conditions_are_are_set() -> None:
    helper = "@triton.jit\ndef some(x, STAGE: tl.constexpr):\n    if STAGE & 4:\n        tl.store(x, 1)\n"
    body = "    if STAGE & 1:\n        some(x, STAGE)\n    if STAGE & 2:\n        some(x, 4 - STAGE)\n"
    launches = inferred(f"{helper}@triton.jit\ndef kernel(x, STAGE: tl.constexpr):\n{body}")
    assert [launch.constexprs["STAGE"] for launch in launches] == [7]


def test_flags_are_tried_both_ways() -> None:
    launches = inferred(
        "@triton.jit\ndef kernel(x, USE_A: tl.constexpr):\n    if USE_A:\n        tl.store(x, 1)\n    tl.store(x, 2)\n"
    )
    assert [launch.constexprs["USE_A"] for launch in launches] == [False, True]


@pytest.mark.parametrize(
    ("use", "value"),
    [
        ("tl.store(x + o, 0.0, mask=o < output_numel)", 64),
        ("tl.store(x + o, 0.0, mask=output_numel > o + p)", 64),
        ("tl.store(x + o, tl.where(output_numel, 1.0, 2.0))", False),
        ("tl.store(x + o, 1.0 if output_numel > 0 else 2.0)", False),
    ],
)
def test_what_something_is_less_than_is_no_flag(use: str, value: int) -> None:
    body = f"p = tl.program_id(0); o = tl.load(x + p); {use}"
    assert guess("x, output_numel: tl.constexpr", body).constexprs["output_numel"] is value


def test_a_flag_is_set_before_other_configs() -> None:
    text = AUTOTUNED.replace("B: tl.constexpr", "B: tl.constexpr, USE_A: tl.constexpr")
    launches = inferred(text.replace("    tl.store", "    if USE_A:\n        n += 1\n    tl.store"))
    assert [(launch.constexprs["B"], launch.constexprs["USE_A"]) for launch in launches] == [
        (32, False),
        (32, True),
        (32, False),
        (64, False),
    ]


def test_one_block_is_long_and_several_are_small() -> None:
    one = guess("x, BLOCK: tl.constexpr", "tl.store(x + tl.arange(0, BLOCK), 0.0)")
    body = "tl.store(x + tl.arange(0, BLOCK_M)[:, None] + tl.arange(0, BLOCK_K)[None, :], 0.0)"
    two = guess("x, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr", body)
    assert one.constexprs == {"BLOCK": 1024}
    assert two.constexprs == {"BLOCK_M": 64, "BLOCK_K": 32}


def test_sides_of_a_product_take_a_warp_group() -> None:
    sizes = "BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr"
    tile = "x + tl.arange(0, BLOCK_{})[:, None] * 64 + tl.arange(0, BLOCK_{})[None, :]"
    a, b, c = (tile.format(*sides) for sides in ("MK", "KN", "MN"))
    product = guess(f"x, {sizes}", f"tl.store({c}, tl.dot(tl.load({a}), tl.load({b})))")
    assert product.constexprs == {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    heads = guess(
        "x, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr", f"tl.store(x, tl.dot({a}, {a}))".replace("_M", "_H")
    )
    assert heads.constexprs["BLOCK_H"] == 16
    copies = guess(f"x, {sizes}", f"tl.store({c}, 0.0); tl.store({a}, tl.load({b}))")
    assert copies.constexprs == {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}


def test_a_part_of_a_split_product_is_many_columns() -> None:
    """With one, a loop over `SPLITK_BLOCK_SIZE // 2` bytes would not turn, and what it multiplies be gone."""
    sizes = "SPLIT_K: tl.constexpr, SPLITK_BLOCK_SIZE: tl.constexpr"
    launch = guess(f"x, {sizes}", "tl.store(x + tl.program_id(0) % SPLIT_K * SPLITK_BLOCK_SIZE // 2, 0.0)")
    assert launch.constexprs == {"SPLIT_K": 1, "SPLITK_BLOCK_SIZE": 512}


def test_a_scaled_product_takes_as_many_columns_as_an_instruction_with_scales() -> None:
    sizes = "BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr"
    helper = "@triton.jit\ndef scaled(a, sa, b, sb):\n    return tl.dot_scaled(a, sa, 'e4m3', b, sb, 'e4m3')\n"
    tile = "tl.load({} + tl.arange(0, BLOCK_{})[:, None] * 64 + tl.arange(0, BLOCK_{})[None, :])"
    a, b = tile.format("x", "M", "K"), tile.format("x", "K", "N")
    place = "o + tl.arange(0, BLOCK_M)[:, None] * 64 + tl.arange(0, BLOCK_N)[None, :]"
    kernel = f"@triton.jit\ndef kernel(x, s, o, {sizes}):\n    tl.store({place}, scaled({a}, s, {b}, s))\n"
    launch = inferred(helper + kernel)[0]
    assert launch.constexprs == {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128}


def test_distances_of_heads_and_of_what_is_looked_up_are_multiples_too() -> None:
    body = (
        "pid = tl.program_id(0); "
        "page = tl.load(table + pid // heads); "
        "tl.store(x + pid % heads * stride_h + pid // heads * b + page * stride_page + tl.arange(0, 64), 0.0)"
    )
    launch = guess("x, table, heads, stride_h, b, stride_page", body)
    assert launch.divisible_by_16 == ("x", "table", "stride_h", "b", "stride_page")


def test_a_loop_that_is_written_out_is_short() -> None:
    loop = "for i in tl.static_range(N): tl.store(x + tl.arange(0, {}) + i, 0.0)"
    assert guess("x, N: tl.constexpr", loop.format("N")).constexprs == {"N": 4}
    assert guess("x, N: tl.constexpr, HEAD_DIM: tl.constexpr", loop.format("HEAD_DIM")).constexprs["HEAD_DIM"] == 64


def test_operands_of_a_product_are_half_precision() -> None:
    body = "o = tl.arange(0, 32); m = o[:, None] * 32 + o[None, :]; tl.store(c + m, tl.dot(tl.load(a + m), tl.load(b + m)))"  # noqa: E501
    assert guess("a, b, c", body).signature == {"a": "*fp16", "b": "*fp16", "c": "*fp32"}


def test_what_a_helper_loads_is_an_operand_of_its_callers_product() -> None:
    text = """@triton.jit
def tile(base, stride):
    o = tl.arange(0, 64)
    return tl.load(base + o[:, None] * stride + o[None, :])


@triton.jit
def kernel(a, b, c, stride):
    o = tl.arange(0, 64)
    acc = tl.dot(tile(a + stride, 64), tile(b, stride).T)
    tl.store(c + o[:, None] * 64 + o[None, :], acc)
"""
    assert inferred(text)[0].signature == {"a": "*fp16", "b": "*fp16", "c": "*fp32", "stride": "i32"}


def test_what_is_cast_to_the_dtype_of_another_is_an_operand_of_that() -> None:
    body = (
        "o = tl.arange(0, 64); m = o[:, None] * 64 + o[None, :]; "
        "v = tl.load(b + m); "
        "v = (v * tl.exp(tl.load(g + o))).to(v.dtype); "
        "state = tl.dot(tl.load(a + m), v); "
        "tl.store(c + m, tl.dot(state.to(d.dtype.element_ty), tl.load(d + m)))"
    )
    assert guess("a, b, c, d, g", body).signature == {
        "a": "*fp16",
        "b": "*fp16",
        "c": "*fp32",
        "d": "*fp16",
        "g": "*fp32",
    }


def test_operands_of_a_scaled_product_are_what_their_formats_say() -> None:
    text = """@triton.jit
def product(a, sa, b, sb, acc):
    return tl.dot_scaled(a, sa, "e2m1", b.T, sb, "e5m2", acc)


@triton.jit
def kernel(a, sa, b, sb, c, e):
    o, s = tl.arange(0, 64), tl.arange(0, 2)
    w = tl.load(a + o[:, None] * 32 + tl.arange(0, 32)[None, :])
    packed = ((w & 15) << 4) | (w >> 4)
    scale = o[:, None] * 2 + s[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    v = tl.load(b + o[:, None] * 64 + o[None, :])
    acc = product(packed, tl.load(sa + scale), v, tl.load(sb + scale), acc)
    f = tl.load(e + o[:, None] * 64 + o[None, :])
    acc = tl.dot_scaled(f, tl.load(sa + scale), "e4m3", f.T, None, "e4m3", acc=acc)
    tl.store(c + o[:, None] * 64 + o[None, :], acc)
"""
    assert inferred(text)[0].signature == {
        "a": "*u8",
        "sa": "*u8",
        "b": "*fp8e5",
        "sb": "*u8",
        "c": "*fp32",
        "e": "*fp8e4nv",
    }


def test_a_format_that_a_constexpr_says_is_one_of_bytes() -> None:
    scaled = "tl.store(o, tl.dot_scaled(tl.load(a), tl.load(s), F, tl.load(b), None, G))"
    launch = guess("a, b, s, o, F: tl.constexpr, G: tl.constexpr", f"k = 2 if G == 'e2m1' else 1; {scaled}")
    assert launch.constexprs == {"F": "e4m3", "G": "e2m1"}
    assert launch.signature["a"] == "*fp8e4nv"
    assert launch.signature["b"] == launch.signature["s"] == "*u8"


def test_float_arithmetic_leaves_a_pointer_floating() -> None:
    body = "v = tl.load(x); b = v.to(tl.int32, bitcast=True); w = v.to(tl.int32) >> 2; tl.store(x, (b >> 3) + w)"
    assert guess("x", body).signature == {"x": "*fp32"}


@pytest.mark.parametrize("taken", ["(b >> shift) & MASK", "low(b, shift, MASK)"])
def test_what_bits_of_a_shifted_value_are_taken_with_is_no_flag(taken: str) -> None:
    helper = "@triton.jit\ndef low(b, shift, mask):\n    return (b >> shift) & mask\n\n\n"
    body = f"i = tl.arange(0, 64)\n    b = tl.load(x + i // 8)\n    shift = i % 8 * 4\n    tl.store(o + i, {taken})\n"
    (launch,) = inferred(f"{helper}@triton.jit\ndef kernel(x, o, MASK: tl.constexpr):\n    {body}")
    assert launch.constexprs["MASK"] not in (False, True)


def test_packed_operands_of_a_product_are_integers_and_their_scales_are_not() -> None:
    body = (
        "for k in range(4):;     w = tl.load(b + k);     w = ((w >> 4) & 15) * tl.load(s + k);     "
        "c = tl.dot(tl.load(a + k), w); m = tl.load(q); m = m.to(tl.int32); tl.store(o, c + (m & 3))"
    )
    assert guess("a, b, s, q, o", body).signature == {
        "a": "*fp16",
        "b": "*i32",
        "s": "*fp16",
        "q": "*i32",
        "o": "*fp32",
    }


def test_bits_of_what_was_computed_of_an_operand_are_not_its_own() -> None:
    body = "v = tl.load(b); c = tl.dot(tl.load(a), v); s = tl.minimum(tl.sum(v * v), 1); tl.store(o, c + (s >> 2))"
    assert guess("a, b, o", body).signature == {"a": "*fp16", "b": "*fp16", "o": "*fp32"}


def test_conditions_joined_say_nothing_of_what_was_loaded() -> None:
    assert guess("x, n", "v = tl.load(x); tl.store(x, v, mask=(v > 1) & (v < n))").signature["x"] == "*fp32"


def test_loaded_bits_are_integers() -> None:
    body = "v = tl.load(x) >> 4; w = (tl.load(y) + 3) // n; tl.store(z, (v & 15) + w % 2)"
    signature = guess("x, y, z, n", body).signature
    assert signature == {"x": "*i32", "y": "*i32", "z": "*fp32", "n": "i32"}


def test_loaded_bits_are_integers_through_a_helper() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef low(v):\n    return v & 15\n"
        "@triton.jit\ndef kernel(a, b):\n    tl.store(b, low(tl.load(a)))\n"
    )
    assert launch.signature["a"] == "*i32"


def test_pointers_that_arms_give_one_name_are_pointers() -> None:
    body = "if tl.program_id(0):\n        p = a\n    else:\n        p = b; tl.store(p + tl.arange(0, 64), 0.0)"
    assert guess("a, b", body).signature == {"a": "*fp32", "b": "*fp32"}


def test_what_a_helper_casts_to_a_pointer_is_one() -> None:
    helper = "@triton.jit\ndef put(p):\n    return asm(p.to(tl.pointer_type(tl.uint64)))\n"
    launch = inferred(f"{helper}@triton.jit\ndef kernel(first, count):\n    put(first + count * 8)\n    put(first)\n")
    assert launch[0].signature == {"first": "*u64", "count": "i32"}


def test_a_tuple_with_a_star_is_as_many_arguments() -> None:
    helper = "@triton.jit\ndef put(a_scale, b_scale, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n"
    helper += "    tl.store(a_scale + i, tl.load(b_scale + i) * 0.5, mask=i < n)\n"
    body = "    given = a_scale, b_scale\n    sizes = tl.constexpr((B,))\n    put(*given, n, *sizes)\n"
    kernel = f"@triton.jit\ndef kernel(a_scale, b_scale, n, B: tl.constexpr):\n{body}"
    launch = inferred(helper + kernel)[0]
    assert launch.signature == {"a_scale": "*fp32", "b_scale": "*fp32", "n": "i32", "B": "constexpr"}
    assert launch.constexprs == {"B": 1024}


def test_what_bounds_a_float_is_one() -> None:
    body = "i = tl.arange(0, 64); x = tl.clamp(tl.load(p + i).to(tl.float32), LOW, HIGH); tl.store(p + i, x)"
    assert guess("p, LOW: tl.constexpr, HIGH: tl.constexpr", body).constexprs == {"LOW": 1.0, "HIGH": 1.0}


def test_what_a_position_is_less_than_is_loaded_as_an_integer() -> None:
    body = "i = tl.program_id(0) * B + tl.arange(0, B); tl.store(q + i, 1.0, mask=i < tl.load(valid) * k)"
    launch = guess("q, valid, k, B: tl.constexpr", body)
    assert launch.signature == {"q": "*fp32", "valid": "*i32", "k": "i32", "B": "constexpr"}


def test_what_is_named_as_a_pointer_is_one_whatever_else_its_name_says() -> None:
    assert guess("p, scale_ptr, rate_ptrs", "tl.store(p, 1.0)").signature["scale_ptr"] == "*fp32"


def test_a_number_of_blocks_is_whole_whatever_else_its_name_says() -> None:
    launch = guess("p, scale_column_blocks: tl.constexpr", "tl.store(p, 1.0)")
    assert type(launch.constexprs["scale_column_blocks"]) is int


def test_a_block_divides_loaded_lengths() -> None:
    launch = guess("lens, BLOCK: tl.constexpr", "tl.store(lens, (tl.load(lens) + (BLOCK - 1)) // BLOCK)")
    assert launch.constexprs["BLOCK"] == 1024


def test_seeds_are_wide() -> None:
    launch = guess("x, seed, n", "tl.store(x + n % 8, (seed & 0xFFFFFFFF).to(tl.float32))")
    assert launch.signature == {"x": "*fp32", "seed": "i64", "n": "i32"}


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("v ^ 0xFF51AFD7ED558CCD", "*u64"),
        ("(v ^ (v >> 33)) * 0xFF51AFD7ED558CCD", "*u64"),
        ("v == 0xFFFFFFFFFFFFFFFF", "*u64"),
        ("v & 0x7F51AFD7ED558CCD", "*i64"),
        ("v.to(tl.uint64) * 0xFF51AFD7ED558CCD", "*fp32"),
    ],
)
def test_beside_a_number_that_no_signed_integer_holds_elements_are_unsigned(expression: str, dtype: str) -> None:
    body = f"o = tl.arange(0, 64); v = tl.load(x + o); tl.store(y + o, {expression})"
    assert guess("x, y", body).signature["x"] == dtype


def test_what_is_looked_up_and_multiplied_by_a_stride_is_an_index() -> None:
    launch = guess(
        "pages, out, page_stride",
        "o = tl.arange(0, 64); page = tl.load(pages + o); tl.store(out + o, page * page_stride + o)",
    )
    assert (launch.signature["pages"], launch.signature["page_stride"]) == ("*i32", "i32")


def test_what_a_helper_hashes_is_unsigned() -> None:
    launch = inferred("""
@triton.jit
def mix(h):
    return (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53

@triton.jit
def kernel(x, y):
    o = tl.arange(0, 64)
    tl.store(y + o, mix(tl.load(x + o)))
""")[0]
    assert launch.signature["x"] == "*u64"


def test_what_is_named_after_indices_holds_integers() -> None:
    body = (
        "i = tl.arange(0, 64); tl.store(draft_token_ids_ptr + i, tl.load(chunk_offsets + i)); tl.store(grid + i, 1.0)"
    )
    launch = guess("draft_token_ids_ptr, chunk_offsets, grid", body)
    assert launch.signature == {"draft_token_ids_ptr": "*i64", "chunk_offsets": "*i32", "grid": "*fp32"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("tl.exp(v).to(tl.float32)", "*fp32"),
        ("w.to(tl.int8)", "*i8"),
        ("tl.exp(v).to(tl.float16)", "*fp16"),
        ("tl.exp(v).to(tl.bfloat16) * 2", "*bf16"),
        ("v", "*fp16"),
        ("tl.exp(v).to(v.dtype)", "*fp16"),
        ("tl.exp(v).to(x.dtype.element_ty)", "*fp16"),
        ("tl.exp(v).to(y.dtype.element_ty)", "*fp32"),
        ("w", "*fp32"),
        ("w >> 1", "*i32"),
        ("1", "*fp32"),
    ],
)
def test_what_is_stored_tells_what_a_pointer_points_to(value: str, kind: str) -> None:
    loads = "i = tl.arange(0, 64); v = tl.load(x + i[:, None] + i); w = tl.load(z + i); d = tl.dot(v, v)"
    assert guess("x, y, z", f"{loads}; tl.store(y + i, {value})").signature["y"] == kind
    helper = "@triton.jit\ndef put(to, value, at):\n    tl.store(to + at, value)\n"
    kernel = f"@triton.jit\ndef kernel(x, y, z):\n    {loads}\n    put(y, {value}, i)\n".replace("; ", "\n    ")
    assert inferred(helper + kernel)[0].signature["y"] == kind


def test_a_table_of_pointers_is_wide() -> None:
    launch = guess("table", "p = tl.load(table).to(tl.pointer_type(tl.float32)); tl.store(p, 0.0)")
    assert launch.signature == {"table": "*i64"}


def test_a_pointer_that_is_cast_has_the_elements_that_it_is_cast_to() -> None:
    by_name = "x = x.to(tl.pointer_type(tl.float32)); tl.store(x + tl.arange(0, 32), 0.0)"
    in_place = "tl.store(tl.cast(x, tl.pointer_type(tl.float32)) + tl.arange(0, 32), 0.0)"
    assert [guess("x", body).signature for body in (by_name, in_place)] == [{"x": "*fp32"}] * 2


def test_an_address_that_the_host_says_is_an_int_is_a_number() -> None:
    kernel = "@triton.jit\ndef kernel(x, n):\n    x = x.to(tl.pointer_type(tl.float32))\n"
    body = "    i = tl.arange(0, 32)\n    tl.store(x + i, 0.0, mask=i < n)\n\ndef solve({}):\n    kernel[(1,)](x, n)\n"
    launch = inferred(kernel + body.format("x: int, n: int"))[0]
    assert (launch.signature, launch.divisible_by_16) == ({"x": "i64", "n": "i32"}, ("x", "n"))
    assert inferred(kernel + body.format("x: torch.Tensor, n: int"))[0].signature == {"x": "*fp32", "n": "i32"}


def test_reinterpreted_values_have_the_size() -> None:
    assert guess("x", "v = tl.load(x).to(tl.int16, bitcast=True); tl.store(x, 0.0)").signature == {"x": "*bf16"}
    assert guess("x", "v = tl.load(x).to(tl.float8e4nv, bitcast=True); tl.store(x, 0)").signature == {"x": "*u8"}


@pytest.mark.parametrize(
    ("asm", "dtype"),
    [
        ("'prmt.b32 $0, $1, $2, 0x5140;', '=r,r,r', [tl.load(x + i), 0 * i], tl.int8, True, 4", "u8"),
        ("'fma.rn.bf16x2 $0, $1, $1, $1;', '=r,r', [tl.load(x + i)], tl.bfloat16, True, 2", "bf16"),
        ("'mov.b64 {$0, $1}, $2;', '=r, =r, l', args=[tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1", "i64"),
        ("'add.rn.f32 $0, $1, $1;', '=f,f', [tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1", "fp32"),
        ("'mov.b32 $0, $1;', '=r,r', [tl.load(x + i).to(tl.uint8)], dtype=tl.uint8, is_pure=True, pack=4", "fp32"),
    ],
)
def test_what_assembly_packs_tells_how_wide_its_operands_are(asm: str, dtype: str) -> None:
    body = f"i = tl.arange(0, 32); y = tl.inline_asm_elementwise({asm}); tl.store(o + i, y)"
    assert guess("x, o", body).signature["x"] == f"*{dtype}"


def test_a_dtype_by_its_name() -> None:
    launch = guess("x, FP8_DTYPE: tl.constexpr", "v = tl.load(x); tl.store(x, v.to(FP8_DTYPE))")
    assert launch.constexprs == {"FP8_DTYPE": DtypeValue("fp8e4nv")}


def test_one_name_for_several_pointers() -> None:
    launch = guess(
        "a, b, c, n", "p = a; p = b if n > 1 else p; q = tl.where(n > 2, c, p); tl.store(q + tl.arange(0, 16), 0.0)"
    )
    assert launch.signature == {"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32"}


def test_a_policy_is_a_word() -> None:
    launch = guess("x, EVICT: tl.constexpr", "v = tl.load(x, eviction_policy=EVICT); tl.store(x, v)")
    assert launch.constexprs == {"EVICT": ""}


def test_a_precision_is_a_word() -> None:
    body = "t = tl.load(x); tl.store(x, tl.dot(t, t, input_precision=DOT_PRECISION))"
    assert guess("x, DOT_PRECISION: tl.constexpr", body).constexprs == {"DOT_PRECISION": "ieee"}


def test_one_block_of_a_matrix_is_small() -> None:
    body = "o = tl.arange(0, BLOCK); tl.store(x + o[:, None] * 64 + o[None, :], 0.0)"
    assert guess("x, BLOCK: tl.constexpr", body).constexprs == {"BLOCK": 64}


def test_one_block_stays_long_where_only_a_helper_spreads() -> None:
    (launch,) = inferred(
        "@triton.jit\ndef scaled(v):\n    return v / tl.max(v, axis=1)[:, None]\n"
        "@triton.jit\ndef kernel(x, BLOCK: tl.constexpr):\n    o = tl.arange(0, BLOCK)\n"
        "    v = scaled(tl.reshape(tl.load(x + o), (BLOCK // 128, 128)))\n"
        "    tl.store(x + o, tl.reshape(v, (BLOCK,)))\n"
    )
    assert launch.constexprs == {"BLOCK": 1024}


def test_what_is_reshaped_by_a_method_is_used_as_by_the_function() -> None:
    packed = "i = tl.arange(0, 64); k = tl.load(x + i); low = (k & 15).to(tl.int32); high = (k >> 4).to(tl.int32); "
    joined = "v = tl.join(tl.load(table + low), tl.load(table + high)).reshape(2 * BLOCK); "
    launch = guess("x, table, o, BLOCK: tl.constexpr", packed + joined + "tl.store(o + tl.arange(0, 2 * BLOCK), v)")
    assert launch.signature["table"] == "*fp32"
    turned = (
        "i = tl.arange(0, 32); p = i[:, None] * 32 + i[None, :]; q = p.trans(1, 0); tl.store(o + p, tl.load(x + q))"
    )
    assert guess("x, o", turned).signature == {"x": "*fp32", "o": "*fp32"}


def test_pointers_that_one_is_chosen_of_are_of_one_type() -> None:
    chosen = "i = tl.arange(0, 64); p = tl.where(n > 0, x + i, tl.where(n > 1, y + i, z + i)); "
    launch = guess("x, y, z, o, n", chosen + "tl.store(o + i, tl.load(p).to(tl.bfloat16, bitcast=True))")
    assert [launch.signature[name] for name in "xyz"] == ["*i16", "*i16", "*i16"]
    alone = "i = tl.arange(0, 64); p = tl.where(n > 0, x + i, y + i); tl.store(o + i, tl.load(p))"
    assert guess("x, y, o, n", alone).signature == {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32"}


def test_operands_of_products_are_not_of_64_bits() -> None:
    body = (
        "i = tl.arange(0, 32); p = i[:, None] * 32 + i[None, :]; a = tl.load(x + p); "
        "tl.store(o + p, tl.dot(a, a)); tl.store(k + p, a.to(tl.pointer_type(tl.int64)))"
    )
    assert guess("x, o, k", body).signature["x"] == "*fp16"


def test_products_of_integers_are_of_bytes() -> None:
    loads = "i = tl.arange(0, 32); p = i[:, None] * 32 + i[None, :]; a = tl.load(x + p); b = tl.load(y + p); "
    of_integers = guess("x, y, o", loads + "tl.store(o + p, tl.dot(a, b, out_dtype=tl.int32))")
    assert [of_integers.signature[name] for name in ("x", "y")] == ["*i8", "*i8"]
    of_floats = guess("x, y, o", loads + "tl.store(o + p, tl.dot(a, b, out_dtype=tl.float32))")
    assert [of_floats.signature[name] for name in ("x", "y")] == ["*fp16", "*fp16"]


@pytest.mark.parametrize("cast", ["v.to(made)", "v.cast(made)", "tl.cast(v, made)", "tl.load(x).cast(made)"])
def test_what_is_cast_to_is_a_dtype(cast: str) -> None:
    assert guess("x, made: tl.constexpr", f"v = tl.load(x); tl.store(x, {cast})").constexprs == {
        "made": DtypeValue("fp32")
    }


def test_a_dtype_by_another_name() -> None:
    body = "to = KIND; i = tl.arange(0, 32); a = tl.load(x + i); tl.store(x + i, a.to(to))"
    assert guess("x, KIND: tl.constexpr", body).constexprs == {"KIND": DtypeValue("fp32")}


LOADS = "i = tl.arange(0, 32); p = i[:, None] * 32 + i[None, :]; a = tl.load(x + p); b = tl.load(y + p); "


def operands(parameters: str, body: str) -> list[str]:
    launch = guess(parameters, LOADS + body)
    return [launch.signature[name] for name in ("x", "y")]


def test_an_operand_is_what_another_is_cast_to() -> None:
    first = "c = tl.exp(a * 1.0).to(tl.bfloat16); "
    assert operands("x, y, o", first + "tl.store(o + p, tl.dot(c, b))") == ["*fp32", "*bf16"]
    beside = first + "tl.store(o + p, tl.dot(a, tl.trans(b)) + tl.dot(c, b))"
    assert operands("x, y, o", beside) == ["*bf16", "*bf16"]
    assert operands("x, y, o", "to = tl.float16; tl.store(o + p, tl.dot(tl.exp(a).to(to), b))") == ["*fp32", "*fp16"]


def test_an_operand_beside_a_computed_one_is_float32() -> None:
    assert operands("x, y, o", "tl.store(o + p, tl.dot(a, b) + tl.dot(tl.exp(a * 1.0), b))") == ["*fp32", "*fp32"]
    assert operands("x, y, o", "tl.store(o + p, tl.dot(tl.where(p < 9, a, 0.0), b))") == ["*fp16", "*fp16"]


def test_operands_are_followed_into_helpers() -> None:
    text = "@triton.jit\ndef times(c, q, o):\n    tl.store(o, tl.dot(c.to(tl.bfloat16), tl.load(q)) + tl.dot(c, c))\n\n"
    body = "\n    ".join(LOADS.split("; ")) + "times(a, y + p, o + p)\n"
    (launch,) = inferred(text + f"@triton.jit\ndef kernel(x, y, o):\n    {body}")
    assert [launch.signature[name] for name in ("x", "y", "o")] == ["*bf16", "*bf16", "*fp32"]


def test_the_last_stride_of_a_descriptor_is_one() -> None:
    made = "d = tl.make_tensor_descriptor(x, [m, n], strides=[s, u], block_shape=[64, 64]); tl.store(x, d.load([0, 0]))"
    launch = guess("x, m, n, s, u", made)
    assert (launch.signature["s"], launch.constexprs) == ("i32", {"u": 1})


def test_a_stride_is_one_where_every_range_is_multiplied() -> None:
    rows = "i = tl.arange(0, 32); p = x + tl.program_id(0) * stride_b + i[:, None] * stride_m"
    strided = guess("x, stride_b, stride_m, stride_k", f"{rows} + (i % 8)[None, :] * stride_k; tl.store(p, 1.0)")
    assert strided.constexprs == {"stride_k": 1}
    assert strided.divisible_by_16 == ("x", "stride_b", "stride_m")
    assert guess("x, stride_b, stride_m", f"{rows} + i[None, :]; tl.store(p, 1.0)").constexprs == {}
    cast = f"stride_k = stride_k.to(tl.int64); {rows} + (i % 8)[None, :] * stride_k; tl.store(p, 1.0)"
    assert guess("x, stride_b, stride_m, stride_k", cast).constexprs == {}
    shared = f"{rows} + i[None, :]; tl.store(p, tl.load(y + i * stride_m))"
    assert guess("x, y, stride_b, stride_m", shared).constexprs == {}


def test_a_block_has_a_stride_of_one_by_its_order() -> None:
    made = "p = tl.make_block_ptr(x, (m, n), (s, u), (0, 0), (64, 64), {}); tl.store(p, tl.load(p))"
    assert guess("x, m, n, s, u", made.format("(1, 0)")).constexprs == {"u": 1}
    assert guess("x, m, n, s, u", made.format("order=(0, 1)")).constexprs == {"s": 1}


def test_what_multiplies_loaded_values_is_no_stride() -> None:
    launch = guess("x, o, factor, n", "i = tl.arange(0, 64); tl.store(o + i, tl.load(x + i, mask=i < n) * factor)")
    assert (launch.signature["factor"], launch.divisible_by_16) == ("fp32", ("x", "o", "n"))


def test_strides_go_by_other_names_where_there_are_several() -> None:
    rows = "i = tl.arange(0, 32); p = x + i[:, None] * sx_m + i[None, :] * sx_k; "
    assert guess("x, sx_m, sx_k", rows + "tl.store(p, 1.0)").constexprs == {"sx_k": 1}
    assert guess("x, sx_m, sx_k", rows + "tl.store(p, 1.0, mask=(i < sx_k)[None, :])").constexprs == {}


def test_a_constant_is_what_the_compiler_is_told() -> None:
    body = "tl.static_assert(PACK == 2); tl.static_assert(MODE == 'row'); tl.store(x + tl.arange(0, 8), PACK)"
    assert guess("x, PACK: tl.constexpr, MODE: tl.constexpr", body).constexprs == {"PACK": 2, "MODE": "row"}


def test_helpers_are_found_where_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(HEADER + "@triton.jit\ndef read(p, at):\n    return tl.load(p + at) << 2\n")
    outer = "from inner import read\n\n@triton.jit\ndef both(p, q, at):\n    tl.store(q + at, read(p, at))\n"
    (tmp_path / "outer.py").write_text(HEADER + outer)
    text = "from outer import both\n\n@triton.jit\ndef kernel(x, o):\n    both(x, o, tl.arange(0, 64))\n"
    source = read_source(tmp_path / "kernel.py", HEADER + text)
    (launch, *_), *_ = infer_launches(source, source.kernel("kernel"))
    assert launch.signature == {"x": "*i32", "o": "*fp32"}


def test_a_launch_call_says_which_stride_is_of_the_last_dimension() -> None:
    kernel = "@triton.jit\ndef kernel(x, sk, sn):\n    i = tl.arange(0, 32)\n    j = (i % 8).to(tl.int64)\n"
    body = "    tl.store(x + i[:, None] * sk + j[None, :] * sn, 1.0)\n\ndef run(x):\n    kernel[(1,)](x, {})\n"
    swapped = inferred(kernel + body.format("x.stride(1), x.stride(0)"))[0]
    assert (swapped.constexprs, swapped.divisible_by_16) == ({"sk": 1}, ("x", "sn"))
    assert inferred(kernel + body.format("x.stride(0), x.stride(1)"))[0].constexprs == {"sn": 1}
    assert inferred(kernel + body.format("*x.stride()"))[0].constexprs == {"sn": 1}


def test_what_elements_are_taken_of_is_a_tuple() -> None:
    body = "i = tl.arange(0, 64); t = tl.load(ptrs[0] + i * s[1]) + tl.load(ptrs[2] + i); tl.store(o + i, t)"
    launch = guess("ptrs, s, o", body)
    assert launch.signature == {"ptrs": "(*fp32, *fp32, *fp32)", "s": "(i32, i32)", "o": "*fp32"}
    assert launch.divisible_by_16 == ("o",)
    each = "for k in tl.static_range(len(ptrs)): tl.store(ptrs[k] + tl.arange(0, SIZES[1]), ON[k])"
    launch = guess("ptrs, SIZES: tl.constexpr, ON: tl.constexpr", each)
    assert launch.signature["ptrs"] == "(*fp32, *fp32, *fp32, *fp32)"
    assert launch.constexprs == {"SIZES": (1024, 1024), "ON": (False,) * 4}
    assert guess("x, i", "tl.store(x + tl.arange(0, 64)[:, None] + i, 1.0)").signature == {"x": "*fp32", "i": "i32"}


def test_what_stands_in_a_tuple_for_a_helper_is_none() -> None:
    helper = "@triton.jit\ndef offset(at, by):\n    return at[0] * by[0] + at[1] * by[1]\n\n"
    kernel = "@triton.jit\ndef kernel(x, H: tl.constexpr):\n    i = tl.arange(0, 64)\n"
    (launch, *_) = inferred(f"{helper}{kernel}    tl.store(x + offset((i, 1), (H, 1)), 1.0)\n")
    assert isinstance(launch.constexprs["H"], int)


def test_a_launch_call_says_how_long_a_tuple_is() -> None:
    kernel = "@triton.jit\ndef kernel(ptrs):\n    tl.store(ptrs[0] + tl.arange(0, 64), 1.0)\n\ndef run(x, y, z):\n"
    assert inferred(kernel + "    kernel[(1,)]((x, y, z))\n")[0].signature == {"ptrs": "(*fp32, *fp32, *fp32)"}


def test_a_launch_call_passes_functions_in_a_tuple() -> None:
    helper = "@triton.jit\ndef twice(x):\n    return x * 2\n\n"
    kernel = "@triton.jit\ndef kernel(x, FNS: tl.constexpr):\n    tl.store(x, FNS[0](tl.load(x)))\n\n"
    (launch,) = inferred(helper + kernel + "def run(x):\n    kernel[(1,)](x, FNS=(twice, twice))\n")
    assert launch.constexprs == {"FNS": (JitValue("kernel:twice"), JitValue("kernel:twice"))}


@pytest.mark.parametrize("load", ["a.load([at, 0])", "tl.load_tensor_descriptor(a, [at, 0])"])
def test_what_is_loaded_of_a_descriptor_that_the_kernel_makes_is_of_its_pointer(load: str) -> None:
    made = "a = tl.make_tensor_descriptor(p, [n, n], [n, 1], [B, B]); t = {}; tl.store(x + at, tl.dot(t, t.T))"
    launch = guess("x, p, at, n, B: tl.constexpr", made.format(load))
    assert launch.signature == {"x": "*fp32", "p": "*fp16", "at": "i32", "n": "i32", "B": "constexpr"}


def test_one_of_two_descriptors_may_stand_under_a_name() -> None:
    body = "d = p if W else q; t = tl.load_tensor_descriptor(d, [at, 0]); r.store([at, 0], tl.dot(t, t.T))"
    signature = guess("p, q, r, at, W: tl.constexpr", body).signature
    assert {name: signature[name] for name in "pqr"} == dict.fromkeys("pqr", "tensordesc<fp16[64, 64]>")


def test_a_descriptor_that_may_be_missing_is_given_after_launches_without_it() -> None:
    text = """@triton.jit
def kernel(x, d, y, DOUBLE: tl.constexpr):
    if d is not None:
        t = d.load([0, 0])
    else:
        t = tl.load(x + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :])
    if DOUBLE:
        t *= 2
    tl.store(y + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :], t)
"""
    without, given, flagged = inferred(text)
    assert (without.signature["d"], without.constexprs) == ("constexpr", {"d": None, "DOUBLE": False})
    assert (given.signature["d"], given.constexprs) == ("tensordesc<fp16[64, 64]>", {"DOUBLE": False})
    assert (flagged.signature["d"], flagged.constexprs) == ("constexpr", {"d": None, "DOUBLE": True})


def test_a_stride_is_one_whatever_else_its_name_says() -> None:
    found = guess(
        "x, k_block_stride: tl.constexpr, CURRENT_K_HEAD_STRIDE: tl.constexpr",
        "i = tl.arange(0, 8); tl.store(x + i * k_block_stride + tl.program_id(0) * CURRENT_K_HEAD_STRIDE, 1)",
    ).constexprs
    assert found["CURRENT_K_HEAD_STRIDE"] == 1024
    assert found["k_block_stride"] in (1, 1024)


def test_a_tuple_has_as_many_elements_as_loops_that_are_written_out_take_turns() -> None:
    launch = guess(
        "pads, W: tl.constexpr", "for k in tl.static_range(W):; tl.store(pads[k], 1)".replace(":; ", ":;     ")
    )
    assert launch.signature["pads"].count(",") + 1 == launch.constexprs["W"] == 4


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("assert w.dtype == torch.uint8", "*u8"),
        ("assert w.is_cuda and w.dtype == torch.uint8, 'bytes'", "*u8"),
        ("if w.dim() != 2 or w.dtype != torch.uint8:\n        raise TypeError", "*u8"),
        ("assert w.is_cuda or w.dtype == torch.uint8", "*fp32"),
        ("assert w.dtype != torch.uint8", "*fp32"),
        ("if x is w:\n        assert w.dtype == torch.uint8", "*fp32"),
        ("assert w.dtype == x.dtype", "*fp32"),
    ],
)
def test_the_host_says_of_what_a_tensor_is(said: str, kind: str) -> None:
    kernel = "@triton.jit\ndef kernel(x, w):\n    i = tl.arange(0, 32)\n    tl.store(x + i, tl.load(w + i))\n\n\n"
    launch, *_ = inferred(f"{kernel}def run(x, w):\n    {said}\n    kernel[(1,)](x, w)\n")
    assert launch.signature == {"x": "*fp32", "w": kind}
