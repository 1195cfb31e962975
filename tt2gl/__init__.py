"""tt2gl: lift Triton kernels into explicit Gluon.

The library is what the command line calls: `convert`, `verify`, `port` and `record`, the launches they take and the
values they return. Names load on first use, so that `import tt2gl` imports neither Triton nor LibCST.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tt2gl.convert import convert
    from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
    from tt2gl.launch_file import read_launches
    from tt2gl.launches import Launch
    from tt2gl.port.api import Port, PortedFile, port
    from tt2gl.port.jobs import Settings
    from tt2gl.record.api import Recording, record
    from tt2gl.results import CompileResult, Conversion, DeviceResult, KernelReport, Metrics
    from tt2gl.verify.api import verify

__version__ = "0.1.0"

__all__ = [
    "CompileResult",
    "Conversion",
    "DeviceResult",
    "Diagnostic",
    "DiagnosticError",
    "ExitCode",
    "KernelReport",
    "Launch",
    "Metrics",
    "Port",
    "PortedFile",
    "Recording",
    "Settings",
    "Severity",
    "convert",
    "port",
    "read_launches",
    "record",
    "verify",
]

_HOMES = {
    **dict.fromkeys(("Diagnostic", "DiagnosticError", "ExitCode", "Severity"), "tt2gl.diagnostics"),
    **dict.fromkeys(("CompileResult", "Conversion", "DeviceResult", "KernelReport", "Metrics"), "tt2gl.results"),
    **dict.fromkeys(("Port", "PortedFile"), "tt2gl.port.api"),
    "Launch": "tt2gl.launches",
    "Recording": "tt2gl.record.api",
    "Settings": "tt2gl.port.jobs",
    "read_launches": "tt2gl.launch_file",
}
# Modules that share the name of the function they are there for, and where that function is.
_FUNCTIONS = {
    "convert": "tt2gl.convert",
    "port": "tt2gl.port.api",
    "record": "tt2gl.record.api",
    "verify": "tt2gl.verify.api",
}


class _FunctionModule(ModuleType):
    """A module that calls its function, so that `tt2gl.convert(...)` and `tt2gl.convert.Name` both work."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)(*args, **kwargs)


class _Package(ModuleType):
    """Makes the modules of `_FUNCTIONS` callable as the import system binds them here, whoever imports them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value.__class__ = _FunctionModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return importlib.import_module(f"tt2gl.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
