"""What is timed as a library's way to do a kernel's work does it: each rival against the reference, on the CPU."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import pytest

from bench.rivals import MAKERS, rivals_of
from tt2gl.launch_file import read_launches
from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.verify.inputs import make_inputs

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
MOST_ELEMENTS = 2**16

# Rivals that torch has on the GPU alone, or for none of the small launches.
UNTRIED = {"split_k_matmul_kernel", "float8_matmul_kernel"}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed beside this Triton"
)


def small_launches(kernel: str) -> list[tuple[str, Launch]]:
    """The launches of a kernel that the CPU does at once, and the family they are of."""
    return [
        (path.name.partition(".")[0], launch)
        for path in CORPUS.glob("*.launches.json")
        for launch in read_launches(path)
        if launch.kernel == kernel and all(elements(value) <= MOST_ELEMENTS for value in (launch.args or {}).values())
    ]


def elements(value: Any) -> int:
    return math.prod(value.shape) if isinstance(value, TensorArg | DescriptorArg) else 0


def test_every_rival_is_of_a_kernel_of_the_corpus() -> None:
    documents = [json.loads(path.read_text()) for path in CORPUS.glob("*.launches.json")]
    assert {*MAKERS} <= {launch["kernel"] for document in documents for launch in document["launches"]}


@pytest.mark.parametrize("kernel", [name for name in MAKERS if name not in UNTRIED])
def test_a_rival_computes_what_the_kernel_does(kernel: str) -> None:
    import torch

    from corpus.references import REFERENCES
    from tt2gl.verify.tensors import to_device

    ran = 0
    for family, launch in small_launches(kernel):
        inputs = to_device(make_inputs(launch, 0), "cpu")
        arguments = {**inputs.scalars, **{name: buffer.view for name, buffer in inputs.buffers.items()}}
        if family == "attention_backward":
            fill_in_forward(arguments, launch)
        before = {name: each.clone() if isinstance(each, torch.Tensor) else each for name, each in arguments.items()}
        expected = REFERENCES[family, kernel](before, launch.constexprs)
        for rival in rivals_of(launch, inputs):
            for name, found in zip(rival.outputs, rival.run(), strict=True):
                # Rows that no group has are not the library's to write.
                wanted = expected[name].double()[: len(found)]
                assert found.shape == wanted.shape
                # Rounded in other places than the reference, at most to the 8 bits of bf16 a few times.
                assert (found.double() - wanted).norm() <= 2**-5 * wanted.norm(), (launch.args, name)
                ran += 1
    assert ran


def fill_in_forward(arguments: dict[str, Any], launch: Launch) -> None:
    """What the backward kernels are given of the forward pass, which random inputs do not agree with."""
    from corpus.references.attention import attend

    q, k, v, dout = (arguments[name].double() for name in ("Q", "K", "V", "DO"))
    out, lse = attend(q, k, v, arguments["sm_scale"], bool(launch.constexprs["CAUSAL"]))
    arguments["Lse"].copy_(lse)
    arguments["Delta"].copy_((out * dout).sum(-1))
