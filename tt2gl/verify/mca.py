"""How long one step of a kernel's loops takes, as LLVM's machine-code analyser estimates it. AMD only, never measured.

`llvm-mca` plays a loop's instructions through the scheduling model of a chip. It knows nothing of memory's latency, of
other waves or of barriers, so its cycles say which of two loops has more work for one wave, and no more than that.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections import Counter, defaultdict

from tt2gl.verify.assembly import read_assembly

_ITERATIONS = 100
_PRODUCT = re.compile(r"^\s+(v_(?:mfma|smfmac|wmma|swmmac)_\S+)")
_LOAD = re.compile(r"^\s+(?:global|buffer|flat|cluster|tensor)_\w*load_")
_INSTRUCTION = re.compile(r"^\s+[a-z]\w*")
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)", re.MULTILINE)
# Instructions that only make waves wait for each other or for memory, of which the analyser has no model: it takes
# what they may at most last.
_WAITS = re.compile(r"^\s+s_(?:wait|barrier|sleep|nop|delay_alu)")
# Distributions name a tool after its version, newest last; the plain name may be an old one.
_NAMES = (*(f"llvm-mca-{version}" for version in range(30, 14, -1)), "llvm-mca")


def step_cycles(text: str, arch: str) -> float | None:
    """Estimated cycles of one turn of a kernel's innermost loops, summed: of those with matrix products, if there are.

    None without a loop, or where no analyser here knows the chip and all of its instructions.
    """
    tool = analyser(arch)
    loops = inner_loops(text)
    if tool is None or not loops:
        return None
    found = [_cycles(tool, arch, loop) for loop in loops]
    return None if None in found else sum(cycles for cycles in found if cycles is not None)


def inner_loops(text: str) -> list[str]:
    """The instructions of the innermost loops of AMD assembly: of those with matrix products, where some have them.

    Of these, a loop that only ends what another has begun is left out (`Assembly.steps`).
    """
    assembly = read_assembly(text, ";", {})
    loads = Counter(line.loop for line in assembly.lines if _LOAD.match(line.text))
    products: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in assembly.lines:
        if line.loop and (product := _PRODUCT.match(line.text)):
            products[line.loop][product[1]] += 1
    steps = assembly.steps(products, loads) if products else assembly.steps(assembly.parents, {})
    loops: dict[str, list[str]] = {loop: [] for loop in assembly.parents if loop in steps}
    for line in assembly.lines:
        if line.loop in loops and _INSTRUCTION.match(line.text) and not _WAITS.match(line.text):
            loops[line.loop].append(line.text)
    return ["\n".join(lines) + "\n" for lines in loops.values()]


@functools.cache
def analyser(arch: str) -> str | None:
    """The newest `llvm-mca` on this machine, where it knows a chip."""
    for name in _NAMES:
        if (tool := shutil.which(name)) is not None:
            known = _run([tool, "-mtriple=amdgcn", "-mcpu=help"], "")
            return tool if known is not None and re.search(rf"^\s*{re.escape(arch)}\b", known, re.MULTILINE) else None
    return None


def _cycles(tool: str, arch: str, loop: str) -> float | None:
    """Cycles of one turn of a loop, in the long run."""
    options = [f"-iterations={_ITERATIONS}", "-instruction-info=false", "-resource-pressure=false"]
    printed = _run([tool, "-mtriple=amdgcn", f"-mcpu={arch}", *options], loop)
    cycles = _CYCLES.search(printed or "")
    return None if cycles is None else int(cycles[1]) / _ITERATIONS


def _run(command: list[str], given: str) -> str | None:
    """What a command prints; None where it fails or says that it leaves something out."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None
