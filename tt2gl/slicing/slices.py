"""A slice as a value, and how it is loaded."""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tt2gl.diagnostics import Diagnostic


@dataclass(frozen=True)
class SlicedModule:
    """One private module of a slice; `path` is the author's file, of which `text` keeps lines and columns."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Slice:
    """A kernel with all that it reaches. The entry module is the first; `functions` names every jit function kept.

    `aligned`: the kernel's flags that say of arguments, by name, that they are multiples of 16. `loaded`: of one
    converted, whose tiles AMD's data mover copies, the descriptors from the host that are only loaded through.
    """

    kernel: str
    modules: tuple[SlicedModule, ...]
    functions: tuple[tuple[str, str], ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    aligned: tuple[tuple[str, tuple[str, ...]], ...] = ()
    loaded: tuple[str, ...] | None = None


def passed_name(reference: str) -> str:
    """The name beside a kernel that a slice binds a function to that launches pass, `package.module:name`."""
    return "_tt2gl_passed_" + re.sub(r"\W", "_", reference)


def load_slice(sliced: Slice, directory: Path) -> Any:
    """Import a slice, in a child process only, and return the jit function that it was made for.

    The modules are written to `directory` as real files, since Triton reads a function's source from its file.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for module in sliced.modules:
        file = directory / f"{module.name}.py"
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.write(module.text)
        linecache.checkcache(str(file))
        # One child may load a slice again, or another of the same name.
        sys.modules.pop(module.name, None)
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    entry = importlib.import_module(sliced.modules[0].name)
    function = getattr(entry, sliced.kernel)
    # Decorators that look at a launch's arguments are left out of slices; the compiler is told what these gave.
    function.aligned = sliced.aligned
    function.loaded = sliced.loaded
    return function


def names_of(sliced: Slice) -> Mapping[str, Path]:
    """Private module name -> the author's file, to translate locations back."""
    return {module.name: module.path for module in sliced.modules}
