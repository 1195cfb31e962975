"""What a compiler made of a kernel, read from its assembly, machine code and TTGIR. No GPU is needed.

NVIDIA: PTX for instructions, the cubin for registers and sizes. AMD: the assembly text.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tt2gl.results import Metrics
from tt2gl.verify.amdgcn import amd_resources, count_amdgcn
from tt2gl.verify.ptx import count_ptx, cubin_resources
from tt2gl.verify.ttgir import read_ttgir


def read_metrics(asm: Mapping[str, Any], shared_bytes: int, files: Mapping[str, str] | None = None) -> Metrics:
    """The metrics of one compiled kernel: `asm` as Triton keeps it (ttgir, ptx and cubin, or amdgcn and hsaco).

    `shared_bytes` is the metadata's `shared`: what a launch asks for. `files` has the sources that places may be in, by
    the stems of the files that were compiled.
    """
    if "cubin" in asm:
        registers, spills = cubin_resources(asm["cubin"])
        code = code_size(asm["cubin"])
        counts = count_ptx(asm["ptx"], files)
    else:
        registers, spills = amd_resources(asm["amdgcn"])
        # LLVM's own count: the section ends in padding for the instruction prefetcher.
        said = re.search(r"; codeLenInByte = (\d+)", asm["amdgcn"])
        code = int(said[1]) if said else code_size(asm["hsaco"])
        counts = count_amdgcn(asm["amdgcn"], files)
    lowered = read_ttgir(asm["ttgir"], files)
    return Metrics(
        shared_bytes=shared_bytes,
        registers=registers,
        spills=spills,
        code_bytes=code,
        convert_layouts=lowered.conversions,
        global_loads=_by_width(counts.loads),
        global_stores=_by_width(counts.stores),
        shared_accesses=counts.shared_accesses,
        async_copies=counts.async_copies,
        mma=dict(sorted(counts.mma.items())),
        barriers=counts.barriers,
        copies=dict(sorted((counts.copies + lowered.bulk_copies).items())),
        step_mma=dict(sorted(counts.step_mma.items())),
        step_copies=dict(sorted((counts.step_copies + lowered.step_copies).items())),
        rings=lowered.rings,
        buffered=counts.buffered,
        unbuffered=counts.unbuffered,
        step_waits=counts.step_waits,
        step_loops=counts.step_loops,
        places={what: list(found) for what, found in sorted({**counts.places, **lowered.places}.items())},
    )


def _by_width(widths: Counter[int]) -> dict[str, int]:
    return {str(bits): widths[bits] for bits in sorted(widths, reverse=True)}


def code_size(binary: bytes) -> int:
    """Bytes of machine code in an ELF file (cubin or hsaco): its executable sections, padding included."""
    # ELF64 little endian: e_shoff at 40; e_shentsize and e_shnum at 58 and 60. Section: flags at 8, size at 32.
    (sections,) = struct.unpack_from("<Q", binary, 40)
    entry, count = struct.unpack_from("<HH", binary, 58)
    size = 0
    for index in range(count):
        start = sections + index * entry
        (flags,) = struct.unpack_from("<Q", binary, start + 8)
        if flags & 0x4:  # SHF_EXECINSTR
            size += int(struct.unpack_from("<Q", binary, start + 32)[0])
    return size
