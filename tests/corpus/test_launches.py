"""The corpus's launch files say what its kernels take, and vary what matters."""

from __future__ import annotations

import ast
import json
import math
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tt2gl.launch_file import read_launches

pytestmark = pytest.mark.once

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
FAMILIES = sorted(path.stem for path in CORPUS.glob("*.py"))
DTYPES = {
    "float16": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    "float32": ("fp32", 4),
    "float8_e4m3fn": ("fp8e4nv", 1),
    "float8_e5m2": ("fp8e5", 1),
    "uint8": ("u8", 1),
    "int8": ("i8", 1),
    "int32": ("i32", 4),
    "int64": ("i64", 8),
}
# A launch that moves this much is for timing: it is beyond every cache of an H200 (50 MiB).
BENCH_BYTES = 2**26


@cache
def _kernels(family: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((CORPUS / f"{family}.py").read_text())
    return {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
    }


@cache
def _launches(family: str) -> list[dict[str, Any]]:
    launches: list[dict[str, Any]] = json.loads((CORPUS / f"{family}.launches.json").read_text())["launches"]
    return launches


def _bytes(launch: dict[str, Any]) -> int:
    tensors = [value.get("descriptor", value) for value in launch["args"].values() if isinstance(value, dict)]
    return sum(DTYPES[tensor["dtype"]][1] * math.prod(tensor["shape"]) for tensor in tensors)


EVERY_LAUNCH = [
    pytest.param(family, launch, id=f"{family}-{index}-{launch['kernel']}")
    for family in FAMILIES
    for index, launch in enumerate(_launches(family))
]
EVERY_KERNEL = [pytest.param(family, name, id=name) for family in FAMILIES for name in _kernels(family)]


@pytest.mark.parametrize("family", FAMILIES)
def test_launch_file_reads(family: str) -> None:
    assert len(read_launches(CORPUS / f"{family}.launches.json")) == len(_launches(family))


@pytest.mark.parametrize(("family", "launch"), EVERY_LAUNCH)
def test_signature_is_the_kernels(family: str, launch: dict[str, Any]) -> None:
    parameters = _kernels(family)[launch["kernel"]].args.args
    assert list(launch["signature"]) == [parameter.arg for parameter in parameters]
    declared = {
        parameter.arg
        for parameter in parameters
        if parameter.annotation and ast.unparse(parameter.annotation).endswith("constexpr")
    }
    constexprs = {name for name, kind in launch["signature"].items() if kind == "constexpr"}
    assert declared <= constexprs
    assert constexprs == launch["constexprs"].keys()
    # beyond those declared, Triton specialises on None and on one
    assert all(launch["constexprs"][name] in (None, 1) for name in constexprs - declared)
    assert launch["file"] == f"{family}.py"


@pytest.mark.parametrize(("family", "launch"), EVERY_LAUNCH)
def test_arguments_fit_the_signature(family: str, launch: dict[str, Any]) -> None:
    types = {name: kind for name, kind in launch["signature"].items() if kind != "constexpr"}
    assert launch["args"].keys() == types.keys()
    divisible = set()
    for name, value in launch["args"].items():
        if isinstance(value, dict) and "descriptor" in value:
            tensor = value["descriptor"]
            assert types[name] == f"tensordesc<{DTYPES[tensor['dtype']][0]}{tensor['block_shape']}>"
            assert len(tensor["shape"]) == len(tensor["stride"]) == len(tensor["block_shape"])
        elif isinstance(value, dict):
            assert types[name] == "*" + DTYPES[value["dtype"]][0]
            assert len(value["shape"]) == len(value["stride"])
            divisible.add(name)
        elif isinstance(value, float):
            assert types[name] == "fp32"
        else:
            assert types[name] == "i32"
            assert -(2**31) <= value < 2**31
            assert value != 1, "Triton makes a constexpr of it"
            divisible |= {name} if value % 16 == 0 else set()
    assert set(launch["divisible_by_16"]) == divisible


@pytest.mark.parametrize(("family", "launch"), EVERY_LAUNCH)
def test_grid_is_three_counts(family: str, launch: dict[str, Any]) -> None:
    assert len(launch["grid"]) == 3
    assert all(isinstance(count, int) and count > 0 for count in launch["grid"])


@pytest.mark.parametrize(("family", "kernel"), EVERY_KERNEL)
def test_launches_of_a_kernel_vary(family: str, kernel: str) -> None:
    launches = [launch for launch in _launches(family) if launch["kernel"] == kernel]
    bench = [launch for launch in launches if _bytes(launch) >= BENCH_BYTES]
    assert bench == launches[-1:], "the last launch, and it alone, fills a GPU"
    assert len(launches) >= 3
    dtypes: dict[str, set[str]] = defaultdict(set)
    for launch in launches:
        for name, kind in launch["signature"].items():
            dtypes[name].add(kind)
    assert any(len(kinds - {"constexpr"}) >= 2 for kinds in dtypes.values()), "one dtype only"
    assert len({json.dumps(launch["constexprs"]) for launch in launches}) >= 2, "one set of constexprs only"
    scalars = [value for launch in launches for value in launch["args"].values() if isinstance(value, int)]
    scalars += [value for launch in launches for value in launch["constexprs"].values() if isinstance(value, int)]
    assert any(value % 16 for value in scalars if value is not True and value is not False), "all divisible by 16"


def test_every_kernel_has_a_reference() -> None:
    pytest.importorskip("torch", reason="references are written in torch")
    from corpus.references import REFERENCES

    assert set(REFERENCES) == {(family, kernel) for family in FAMILIES for kernel in _kernels(family)}
