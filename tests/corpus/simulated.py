"""The corpus in the simulator: cases for tests, small enough to take milliseconds each."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.corpus.features import CORPUS, available
from tt2gl.convert import convert
from tt2gl.isolate import private_triton
from tt2gl.launch_file import read_launches
from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.results import Conversion
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import SourceFile, read_source
from tt2gl.verify.compile import tensor_bytes
from tt2gl.verify.device import Participant
from tt2gl.verify.inputs import Inputs
from tt2gl.verify.simulate import SimulationJob
from tt2gl.verify.simulated_kernel import SimulatedKernel

FAMILIES = available()

# The larger ones are for a GPU.
MOST_BYTES = 2**22


def has_products(family: str) -> bool:
    """Whether kernels of a family multiply matrices."""
    return "tl.dot" in (CORPUS / f"{family}.py").read_text()


def small_launches(family: str) -> list[Launch]:
    """The launches of a family that are not for a GPU's sake; every kernel has some."""
    return [launch for launch in read_launches(CORPUS / f"{family}.launches.json") if _bytes(launch) < MOST_BYTES]


def _bytes(launch: Launch) -> int:
    return sum(map(_bytes_of, (launch.args or {}).values()))


def _bytes_of(value: Any) -> int:
    if isinstance(value, DescriptorArg):
        value = TensorArg(value.dtype, value.shape, value.stride)
    return tensor_bytes(value) if isinstance(value, TensorArg) else 0


def original(family: str, launch: Launch, target: str) -> Participant:
    """A kernel of the corpus under one of its launches."""
    return Participant(slice_kernel(_source(family), launch.kernel, target=target), launch)


@cache
def _source(family: str) -> SourceFile:
    return read_source(CORPUS / f"{family}.py")


def conversion(family: str, target: str, shared: Path) -> Conversion:
    """A family's file converted for all launches, once for all tests of a run: they `shared` the folder."""
    kept = shared / f"{family}.{target}.conversion"
    if not kept.exists():
        launches = read_launches(CORPUS / f"{family}.launches.json")
        made = convert(CORPUS / f"{family}.py", target=target, launches=launches, root=CORPUS, compile=False)
        own = kept.with_suffix(f".{os.getpid()}")
        own.write_bytes(pickle.dumps(made))
        own.rename(kept)
    found: Conversion = pickle.loads(kept.read_bytes())
    return found


def jobs(family: str, target: str, made: Conversion) -> list[SimulationJob]:
    """Every kernel of a family that was converted with its conversion, under the small launches."""
    port = read_source(CORPUS / f"{family}_gluon.py", made.text)
    converted = {report.kernel for report in made.kernels if report.status == "converted"}
    return [
        SimulationJob(
            original(family, launch, target),
            Participant(slice_kernel(port, launch.kernel, target=target), launch),
            target,
        )
        for launch in small_launches(family)
        if launch.kernel in converted
    ]


def simulate_alone(kernel: Participant, target: str, inputs: Inputs) -> Mapping[str, Any]:
    """What one kernel leaves in the tensors, by name, in IEEE arithmetic; in a child process only."""
    private_triton()
    simulation = SimulatedKernel("triton", kernel, target)(inputs, kernel.launch.grid or (1,))
    assert simulation.findings == ()
    return {tensor.name: tensor.elements for tensor in simulation.tensors}
