"""Kernels with tensor descriptors converted whole: copies by TMA, compared with Triton's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.targets import adds_tiles, get_target, mover
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, simulate_many

HEADER = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

OWN = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    i, j = tl.program_id(0) * B, tl.program_id(1) * B
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a.load([i, k]), a.load([j, k]).T, acc)
    c.store([i, j], (acc + tl.load_tensor_descriptor(a, [i, 0])).to(tl.float16))
"""
HOST = f"""{HEADER}def kernel(a, c, N, K, B: tl.constexpr):
    i = tl.program_id(0) * B
    c.store([i, 0], a.load([i, 0]) * 2)
"""

LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "c_ptr": "*fp16", "N": "i32", "K": "i32", "B": "constexpr"},
    constexprs={"B": 64},
    divisible_by_16=("a_ptr", "c_ptr"),
    grid=(2, 2),
    args={
        "a_ptr": TensorArg("float16", (104, 200), (200, 1), None),
        "c_ptr": TensorArg("float16", (104, 104), (104, 1), None),
        "N": 104,
        "K": 200,
    },
)
TILE = DescriptorArg("float16", (104, 200), (200, 1), (64, 64))
HOST_LAUNCH = replace(
    LAUNCH,
    signature={"a": "tensordesc<fp16[64, 64]>", "c": "tensordesc<fp16[64, 64]>", "N": "i32", "K": "i32"}
    | {"B": "constexpr"},
    divisible_by_16=(),
    grid=(2,),
    args={"a": TILE, "c": TILE, "N": 104, "K": 200},
)


def equal(path: Path, text: str, port: str, launch: Launch, target: str = "sm90") -> None:
    kernels = [
        Participant(slice_kernel(read_source(path, each), "kernel", target=target, root=path.parent), launch)
        for each in (text, port)
    ]
    run = simulate_many([SimulationJob(kernels[0], kernels[1], target)], SimulationOptions(seeds=1))[0]
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.bitwise, run.result.findings) == (True, True, ())


def converted(path: Path, text: str, launch: Launch, target: str) -> tuple[str, list[str]]:
    path.write_text(text)
    made = convert(path, target=target, launches=[launch], root=path.parent, compile=True)
    return made.text, [each.code for report in made.kernels for each in report.diagnostics]


@pytest.mark.slow
def test_a_product_of_descriptors_is_named_by_the_sum_that_it_is_added_to(tmp_path: Path) -> None:
    sizes = {"M": 64, "N": 64, "K": 64}
    text = f"""{HEADER}def kernel(a, c, total, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, total, K):
        acc = tl.dot(a.load([0, k]), a.load([k, 0]), acc)
    c.store([0, 0], acc.to(tl.float16))
"""
    kinds = {"a": "tensordesc<fp16[64, 64]>", "c": "tensordesc<fp16[64, 64]>", "total": "i32"}
    launch = Launch("kernel.py", "kernel", kinds | dict.fromkeys(sizes, "constexpr"), sizes)
    port, _ = converted(tmp_path / "kernel.py", text, launch, "sm90")
    assert "[16, N, 16])" in port


def test_descriptors_that_the_host_gives_one_launch_alone_stay_without_tma(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HELPED)
    made = convert(path, target="sm80", launches=[HOST_LAUNCH, POINTERS], root=tmp_path, compile=False)
    assert {diagnostic.code for report in made.kernels for diagnostic in report.diagnostics} == {"TTG304"}
    assert made.text == HELPED


def test_why_parts_do_not_do_is_told_at_the_authors_line(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    text = HELPED.replace("    a = descriptor(a, [N, K]", "    if N:\n        a = descriptor(a, [N, K]")
    path.write_text(text)
    made = convert(path, target="sm80", launches=[HOST_LAUNCH], root=tmp_path, compile=False)
    told = [diagnostic for report in made.kernels for diagnostic in report.diagnostics]
    line = text[: text.index("    if N:")].count("\n") + 1
    assert [(each.code, each.line) for each in told] == [("TTG304", line)]
    assert "`a` is assigned to in several places" in told[0].message
    assert made.text == text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "gfx942"])
def test_without_tma_the_hosts_are_taken_apart(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, HOST, HOST_LAUNCH, target)
    assert codes == []
    assert "@with_parts_of(a=2, c=2)\n@gluon.jit\ndef kernel(\n" in made
    assert "tensor_descriptor" not in made
    equal(path, HOST, made, HOST_LAUNCH, target)


@pytest.mark.slow
def test_what_descriptors_become_fits_the_width(tmp_path: Path) -> None:
    text = HOST.replace("(a, c,", "(activations_desc, c,").replace("a.load([i, 0])", "activations_desc.load([i, 0])")
    renamed = {"a": "activations_desc"}
    launch = replace(
        HOST_LAUNCH,
        signature={renamed.get(name, name): kind for name, kind in HOST_LAUNCH.signature.items()},
        args={renamed.get(name, name): value for name, value in (HOST_LAUNCH.args or {}).items()},
    )
    made, _ = converted(tmp_path / "kernel.py", text, launch, "sm80")
    assert "activations_desc_size_1" in made
    assert max(map(len, made.splitlines())) <= 120


