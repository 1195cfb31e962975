"""Compile every launch of the corpus for one target, as the authors wrote it: no tt2gl, no GPU.

A program of its own, as a compiler that aborts takes its process along:
`python tests/corpus/compile_originals.py cuda 90 first` for one launch of each kernel, `rest` for the others. Prints
one JSON object a launch.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.corpus.features import CORPUS, available


def main(backend: str, architecture: str, which: str) -> None:
    """Print a result for each launch whose kernel's functions this Triton has: `error` is null where it compiled."""
    if importlib.util.find_spec("torch") is None:
        # host code names it in annotations and defaults, and is not run here
        sys.modules["torch"] = stub = types.ModuleType("torch")
        stub.__getattr__ = lambda name: object  # type: ignore[method-assign]
    target = GPUTarget(backend, int(architecture), 32) if backend == "cuda" else GPUTarget(backend, architecture, 64)
    for family in available(architecture):
        module = _load(family)
        seen: set[str] = set()
        for index, launch in enumerate(json.loads((CORPUS / f"{family}.launches.json").read_text())["launches"]):
            is_first = launch["kernel"] not in seen
            seen.add(launch["kernel"])
            if is_first != (which == "first"):
                continue
            error = _compile(getattr(module, launch["kernel"]), launch, target)
            print(json.dumps({"family": family, "launch": index, "kernel": launch["kernel"], "error": error}))


def _load(family: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"corpus_{family}", CORPUS / f"{family}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(kernel: Any, launch: dict[str, Any], target: Any) -> str | None:
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    index = {name: (position,) for position, name in enumerate(launch["signature"])}
    source = ASTSource(
        kernel,
        launch["signature"],
        {index[name]: value for name, value in launch["constexprs"].items()},
        {index[name]: [["tt.divisibility", 16]] for name in launch["divisible_by_16"]},
    )
    try:
        triton.compile(source, target=target, options=launch["options"])
    except Exception as error:  # noqa: BLE001  the compiler raises what it likes
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
