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
# LLVM 19's analyser breaks down over buffer operations: global ones, which its models give as long, stand for them.
_BUFFER_LOAD = re.compile(r"\bbuffer_(load_\w+) (\S+), (v\d+), s\[(\d+):\d+\], .*")
_BUFFER_STORE = re.compile(r"\bbuffer_(store_\w+) (\S+), (v\d+), s\[(\d+):\d+\], .*")
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
            loops[line.loop].append(_without_buffers(line.text))
    return ["\n".join(lines) + "\n" for lines in loops.values()]


def _without_buffers(line: str) -> str:
    """An instruction, or for one of a buffer that of global memory."""
    line = _BUFFER_LOAD.sub(lambda at: f"global_{at[1]} {at[2]}, {at[3]}, {_base(at[4])}", line)
    return _BUFFER_STORE.sub(lambda at: f"global_{at[1]} {at[3]}, {at[2]}, {_base(at[4])}", line)


def _base(first: str) -> str:
    return f"s[{first}:{int(first) + 1}]"


@functools.cache
def analyser(arch: str) -> str | None:
    """The newest `llvm-mca` on this machine, where it knows a chip."""
    for name in _NAMES:
        if (tool := shutil.which(name)) is not None:
            # Some versions print the list and then fail, as they were given no instructions.
            _, known = _run([tool, "-mtriple=amdgcn", "-mcpu=help"], "")
            return tool if re.search(rf"^\s*{re.escape(arch)}\b", known, re.MULTILINE) else None
    return None


def _cycles(tool: str, arch: str, loop: str) -> float | None:
    """Cycles of one turn of a loop, in the long run."""
    options = [f"-iterations={_ITERATIONS}", "-instruction-info=false", "-resource-pressure=false"]
    works, printed = _run([tool, "-mtriple=amdgcn", f"-mcpu={arch}", *options], loop)
    cycles = _CYCLES.search(printed) if works else None
    return None if cycles is None else int(cycles[1]) / _ITERATIONS


def _run(command: list[str], given: str) -> tuple[bool, str]:
    """Whether a command works, and what it prints."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False, ""
    return done.returncode == 0, done.stdout + done.stderr
