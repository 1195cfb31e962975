"""The blocks of descriptors that the host makes, found in what the host says or by the kernel's own offsets."""

from __future__ import annotations

from pathlib import Path

from tt2gl.infer.launches import infer_launches
from tt2gl.launches import Launch
from tt2gl.source import read_source

HEADER = """\
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(nargs):
    if not isinstance(nargs["a"], TensorDescriptor):
        return
    m, k = nargs["BLOCK_M"], nargs["BLOCK_K"]
    nargs["a"].block_shape = [m, k // 2 if nargs.get("HALF", False) else k]
    nargs["b"].block_shape = [1, k]


"""
PARAMETERS = "a, b, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr"


def launches(decorators: str, parameters: str, body: str, host: str = "") -> tuple[Launch, ...]:
    lines = "\n    ".join(body.split("; "))
    text = f"{HEADER}{decorators}@triton.jit\ndef kernel({parameters}):\n    {lines}\n\n\n{host}"
    source = read_source(Path("kernel.py"), text)
    return infer_launches(source, source.kernel("kernel"))[0]


def blocks(launch: Launch) -> list[str]:
    return [kind.removeprefix("tensordesc<") for kind in launch.signature.values() if kind.startswith("tensordesc<")]


def test_what_the_hook_of_each_config_sets() -> None:
    config = 'triton.Config({{"BLOCK_M": {}, "BLOCK_K": 128}}, pre_hook=set_blocks)'
    decorators = f"@triton.autotune([{config.format(64)}, {config.format(256)}], key=[])\n"
    first, second = launches(decorators, PARAMETERS, "b.store([0, 0], a.load([0, 0]))")
    assert blocks(first) == ["fp16[64, 128]>", "fp16[1, 128]>"]
    assert blocks(second) == ["fp16[256, 128]>", "fp16[1, 128]>"]


def test_a_hook_counts_for_indices_of_as_many_dimensions() -> None:
    decorators = '@triton.autotune([triton.Config({"BLOCK_M": 64, "BLOCK_K": 128}, pre_hook=set_blocks)], key=[])\n'
    (launch,) = launches(decorators, PARAMETERS, "b.store([0, 0, 0], a.load([0, 0]))")
    assert blocks(launch) == ["fp16[64, 128]>", "fp16[1, 64, 64]>"]


def test_what_a_launch_call_says() -> None:
    host = (
        "def host(x, y, block):\n"
        "    tile = TensorDescriptor.from_tensor(x, [block, 32])\n"
        "    kernel[(1,)](tile, TensorDescriptor(y, y.shape, y.stride(), block_shape=(16, 256)), block, BLOCK_K=32)\n"
    )
    launch = launches("", PARAMETERS, "b.store([0, 0], a.load([0, tl.arange(0, BLOCK_M)]))", host)[0]
    assert blocks(launch) == ["fp16[64, 32]>", "fp16[16, 256]>"]


def test_ones_stand_for_what_comes_later() -> None:
    host = "def host(x):\n    kernel[(1,)](TensorDescriptor.from_tensor(x, [1, 1]), x, 128, 32)\n"
    launch = launches("", PARAMETERS, "tl.store(b, tl.sum(a.load([tl.program_id(0) * BLOCK_M, 0])))", host)[0]
    assert blocks(launch) == ["fp16[128, 64]>"]


def test_the_tiles_that_offsets_are_multiples_of() -> None:
    parameters = "a, b, n, BLOCK_M: tl.constexpr = 128, BLOCK_K: tl.constexpr = 32, HEAD_DIM: tl.constexpr = 256"
    body = (
        "first = n + tl.program_id(0) * BLOCK_M; "
        "k = 0; "
        "row = a.load([first, 0]); "
        "for i in range(0, n, BLOCK_K): b.store([n, i.to(tl.int32), k], row); "
        "k += BLOCK_M"
    )
    launch = launches("", parameters, body)[0]
    assert blocks(launch) == ["fp16[128, 256]>", "fp16[1, 32, 128]>"]
