"""Ports to make reports of, as `port` would give them."""

from __future__ import annotations

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.page.contents import FileSides
from tt2gl.results import CompileResult, DeviceResult, KernelReport, Metrics, NamedLayout, SimulateResult

HOSTILE = '</pre><script>alert("&amp;")</script>'
ORIGINAL = f"""import triton


@triton.jit
def add_kernel(x_ptr, n):
    # {HOSTILE}
    mask = n < 4 & 3


@triton.jit
def sort_kernel(x_ptr):
    x = tl.sort(x_ptr)
    y = x
"""
PORT = f"""import triton
from triton.experimental import gluon


@gluon.jit
def add_kernel(x_ptr, n):
    # {HOSTILE}
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [2, 1], [1, 0])
    mask = n < 4 & 3


@triton.jit
def sort_kernel(x_ptr):
    x = tl.sort(x_ptr)
    y = x
"""
BLOCKED = NamedLayout(
    "add_kernel",
    "layout",
    8,
    "threads",
    "BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[4, 8], warps_per_cta=[2, 1], order=[1, 0])",
    (16, 32),
    16,
    {
        "reg": ((0, 1), (0, 2), (8, 0)),
        "lane": ((0, 4), (0, 8), (0, 16), (1, 0), (2, 0)),
        "warp": ((4, 0),),
        "block": (),
    },
)
SWIZZLED = NamedLayout(
    "add_kernel",
    "a_shared",
    9,
    "shared",
    "SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])",
    (8, 64),
    16,
    {"offset": ((0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32), (1, 8), (2, 16), (4, 32)), "block": ()},
)


def told(code: str, severity: Severity = Severity.WARNING, message: str = "A <cause> & more.") -> Diagnostic:
    return Diagnostic(code, severity, "ops/k.py", 12, 8, message, "Do `this` | that.")


def sides(target: str = "sm90", name: str = "ops/k.py", *, ran: bool = True) -> FileSides:
    """A file with a kernel that was converted, and one that was not."""
    triton = CompileResult(True, Metrics(16, 20, 0, 100, 0, {"128": 2}))
    gluon = CompileResult(True, Metrics(16, 22, 0, 100, 0, {"128": 2}))
    device = DeviceResult("GPU", True, True, 0.0, 1.0, 0.8) if ran else None
    equal = SimulateResult(True, True, 0.0)
    kernels = (
        KernelReport(name, "add_kernel", target, 0, "converted", (), (), triton, gluon, equal, device),
        KernelReport(name, "add_kernel", target, 1, "converted", (), (told("TTG504"),), triton, gluon, equal, device),
        KernelReport(name, "sort_kernel", target, 0, "kept", (), (told("TTG301"), told("TTG210", Severity.NOTE))),
    )
    return FileSides(name, f"out/{name}", target, ORIGINAL, PORT, kernels, (), (BLOCKED, SWIZZLED))