@pytest.mark.slow
def test_without_tma_a_kernels_own_become_pointers(tmp_path: Path) -> None:
    made, codes = converted(tmp_path / "kernel.py", OWN, LAUNCH, "sm80")
    assert not {"TTG304", "TTG402"} & set(codes)
    assert "descriptor" not in made
    assert "gl.load(" in made


@pytest.mark.slow
def test_a_kernels_own_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, OWN, LAUNCH, "sm90")
    assert codes == []
    assert made.count("tma.make_tensor_descriptor(") == 2
    loop = made[made.index("for k in range(0, K, B)") :]
    assert (loop.count("mbarrier.wait("), loop.count("mbarrier.expect("), loop.count("tma_load(")) == (1, 1, 2)
    assert "load_tile(a, [i, 0]).load(" in made
    assert "store_tile(c, [i, j], " in made
    equal(path, OWN, made, LAUNCH)


SCORES = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, B], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    q = a.load([tl.program_id(0) * B, 0])
    best = tl.zeros((B, B), tl.float32)
    for k in range(0, N, B):
        best = tl.maximum(tl.dot(q, a.load([k, 0]).T), best)
    c.store([tl.program_id(0) * B, 0], best.to(tl.float16))
"""


@pytest.mark.slow
def test_a_tile_from_before_the_loop_stays_in_memory_where_registers_are_multiplied(tmp_path: Path) -> None:
    path, launch = tmp_path / "kernel.py", replace(LAUNCH, grid=(2,))
    made, codes = converted(path, SCORES, launch, "sm120")
    assert codes == []
    assert "q = load_tile(a, [gl.program_id(0) * B, 0])\n" in made
    assert "q.load(" in made[made.index("for k in range(0, N, B)") :]
    equal(path, SCORES, made, launch, "sm120")


@pytest.mark.slow
def test_a_tile_that_a_product_cannot_take_where_it_lies_is_put_beside(tmp_path: Path) -> None:
    """wgmma takes 32-bit floats with K innermost alone: Triton turns the second tile through registers."""
    text = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    c.store([0, 0], tl.dot(a.load([0, 0]), a.load([0, B])))
"""
    signature = {**LAUNCH.signature, "a_ptr": "*fp32", "c_ptr": "*fp32"}
    port, codes = converted(tmp_path / "kernel.py", text, replace(LAUNCH, signature=signature), "sm90")
    assert "transposed=True" in port
    assert "TTG402" not in codes


@pytest.mark.slow
def test_descriptors_from_the_host(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, HOST, HOST_LAUNCH, "sm90")
    assert codes == []
    assert "@with_tile_layouts\n@gluon.jit\ndef kernel(a, c, N, K, B: gl.constexpr):" in made
    equal(path, HOST, made, HOST_LAUNCH)


HELPED = f"""{HEADER}def descriptor(given, shape, strides, block):
    if isinstance(given, tl.tensor_descriptor):
        return given
    else:
        return tl.make_tensor_descriptor(given, shape, strides, block)


@triton.jit
def doubled(desc, at):
    return desc.load([at, 0]) * 2


@triton.jit
def kernel(a, c, N, K, B: tl.constexpr):
    a = descriptor(a, [N, K], [K, 1], [B, B])
    c = descriptor(c, [N, K], [K, 1], [B, B])
    i = tl.program_id(0) * B
    c.store([i, 0], doubled(a, i))
"""
POINTERS = replace(
    HOST_LAUNCH,
    signature={**HOST_LAUNCH.signature, "a": "*fp16", "c": "*fp16"},
    divisible_by_16=("a", "c"),
    args={**(HOST_LAUNCH.args or {}), "a": TensorArg("float16", (104, 200), (200, 1), None)}
    | {"c": TensorArg("float16", (104, 200), (200, 1), None)},
)


@pytest.mark.slow
@pytest.mark.parametrize("launch", [HOST_LAUNCH, POINTERS], ids=["from the host", "of pointers"])
def test_helpers_take_and_make_descriptors(tmp_path: Path, launch: Launch) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, HELPED, launch, "sm90")
    assert set(codes) <= {"TTG330"}
    assert "isinstance(given, tma.tensor_descriptor)" in made
    equal(path, HELPED, made, launch)


@pytest.mark.skipif(mover(get_target("gfx1250")) != "tdm", reason="this Triton makes pointers of descriptors")
@pytest.mark.parametrize(
    ("text", "launch", "said"),
    [
        (OWN, LAUNCH, "tdm.make_tensor_descriptor("),
        (HOST, HOST_LAUNCH, '@with_tile_layouts("a")\n@gluon.jit\ndef kernel(a, c, N, K, B: gl.constexpr):'),
    ],
    ids=["its own", "from the host"],
)
def test_amds_data_mover(tmp_path: Path, text: str, launch: Launch, said: str) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, text, launch, "gfx1250")
    assert codes == []
    assert said in made
    equal(path, text, made, launch, "gfx1250")


