"""Run corpus files' small launches in Triton's interpreter and compare with the references.

A program of its own, as TRITON_INTERPRET is read when Triton is imported:
`python tests/corpus/interpret.py FAMILY...`, from the root of the checkout. Prints one JSON object a launch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
CORPUS = Path(__file__).resolve().parents[2] / "corpus"
sys.path.insert(0, str(CORPUS.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402
from triton.runtime.interpreter import InterpretedFunction, TensorHandle  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

from corpus.references import REFERENCES, tolerance  # noqa: E402

# Larger launches are for a GPU: the interpreter takes milliseconds an operation and program.
MOST_BYTES = 2**22


def main(families: Sequence[str]) -> None:
    """Print a result for each launch of the families that is small and free of bf16."""
    libdevice.tanh = _elementwise(np.tanh)
    for family in families:
        _run_all(family)


def _run_all(family: str) -> None:
    module = _load(family)
    document = json.loads((CORPUS / f"{family}.launches.json").read_text())
    for index, launch in enumerate(document["launches"]):
        if _bytes(launch) > MOST_BYTES or any("bf16" in kind for kind in launch["signature"].values()):
            continue
        place = {"family": family, "launch": index, "kernel": launch["kernel"]}
        print(json.dumps({**place, "problems": _run(family, module, launch)}))


def _load(family: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"corpus_{family}", CORPUS / f"{family}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _elementwise(function: Any) -> Any:
    """A libdevice function for the interpreter, which has none."""

    def call(x: Any, _semantic: Any = None) -> Any:
        return tl.tensor(TensorHandle(function(x.handle.data).astype(x.handle.data.dtype), x.handle.dtype), x.type)

    return call


def _bytes(launch: dict[str, Any]) -> int:
    tensors = [value.get("descriptor", value) for value in launch["args"].values() if isinstance(value, dict)]
    return sum(
        getattr(torch, tensor["dtype"]).itemsize * int(np.prod(tensor["shape"], dtype=np.int64)) for tensor in tensors
    )


def _run(family: str, module: Any, launch: dict[str, Any]) -> list[str]:
    """Run one launch; each way in which what it wrote differs from the reference."""
    generator = torch.Generator().manual_seed(launch["grid"][0])
    before = {
        name: _tensor(value.get("descriptor", value), generator) if isinstance(value, dict) else value
        for name, value in launch["args"].items()
    }
    after = {name: _copy(value) for name, value in before.items()}
    kernel = getattr(module, launch["kernel"])
    while not isinstance(kernel, InterpretedFunction):
        kernel = kernel.fn
    kernel[tuple(launch["grid"])](**_passed(launch, after), **launch["constexprs"])

    expected = REFERENCES[family, launch["kernel"]](before, launch["constexprs"])
    problems = []
    for name, was in before.items():
        if not isinstance(was, torch.Tensor):
            continue
        now, wanted = after[name], expected.get(name, was)
        allowed = tolerance(family, launch["kernel"], name, was.dtype)
        if now.shape != wanted.shape:
            problems.append(f"{name}: shape {tuple(now.shape)}, expected {tuple(wanted.shape)}")
            continue
        error = (now.double() - wanted.double()).abs() - allowed.relative * wanted.double().abs() - allowed.absolute
        # written so that a NaN is a problem
        wrong = ~(error <= 0)
        if wrong.any():
            problems.append(f"{name}: {int(wrong.sum())} of {wrong.numel()} off, by up to {float(error.max()):.3g}")
    return problems


def _passed(launch: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with each tensor in its descriptor, where the kernel takes one."""
    passed = dict(arguments)
    for name, value in launch["args"].items():
        if isinstance(value, dict) and "descriptor" in value:
            passed[name] = TensorDescriptor.from_tensor(arguments[name], value["descriptor"]["block_shape"])
    return passed


def _tensor(value: dict[str, Any], generator: torch.Generator) -> torch.Tensor:
    """Random contents; outputs get them too, so that what is never written shows."""
    dtype = getattr(torch, value["dtype"])
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value["shape"], value["stride"], strict=True))
    low, high = value.get("range") or (None, None)
    if dtype.is_floating_point:
        storage = torch.randn(extent, generator=generator)
        if low is not None and high is not None:
            storage = low + (high - low) * torch.rand(extent, generator=generator)
    else:
        low, high = (-100, 100) if low is None or high is None else (low, high)
        storage = torch.randint(low, high + 1, (extent,), generator=generator)
    return storage.to(dtype).as_strided(value["shape"], value["stride"])


def _copy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)


if __name__ == "__main__":
    main(sys.argv[1:])
