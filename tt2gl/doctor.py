"""`tt2gl doctor`: what is installed, what it can compile for, and what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tt2gl import __version__
from tt2gl.isolate import run_isolated
from tt2gl.targets import TARGETS, probe
from tt2gl.targets.gpu import present_architecture

_PACKAGES = ("triton", "libcst", "torch")


@dataclass(frozen=True)
class Advice:
    """Something missing: what for it is needed, and how to get it. Only a `required` one stops a conversion."""

    missing: str
    needed_for: str
    remedy: str
    required: bool = False


@dataclass(frozen=True)
class Doctor:
    """The state of an installation. A version is None where the package is missing.

    `targets` says of every target whether the installed Triton compiles for it; `gpu` is the architecture of the GPU
    present, if there is one, and `torch_gpu` whether torch is a build that can use it.
    """

    tt2gl: str
    python: str
    versions: dict[str, str | None]
    targets: dict[str, bool]
    gpu: str | None
    torch_gpu: bool
    ptxas: str | None
    advice: tuple[Advice, ...]

    @property
    def healthy(self) -> bool:
        """Whether everything that a conversion needs is there."""
        return not any(advice.required for advice in self.advice)

    def to_json(self) -> dict[str, Any]:
        """All of it, as `tt2gl doctor --json` prints it."""
        return {**asdict(self), "healthy": self.healthy}


def diagnose() -> Doctor:
    """Look at this installation. Compiles an empty kernel for every target; never raises."""
    versions = {package: _version(package) for package in _PACKAGES}
    usable = versions["triton"] is not None and run_isolated(_import_triton).ok
    targets = probe(tuple(TARGETS.values())) if usable else dict.fromkeys(TARGETS, False)
    gpu = present_architecture()
    torch_gpu = versions["torch"] is not None and gpu is not None and bool(run_isolated(_torch_sees_gpu).value)
    ptxas = run_isolated(_ptxas_version).value if usable else None
    return Doctor(
        tt2gl=__version__,
        python=platform.python_version(),
        versions=versions,
        targets=targets,
        gpu=gpu,
        torch_gpu=torch_gpu,
        ptxas=ptxas,
        advice=_advise(versions, usable, targets, gpu, torch_gpu, ptxas),
    )


def _advise(
    versions: dict[str, str | None],
    usable: bool,
    targets: dict[str, bool],
    gpu: str | None,
    torch_gpu: bool,
    ptxas: str | None,
) -> tuple[Advice, ...]:
    found = []
    if versions["libcst"] is None:
        found.append(Advice("libcst", "reading Python files", "Run `pip install libcst`.", required=True))
    if versions["triton"] is None:
        found.append(Advice("triton", "converting and compiling", "Run `pip install 'triton>=3.6'`.", required=True))
    elif not usable:
        remedy = "Run `python -c 'import triton.experimental.gluon'` to see why; Gluon needs triton 3.6 or newer."
        found.append(Advice("a triton that imports", "converting and compiling", remedy, required=True))
    else:
        if ptxas is None:
            remedy = "Install Triton from its wheel, which brings ptxas, or set TRITON_PTXAS_PATH."
            found.append(Advice("ptxas", "compiling for NVIDIA targets", remedy))
        unknown = [name for name, works in targets.items() if not works]
        if unknown:
            remedy = "Install a newer Triton if you need them."
            found.append(Advice(f"support for {', '.join(unknown)}", "compiling for those targets", remedy))
    if gpu is None:
        remedy = "Nothing to do: converting, compiling and comparing need no GPU."
        found.append(Advice("a GPU", "`tt2gl verify --run gpu` and the benchmarks", remedy))
    elif versions["torch"] is None or not torch_gpu:
        what = "torch" if versions["torch"] is None else "a torch that sees the GPU"
        remedy = "Install the torch build for your driver from pytorch.org; it brings the Triton that fits it."
        found.append(Advice(what, "`tt2gl verify --run gpu` and the benchmarks", remedy))
    return tuple(found)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        # Built from source and put on the path: there, but without metadata.
        return "unknown" if importlib.util.find_spec(package) is not None else None


def _import_triton() -> None:
    import triton.experimental.gluon.language  # noqa: F401


def _torch_sees_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _ptxas_version() -> str | None:
    """The release of the ptxas that Triton runs, as `V12.8.93`, or its path where it says nothing."""
    from triton import knobs

    path = knobs.nvidia.ptxas.path
    if not Path(path).exists() or not os.access(path, os.X_OK):
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    words = [word for word in said.split() if word.startswith("V") and word[1:2].isdigit()]
    return words[0] if words else str(path)
