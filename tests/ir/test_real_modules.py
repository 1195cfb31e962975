"""What Triton prints, before its passes and after them, on every architecture: all of it is read, nothing is lost."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.features import CORPUS, available
from tests.corpus.simulated import conversion
from tests.simulate.kernels import suite
from tt2gl import compiler, isolate
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import UNKNOWN, Module
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import DescriptorType, MemDescType, TensorType
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import read_source
from tt2gl.targets import get_target

TARGETS = ("sm80", "sm90", "sm100", "gfx942", "gfx950", "gfx1250")

_RESULTS = re.compile(r"^\s*(%[^=\n]+) = \"", re.MULTILINE)
_OPERATION = re.compile(r'^\s*(?:%[^=\n]+ = )?"[\w.]+"\((.*?)\)', re.MULTILINE)
_LABEL = re.compile(r"^\s*\^.*$", re.MULTILINE)


def build(function: Any, launch: Launch, target: str, optimised: bool) -> str:
    """Generic text of a kernel, before the passes or after them."""
    backend, gpu = compiler.backend_for(get_target(target))
    options = compiler.options_for(backend, launch)
    make = compiler.build_ttgir if optimised else compiler.build_ir
    return compiler.generic_text(make(compiler.source_for(function, launch), backend, gpu, options))


def sliced_text(kernel: Slice, launch: Launch, target: str, optimised: bool, folder: Path) -> str:
    """Generic text of a kernel out of a file; for a child process."""
    return build(load_slice(kernel, folder), launch, target, optimised)


def file_text(path: Path, launch: Launch, target: str, optimised: bool) -> str:
    """Generic text of a kernel of a file that is imported; for a child process."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return build(getattr(module, launch.kernel), launch, target, optimised)


def first_launches(launches: Sequence[Launch]) -> list[Launch]:
    """One launch a kernel."""
    return list({launch.kernel: launch for launch in reversed(launches)}.values())


def check_nothing_is_lost(text: str) -> Module:
    """Parse, and count what regular expressions find in the text: operations, values, uses, arguments."""
    module = parse_module(text)
    walked = list(module.operation.walk())
    blocks = [block for operation in walked for region in operation.regions for block in region.blocks]
    heads = _OPERATION.findall(text)
    assert len(walked) == len(heads)
    results = [
        int(count or 1) for names in _RESULTS.findall(text) for count in re.findall(r"%[^:,]+(?::(\d+))?", names)
    ]
    assert sum(len(operation.results) for operation in walked) == sum(results)
    # An operation is printed before what it holds, which is the order of `walk`.
    assert [len(operation.operands) for operation in walked] == [head.count("%") for head in heads]
    assert sum(len(block.arguments) for block in blocks) == sum(
        len(re.findall(r"%[\w.$-]+: ", label)) for label in _LABEL.findall(text)
    )
    defined = {id(value) for operation in walked for value in operation.results}
    defined |= {id(value) for block in blocks for value in block.arguments}
    assert {id(value) for operation in walked for value in operation.operands} <= defined
    assert {id(block) for operation in walked for block in operation.successors} <= {id(block) for block in blocks}
    assert "tt2gl_generic" not in text
    # `#rocdl<sched_group_mask none>` has no form but its own; of the others nothing is left as text.
    attributes = [a for o in walked for a in o.attributes.values() if isinstance(a, DialectAttr)]
    assert [str(a) for a in attributes if a.get("text") and "." in a.name] == []
    unknown = {"unknown", *re.findall(r"^(#\w+) = loc\(unknown\)$", text, re.MULTILINE)}
    places = re.findall(r" -> [^\n]* loc\((.*)\)$", text, re.MULTILINE)
    assert sum(operation.location == UNKNOWN for operation in walked) == sum(place in unknown for place in places)
    assert len(walked) == len(places)
    return module


def checked(function: Callable[..., str], jobs: Sequence[tuple[Any, ...]]) -> list[Module]:
    """The modules that `function` prints in child processes, one for each of its arguments."""
    isolate.preload()
    outcomes = isolate.map_isolated(function, jobs, family=lambda *job: job[2:4])
    assert [(str(job[1].kernel), o.error) for job, o in zip(jobs, outcomes, strict=True) if not o.ok] == []
    return [check_nothing_is_lost(outcome.value or "") for outcome in outcomes]


# The frontend's IR of a Triton kernel is the same for every target.
_FRONTEND = ("sm90", False, available())
_OPTIMISED = [(target, True, available(target)) for target in TARGETS]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "optimised", "families"), [_FRONTEND, *_OPTIMISED])
def test_the_corpus(target: str, optimised: bool, families: Sequence[str], tmp_path: Path) -> None:
    jobs: list[tuple[Any, ...]] = []
    for family in families:
        file, source = CORPUS / f"{family}.launches.json", read_source(CORPUS / f"{family}.py")
        for launch in first_launches(read_launches(file)):
            if target == "sm80" and "*fp8e4nv" in launch.signature.values():
                # Triton compiles this type from sm89 on.
                continue
            kernel = slice_kernel(source, launch.kernel, target=target, root=CORPUS)
            jobs.append((kernel, launch, target, optimised, tmp_path))
    for module in checked(sliced_text, jobs):
        assert module.kernel.name == "tt.func"
        assert ("ttg.num-warps" in module.attributes) == optimised


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_the_corpus_in_gluon(target: str, tmp_path: Path, shared: Path) -> None:
    jobs: list[tuple[Any, ...]] = []
    for family in available():
        launches = first_launches(read_launches(CORPUS / f"{family}.launches.json"))
        made = conversion(family, target, shared)
        port = tmp_path / f"{family}_gluon.py"
        port.write_text(made.text, "utf-8")
        kernels = {report.kernel for report in made.kernels if report.status == "converted"}
        source = read_source(port)
        for launch in launches:
            if launch.kernel in kernels:
                kernel = slice_kernel(source, launch.kernel, target=target, root=tmp_path)
                jobs.append((kernel, launch, target, False, tmp_path))
    modules = checked(sliced_text, jobs)
    assert len(modules) > 30
    assert all(module.attributes["ttg.num-warps"] for module in modules)


@pytest.mark.slow
@pytest.mark.parametrize("optimised", [False, True], ids=["frontend", "ttgir"])
def test_hand_written_gluon(optimised: bool) -> None:
    """cp.async, wgmma, TMA, mbarriers, warp specialization, tcgen05, and AMD's buffer, LDS and TDM operations."""
    modules = checked(file_text, [(case.path, case.launch, case.target, optimised) for case in suite.cases()])
    kinds = [value.type for module in modules for operation in module.operation.walk() for value in operation.results]
    assert {MemDescType, TensorType} <= set(map(type, kinds))
    views = [kind for kind in kinds if isinstance(kind, MemDescType)]
    assert {view.space.name for view in views} == {"ttg.shared_memory", "ttng.tensor_memory"}
    assert any(view.alloc_shape != view.shape for view in views)


def test_descriptors_have_their_blocks() -> None:
    cases = [
        case for case in suite.cases("tma") if any("tensordesc" in kind for kind in case.launch.signature.values())
    ]
    for module in checked(file_text, [(case.path, case.launch, case.target, False) for case in cases]):
        kinds = [value.type for value in module.kernel.regions[0].entry.arguments]
        blocks = [kind.block for kind in kinds if isinstance(kind, DescriptorType)]
        assert [block.encoding.name for block in blocks if block.encoding] == ["ttg.nvmma_shared"] * len(blocks) != []