ROWS = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [1, B])
    acc = tl.zeros((B,), tl.float32)
    for i in range(0, N):
        acc += a.load([i, tl.program_id(0) * B]).reshape(B)
    tl.store(c_ptr + tl.program_id(0) * B + tl.arange(0, B), acc.to(tl.float16))
"""


@pytest.mark.slow
def test_a_row_that_becomes_one_dimension_is_reshaped_in_registers(tmp_path: Path) -> None:
    path, launch = tmp_path / "kernel.py", replace(LAUNCH, grid=(2,))
    made, codes = converted(path, ROWS, launch, "sm90")
    assert codes == []
    assert ").reshape(B)" in made
    equal(path, ROWS, made, launch)


SQUEEZED = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [2, N, K], [N * K, K, 1], [1, B, B])
    c = tl.make_tensor_descriptor(c_ptr, [2, N, N], [N * N, N, 1], [1, B, B])
    i, j, z = tl.program_id(0) * B, tl.program_id(1) * B, tl.program_id(2)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        rows = a.load([z, i, k]).reshape(B, B)
        acc = tl.dot(rows, tl.reshape(a.load([z, j, k]), (B, B)).T, acc)
    c.store([z, i, j], acc.to(tl.float16).reshape(1, B, B))
"""
BATCH = replace(
    LAUNCH,
    grid=(2, 2, 2),
    args={**(LAUNCH.args or {}), "a_ptr": TensorArg("float16", (2, 104, 200), (104 * 200, 200, 1), None)}
    | {"c_ptr": TensorArg("float16", (2, 104, 104), (104 * 104, 104, 1), None)},
)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm100", "gfx1250"])
def test_a_tile_of_a_batch_is_reshaped_in_its_slot(tmp_path: Path, target: str) -> None:
    if not mover(get_target(target)):
        pytest.skip("this Triton makes pointers of descriptors")
    path = tmp_path / "kernel.py"
    made, codes = converted(path, SQUEEZED, BATCH, target)
    assert codes == []
    loop = made[made.index("for k in range(0, ") :]
    assert ".index(slot).reshape([B, B])" in loop
    assert ".index(slot).reshape([B, B]).permute((1, 0))" in loop
    assert "convert_layout" not in loop
    equal(path, SQUEEZED, made, BATCH, target)


@pytest.mark.slow
def test_a_reshaped_product_is_stored_as_a_tile_in_the_layout_that_it_has(tmp_path: Path) -> None:
    path, said = tmp_path / "kernel.py", "c.store([z, i, j], acc.to(tl.float16).reshape(1, B, B))"
    assert said in SQUEEZED
    text = SQUEEZED.replace(said, "whole = tl.exp(acc.reshape(1, B, B))\n    c.store([z, i, j], whole.to(tl.float16))")
    made, codes = converted(path, text, BATCH, "sm90")
    assert codes == []
    assert "whole = gl.exp(acc.reshape(1, B, B))" in made
    assert "reshaped_layout" not in made
    equal(path, text, made, BATCH)


SUMS = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [B, B], [N, 1], [B, B])
    c.atomic_max([0, 0], a.load([tl.program_id(0) * B, tl.program_id(1) * B]))
"""
INTEGERS = replace(
    LAUNCH,
    signature={**LAUNCH.signature, "a_ptr": "*i32", "c_ptr": "*i32"},
    args={**(LAUNCH.args or {}), "a_ptr": TensorArg("int32", (104, 200), (200, 1), (-50, 50))}
    | {"c_ptr": TensorArg("int32", (104, 104), (104, 1), (-50, 50))},
)


@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_atomics_of_tiles(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, SUMS, INTEGERS, target)
    by_tma = target == "sm90"
    if by_tma and not adds_tiles():
        assert set(codes) == {"TTG304"}
        return
    assert codes == []
    assert ("atomic_max_tile(c, [0, 0], " if by_tma else "gl.atomic_max(") in made
    equal(path, SUMS, made, INTEGERS, target)


ROWS_OF_TILES = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [1, B])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [1, B])
    rows = tl.arange(0, 32) * 3 + tl.program_id(0)
    c.scatter(a.gather(rows + 8, B) + 1, rows, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm100"])
def test_rows_are_gathered_and_scattered(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, ROWS_OF_TILES, LAUNCH, target)
    assert codes == []
    assert ("scatter_tile(c, " in made, "gather_tile(a, rows + 8, B).load(" in made) == 2 * (target == "sm100",)
    equal(path, ROWS_OF_TILES, made, LAUNCH, target)


GATHERED_AHEAD = f"""{HEADER}def kernel(a_ptr, c_ptr, N, K, B: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [1, B])
    b = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, B])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, B])
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a.gather(B - tl.arange(0, B), k), b.load([0, k]).T, acc)
    c.store([0, 0], acc.to(tl.float16))
"""


@pytest.mark.slow
def test_that_rows_are_not_gathered_ahead_is_told(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = converted(path, GATHERED_AHEAD, LAUNCH, "sm100")
    assert codes == ["TTG331"]
    equal(path, GATHERED_AHEAD, made, LAUNCH, "sm100")
