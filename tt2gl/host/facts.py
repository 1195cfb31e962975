"""What host code would learn from the machine, answered from the target and from what is installed instead.

Kernels are chosen by questions (`torch.version.hip is None`, `get_device_capability()[0] >= 9`, `is_hip()`). The
answers here are those of a machine with the target's accelerator and torch; nothing is imported to give them.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.metadata
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tt2gl.targets import get_target


@dataclass(frozen=True)
class Device:
    """The facts of one target that host code asks for."""

    backend: str
    arch: int | str
    capability: tuple[int, int]
    name: str
    processors: int
    shared_bytes: int
    warp_size: int

    @property
    def hip(self) -> bool:
        """Whether this is an AMD target."""
        return self.backend == "hip"


def device(target: str) -> Device:
    """The device of a target's name (`sm90`, `gfx942`)."""
    known = get_target(target)
    if isinstance(known.arch, int):
        capability = divmod(known.arch, 10)
    else:
        digits = known.arch.removeprefix("gfx")
        capability = int(digits[:-2]), int(digits[-2], 16)
    limits = known.device.multiprocessors, known.shared_memory_bytes, known.warp_size
    return Device(known.backend, known.arch, capability, known.device.name, *limits)


@functools.cache
def installed_version(package: str) -> str | None:
    """The version of an installed distribution; for torch, where absent, the release that pins this Triton."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if package == "torch":
            triton = installed_version("triton") or ""
            return {"3.6": "2.11.0", "3.7": "2.13.0", "3.8": "2.14.0", "3.9": "2.15.0"}.get(triton[:3], "2.13.0")
        return None


@functools.cache
def top_level_origin(name: str) -> Path | None:
    """Where a top-level module lies (its `__init__.py` or file), found without importing anything."""
    if name in sys.builtin_module_names:
        return None
    spec = importlib.machinery.PathFinder.find_spec(name)
    if spec is None:
        return None
    if spec.origin is not None:
        return Path(spec.origin)
    locations = list(spec.submodule_search_locations or [])
    return Path(locations[0]) / "__init__.py" if locations else None


@functools.cache
def importable(dotted: str) -> bool:
    """Whether a module of the standard library, Triton or another installed package is there.

    torch counts as installed: a machine that launches the kernels has it. A submodule is looked up as a file.
    """
    top, _, rest = dotted.partition(".")
    if top in sys.stdlib_module_names:
        return True
    origin = top_level_origin(top)
    if origin is None:
        return top == "torch"
    return not rest or submodule(origin, rest) is not None or _has_attribute(origin, rest)


def submodule(origin: Path, rest: str) -> Path | None:
    """The file of `rest` (dotted) below a package's `__init__.py`."""
    if origin.name != "__init__.py":
        return None
    base = origin.parent.joinpath(*rest.split("."))
    for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
        if candidate.is_file():
            return candidate
    if base.is_dir():
        return base / "__init__.py"
    return next(iter(base.parent.glob(base.name + ".*.so")), None) if base.parent.is_dir() else None


def _has_attribute(origin: Path, rest: str) -> bool:
    head, _, tail = rest.rpartition(".")
    holder = submodule(origin, head) if head else origin
    return holder is not None and holder.suffix == ".py" and tail in bound_names(holder)


def has_name(module: str, name: str) -> bool | None:
    """Whether an installed module binds a name; None where its file is not there to be read."""
    top, _, rest = module.partition(".")
    origin = top_level_origin(top)
    if origin is None:
        return None
    holder = submodule(origin, rest) if rest else origin
    if holder is None:
        return False
    if submodule(holder, name) is not None:
        return True
    if holder.suffix != ".py" or not holder.is_file():
        return None
    return name in bound_names(holder)


