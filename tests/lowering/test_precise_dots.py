"""Products that are several of fewer bits: what stays, what a call becomes, and that it computes the same."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.compiler import backend_for
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.precise_dots import OF_BACKENDS, PRECISIONS, precise_dots
from tt2gl.lowering.steps import Lowered
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.targets import get_target
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, simulate_many


def lower(body: str, header: str = HEADER, backend: str = "cuda") -> Lowered:
    text = f"{header}def kernel(a, b, acc, P: tl.constexpr):\n{textwrap.indent(body, '    ')}"
    done = precise_dots(read_source(Path("kernel.py"), text), precisions=OF_BACKENDS[backend])
    ast.parse(done.text)
    return done


@pytest.mark.parametrize(
    "body",
    [
        'acc = tl.dot(a, b, acc, input_precision="tf32")  # not tf32x3\n',
        "acc = tl.dot(a, b, acc, input_precision=P)  # tf32x3, say\n",
        'acc = tl.dot(a, b, acc, input_precision="tf32x3", out_dtype=tl.float16)\n',
        'acc = dot(a, b, acc, input_precision="tf32x3")\n',
        'acc = tl.dot(*a, input_precision="tf32x3")\n',
    ],
)
def test_what_stays(body: str) -> None:
    done = lower(body)
    assert done.functions == ()
    assert done.text.endswith(textwrap.indent(body, "    "))


def test_a_precision_that_the_target_does_not_know_stays() -> None:
    body = 'acc = tl.dot(a, b, acc, input_precision="tf32x3")\n'
    assert lower(body, backend="hip").functions == ()
    assert lower(body.replace("tf32", "bf16"), backend="hip").functions == ("kernel",)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ('tl.dot(a, b, acc, input_precision="tf32x3")', "dot_tf32x3(a, b, acc)"),
        ('tl.dot(a, b, acc, "bf16x6")', "dot_bf16x6(a, b, acc)"),
        ('tl.dot(a, b, out_dtype=tl.float32, input_precision="tf32x3")', "dot_tf32x3(a, b, None)"),
        ('tl.dot(a + 1,\n    other=b, input_precision="bf16x3")', "dot_bf16x3(a + 1, b, None)"),
        ('tl.dot(a, b, acc=None, input_precision="tf32x3")', "dot_tf32x3(a, b, None)"),
    ],
)
def test_what_a_call_becomes(call: str, wanted: str) -> None:
    done = lower(f"acc = {call}\n")
    assert done.functions == ("kernel",)
    assert done.text.endswith(f"    acc = {wanted}\n")


def test_a_function_is_added_once_for_a_precision_in_the_words_of_the_file() -> None:
    header = "from triton import jit\nimport triton.language as lang\n\n\n@jit\n"
    body = 'acc = lang.dot(a, b, acc, "tf32x3")\nacc = lang.dot(a, b, acc, "tf32x3")\ndot_tf32x3 = acc\n'
    made = lower(body, header).text
    assert made.count("@jit\ndef dot_tf32x3_1(a, b, acc):\n") == made.count("def dot_tf32x3_1(") == 1
    assert made.count("dot_tf32x3_1(a, b, acc)") == 3
    assert "tl." not in made.partition("def kernel")[0]


def test_a_precision_by_name_is_chosen_where_it_is_known_to_be_several() -> None:
    text = f"""{HEADER}def kernel(a, b, P: tl.constexpr):
    acc = tl.dot(tl.dot(a, b, input_precision=P), b, input_precision=P)  # bf16x3
    acc += tl.dot(a, b, input_precision=Q)
"""
    made = precise_dots(read_source(Path("kernel.py"), text), ["P"]).text
    assert "acc = dot_in_precision(dot_in_precision(a, b, input_precision=P), b, input_precision=P)  # bf16x3\n" in made
    assert "acc += tl.dot(a, b, input_precision=Q)\n" in made
    assert '    if input_precision == "bf16x3":\n        product = dot_bf16x3(input, other, acc)\n    else:' in made
    assert "tf32x3" not in made


def test_functions_are_added_as_far_in_as_the_first_that_calls_them() -> None:
    text = f"""{HEADER.partition("@")[0]}if True:
    @triton.jit
    def kernel(a, b):
        return tl.dot(a, b, input_precision="tf32x3")
"""
    made = precise_dots(read_source(Path("kernel.py"), text)).text
    ast.parse(made)
    assert "if True:\n    @triton.jit\n    def dot_tf32x3(a, b, acc):\n" in made
    assert "\n    @triton.jit\n    def kernel(a, b):\n        return dot_tf32x3(a, b, None)\n" in made


NAMED = """import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    product = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision=PRECISION)
    tl.store(c_ptr + at, product)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "several", "one"), [("sm90", "tf32x3", "tf32"), ("gfx942", "bf16x3", "ieee")], ids=["sm90", "gfx942"]
)
def test_a_kernel_of_which_some_launches_want_several_products_converts(
    target: str, several: str, one: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(NAMED)
    types = {**dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp32"), "PRECISION": "constexpr"}
    launches = [Launch(str(path), "product_kernel", types, {"PRECISION": known}) for known in (several, one)]
    made = convert(path, target=target, launches=launches)
    assert [report.status for report in made.kernels] == ["converted"] * 2, made.kernels[0].diagnostics
    assert "product = dot_in_precision(" in made.text
    assert ("dot_tf32x3" in made.text) == (target == "sm90")


KERNEL = """
@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    once = tl.dot(a, b, input_precision="PRECISION")
    tl.store(c_ptr + at, tl.dot(a, b, once, input_precision="PRECISION"))
"""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_computes_the_same(precision: str, dtype: str, tmp_path: Path) -> None:
    backend, _ = backend_for(get_target("sm90"))
    if precision not in backend.parse_options({}).allowed_dot_input_precisions:
        pytest.skip("the installed Triton does not know it")
    kind = {"float32": "*fp32", "float16": "*fp16"}[dtype]
    tile = TensorArg(dtype, (16, 16), (16, 1), None)
    launch = Launch(
        file="kernel.py",
        kernel="product_kernel",
        signature={"a_ptr": kind, "b_ptr": kind, "c_ptr": "*fp32", "SIZE": "constexpr"},
        constexprs={"SIZE": 16},
        grid=(1, 1, 1),
        args={"a_ptr": tile, "b_ptr": tile, "c_ptr": TensorArg("float32", (16, 16), (16, 1), None)},
    )
    text = "import triton\nimport triton.language as tl\n\n" + KERNEL.replace("PRECISION", precision)
    path = tmp_path / "kernel.py"
    first = read_source(path, text)
    second = read_source(path, precise_dots(first).text)
    assert f"dot_{precision}(a, b, once)" in second.text
    kernels = [
        Participant(slice_kernel(each, launch.kernel, target="sm90", root=tmp_path), launch) for each in (first, second)
    ]
    run = simulate_many([SimulationJob(kernels[0], kernels[1], "sm90")], SimulationOptions(seeds=1), workers=1)[0]
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.bitwise, run.result.findings) == (True, True, ())
