"""AMD's assembly counted, which LLVM ends with the kernel's resources."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tt2gl.verify.assembly import AssemblyLine, read_assembly
from tt2gl.verify.counts import BULK_BITS, Counts

_INSTRUCTION = re.compile(r"^\s+([a-z]\w*)(.*)")
_WIDTHS = {
    "ubyte": 8, "sbyte": 8, "byte": 8, "u8": 8, "i8": 8, "b8": 8,
    "ushort": 16, "sshort": 16, "short": 16, "u16": 16, "i16": 16, "b16": 16,
    "dword": 32, "b32": 32, "dwordx2": 64, "b64": 64, "dwordx3": 96, "b96": 96, "dwordx4": 128, "b128": 128,
}  # fmt: skip
_WIDTH = re.compile(rf"_({'|'.join(sorted(_WIDTHS, key=len, reverse=True))})(?=_|$)")

_ACCESS = re.compile(r"_(?:load|store|atomic)_")
# What waits until a counter of accesses under way is low enough; `s_wait_alu` and `depctr` are of hazards.
_WAIT = re.compile(r"s_waitcnt(?!_depctr)|s_wait_\w+cnt")


def count_amdgcn(text: str, files: Mapping[str, str] | None = None) -> Counts:
    """Instructions of AMD assembly; scalar loads (kernel arguments) and scratch (spills) are not global accesses.

    `files` has the sources that places may be in, by stem.
    """
    assembly = read_assembly(text, ";", files or {})
    counts = Counts()
    for line in assembly.lines:
        found = _INSTRUCTION.match(line.text)
        if found is not None:
            _count(counts, found[1], found[2], line)
    return counts.end(assembly)


def _count(counts: Counts, name: str, operands: str, line: AssemblyLine) -> None:
    family = name.partition("_")[0]
    if family in ("global", "buffer", "flat", "cluster"):
        if _ACCESS.search(name):
            counts.buffered += family == "buffer"
            counts.unbuffered += family != "buffer"
        _count_access(counts, name, operands, line)
    elif name.startswith("tensor_load_to_lds"):
        counts.bulk_in(line)
    elif name.startswith("tensor_store_from_lds"):
        counts.copy_out(BULK_BITS, line)
    elif name.startswith(("ds_read", "ds_write", "ds_load", "ds_store")):
        counts.shared_accesses += 1
    elif name in ("s_barrier", "s_barrier_signal"):
        counts.barriers += 1
    elif _WAIT.match(name):
        counts.wait(line)
    elif name.startswith(("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")):
        counts.product(name, line)


def _count_access(counts: Counts, name: str, operands: str, line: AssemblyLine) -> None:
    width = _WIDTH.search(name)
    if width is None:
        return
    bits = _WIDTHS[width[1]]
    if "_load_" in name:
        if "_lds" in name or re.search(r"\blds\b", operands):
            counts.copy_in("lds", bits, line)
        else:
            counts.load(bits, line)
    elif "_store_" in name:
        if "_lds" in name:
            counts.copy_out(bits, line)
        else:
            counts.store(bits, line)


def amd_resources(text: str) -> tuple[int | None, int | None]:
    """Vector registers a lane and vector registers spilled, from the metadata at the end of AMD assembly.

    `.vgpr_count` includes the accumulation registers where the two share one file (CDNA2 and later).
    """
    numbers: dict[str, int | None] = {}
    for key in ("vgpr_count", "vgpr_spill_count"):
        found = [int(number) for number in re.findall(rf"^\s+\.{key}:\s+(\d+)", text, re.MULTILINE)]
        numbers[key] = max(found, default=None)
    return numbers["vgpr_count"], numbers["vgpr_spill_count"]