@functools.cache
def bound_names(path: Path) -> frozenset[str]:
    """The names that a file binds at its top level, star imports of its own package followed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()
    names: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.Import(names=aliases):
                names.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.ImportFrom(module=module, names=aliases, level=level):
                names.update(alias.asname or alias.name for alias in aliases)
                if level == 1 and any(alias.name == "*" for alias in aliases):
                    sibling = path.parent.joinpath(*(module or "").split("."))
                    for candidate in (sibling.with_name(sibling.name + ".py"), sibling / "__init__.py"):
                        if candidate.is_file() and candidate != path:
                            names |= bound_names(candidate)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
        stack.extend(ast.iter_child_nodes(node))
    return frozenset(names)


@functools.total_ordering
class Version:
    """A version number that compares as PEP 440 has it for what host code asks: release, then pre-releases."""

    def __init__(self, text: str) -> None:
        self.text = text.strip().removeprefix("v")
        match = re.match(r"(?:\d+!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre)[-_.]?(\d*))?", self.text)
        if match is None:
            raise ValueError(f"Invalid version: {text!r}")
        self.release = tuple(int(part) for part in match.group(1).split("."))
        public = self.text.partition("+")[0]
        self.local = self.text.partition("+")[2] or None
        self.is_prerelease = match.group(2) is not None or ".dev" in public
        dev = re.search(r"[-_.]?dev(\d*)", public)
        stage = {"a": 1, "alpha": 1, "b": 2, "beta": 2, "c": 3, "rc": 3, "pre": 3}.get(match.group(2) or "", 4)
        if dev and stage == 4:
            stage = 0
        trimmed = self.release
        while trimmed and trimmed[-1] == 0:
            trimmed = trimmed[:-1]
        post = re.search(r"\.post(\d+)", public)
        self._key = (
            trimmed,
            stage,
            int(match.group(3) or 0),
            int(post.group(1)) if post else -1,
            0 if dev else 1,
            self.local or "",
        )

    major = property(lambda self: self.release[0])
    minor = property(lambda self: (*self.release, 0)[1])
    micro = property(lambda self: (*self.release, 0, 0)[2])
    base_version = property(lambda self: ".".join(map(str, self.release)))
    public = property(lambda self: self.text.partition("+")[0])

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: Version) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


def attributes(target: str) -> Mapping[str, Any]:
    """External attributes whose value the target or the installed packages fix, by dotted name."""
    gpu = device(target)
    known: dict[str, Any] = {
        "torch.version.hip": "7.0.0" if gpu.hip else None,
        "torch.version.cuda": None if gpu.hip else "12.8",
        "torch.version.xpu": None,
        "torch.__version__": installed_version("torch"),
        "torch.version.__version__": installed_version("torch"),
        "triton.__version__": installed_version("triton"),
        "sys.version_info": tuple(sys.version_info),
        "sys.platform": sys.platform,
        "os.name": "nt" if sys.platform == "win32" else "posix",
        "typing.TYPE_CHECKING": False,
        "torch.inf": float("inf"),
        "torch.nan": float("nan"),
        "torch.pi": 3.141592653589793,
        "torch.e": 2.718281828459045,
        "numpy.inf": float("inf"),
        "numpy.nan": float("nan"),
        "numpy.pi": 3.141592653589793,
        "numpy.e": 2.718281828459045,
    }
    return known


def calls(target: str) -> Mapping[str, Any]:
    """External calls answered whatever their arguments, by dotted name."""
    gpu = device(target)
    properties = SimpleNamespace(
        name=gpu.name,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        multi_processor_count=gpu.processors,
        warp_size=gpu.warp_size,
        shared_memory_per_block_optin=gpu.shared_bytes,
        shared_memory_per_block=min(gpu.shared_bytes, 49152),
        shared_memory_per_multiprocessor=gpu.shared_bytes + 1024,
    )
    if gpu.hip:
        properties.gcnArchName = f"{gpu.arch}:sramecc+:xnack-"
    current = SimpleNamespace(backend=gpu.backend, arch=gpu.arch, warp_size=gpu.warp_size)
    utilities = {
        "max_shared_mem": gpu.shared_bytes,
        "multiprocessor_count": gpu.processors,
        "warpSize": gpu.warp_size,
        "max_num_regs": 65536,
    }
    return {
        "torch.cuda.is_available": True,
        "torch.cuda.device_count": 1,
        "torch.cuda.current_device": 0,
        "torch.cuda.get_device_capability": gpu.capability,
        "torch.cuda.get_device_name": gpu.name,
        "torch.cuda.get_device_properties": properties,
        "torch.cuda.is_bf16_supported": True,
        "torch.xpu.is_available": False,
        "torch.npu.is_available": False,
        "torch.mps.is_available": False,
        "torch.backends.mps.is_available": False,
        "torch.compiler.is_compiling": False,
        "torch.cuda.is_current_stream_capturing": False,
        "triton.runtime.driver.active.get_current_target": current,
        "triton.runtime.driver.active.get_current_device": 0,
        "triton.runtime.driver.active.get_device_capability": gpu.capability,
        "triton.runtime.driver.active.utils.get_device_properties": utilities,
        "triton.runtime.driver.active.get_active_torch_device": SimpleNamespace(type="cuda", index=0),
    }


# Attributes that a machine with a supported target lacks: other vendors' extensions of torch.
ABSENT = frozenset(
    {"torch.npu", "torch.musa", "torch.mlu", "torch.sdaa", "torch.gcu", "torch.hpu", "torch.privateuseone"}
)


def question(name: str, target: str) -> bool | None:
    """What the name of a yes-or-no function or flag asks for (`is_hip`, `HAS_TRITON`); None if nothing known is asked.

    The last resort for what cannot be read: functions and flags of packages not at hand, functions of compiled ones,
    and of objects that are found while the program runs.
    """
    gpu = device(target)
    arch = str(gpu.arch)
    known: Mapping[str, bool] = {
        "hip": gpu.hip,
        "rocm": gpu.hip,
        "amd": gpu.hip,
        "amd_gpu": gpu.hip,
        "cuda": not gpu.hip,
        "nvidia": not gpu.hip,
        "triton": True,
        "triton_package": True,
        "cuda_alike": True,
        "cuda_like": True,
        "npu": False,
        "xpu": False,
        "intel": False,
        "cpu": False,
        "tpu": False,
        "mps": False,
        "musa": False,
        "mlu": False,
        "hpu": False,
        "ascend": False,
        "torch_npu": False,
        "torch_xpu": False,
        "cdna": arch.startswith("gfx9"),
        "hip_cdna": arch.startswith("gfx9"),
        "cdna3": arch == "gfx942",
        "hip_cdna3": arch == "gfx942",
        "cdna4": arch == "gfx950",
        "hip_cdna4": arch == "gfx950",
        "gfx942": arch == "gfx942",
        "gfx95": arch == "gfx950",
        "gfx950": arch == "gfx950",
        "gfx1250": arch == "gfx1250",
        "rdna": bool(re.match(r"gfx1[0-2]", arch)) and arch != "gfx1250",
        "ampere": gpu.backend == "cuda" and gpu.capability[0] == 8,
        "hopper": gpu.backend == "cuda" and gpu.capability[0] == 9,
        "blackwell": gpu.backend == "cuda" and gpu.capability[0] in (10, 12),
        "sm90": gpu.backend == "cuda" and gpu.capability[0] == 9,
        "sm100": gpu.backend == "cuda" and gpu.capability[0] == 10,
        "sm120": gpu.backend == "cuda" and gpu.capability[0] == 12,
        "fp8_fnuz": arch == "gfx942",
    }
    match = re.fullmatch(
        r"_*(?:is|use|using|on|has|running_on)_(\w+?)(?:_(?:available|gpu|platform|backend|supported))?", name.lower()
    )
    return known.get(match.group(1)) if match else None


def asked_dtype(name: str, target: str) -> str | None:
    """The dtype that a function's name asks the platform for (`fp8_dtype`), None where it asks for none known."""
    if re.fullmatch(r"_*(?:get_)?(?:fp8|float8)(?:_e4m3)?_(?:d?type)", name.lower()) is None:
        return None
    return "torch.float8_e4m3fnuz" if str(device(target).arch) == "gfx942" else "torch.float8_e4m3fn"
