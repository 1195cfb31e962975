"""What a compiler made of a kernel, read from its assembly and machine code; and what a port does worse.

NVIDIA: PTX for instructions (what ptxas receives; it neither widens nor narrows memory accesses), the cubin for
registers and sizes. AMD: the assembly text, which LLVM ends with the kernel's resources. No GPU is needed.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.results import Metrics

# A port may use this many times the registers of Triton's kernel before it is called worse.
REGISTER_TOLERANCE = 1.1

# A bulk copy (TMA, AMD's tensor data mover) moves whole lines: no load of one thread is wider than 16 bytes before
# Blackwell, so it counts as one of these.
_BULK_BITS = 128


def read_metrics(asm: Mapping[str, Any], shared_bytes: int) -> Metrics:
    """The metrics of one compiled kernel: `asm` as Triton keeps it (ttgir, ptx and cubin, or amdgcn and hsaco).

    `shared_bytes` is the metadata's `shared`: what a launch asks for.
    """
    if "cubin" in asm:
        registers, spills = cubin_resources(asm["cubin"])
        code = code_size(asm["cubin"])
        counts = count_ptx(asm["ptx"])
    else:
        registers, spills = amd_resources(asm["amdgcn"])
        # LLVM's own count: the section ends in padding for the instruction prefetcher.
        said = re.search(r"; codeLenInByte = (\d+)", asm["amdgcn"])
        code = int(said[1]) if said else code_size(asm["hsaco"])
        counts = count_amdgcn(asm["amdgcn"])
    return Metrics(
        shared_bytes=shared_bytes,
        registers=registers,
        spills=spills,
        code_bytes=code,
        convert_layouts=count_conversions(asm["ttgir"]),
        global_loads=_by_width(counts.loads),
        global_stores=_by_width(counts.stores),
        shared_accesses=counts.shared_accesses,
        async_copies=counts.async_copies,
        mma=dict(sorted(counts.mma.items())),
        barriers=counts.barriers,
    )


def count_conversions(ttgir: str) -> int:
    """Layout conversions that can move data: one between equal layouts compiles to nothing and does not count."""
    types = re.findall(r"ttg\.convert_layout [^:\n]*: (tensor<.*?>) -> (tensor<.*?>)(?: loc\(|$)", ttgir, re.MULTILINE)
    return sum(before != after for before, after in types)


class Counts:
    """Instructions of one kernel, counted; loads and stores of global memory by width in bits.

    An asynchronous copy from global memory is a load too, of the bits that one thread copies.
    """

    def __init__(self) -> None:
        self.loads: Counter[int] = Counter()
        self.stores: Counter[int] = Counter()
        self.mma: Counter[str] = Counter()
        self.shared_accesses = 0
        self.async_copies = 0
        self.barriers = 0

    def copy_in(self, bits: int) -> None:
        """An asynchronous copy from global to shared memory."""
        self.async_copies += 1
        self.loads[bits] += 1

    def copy_out(self, bits: int) -> None:
        """An asynchronous copy from shared to global memory."""
        self.async_copies += 1
        self.stores[bits] += 1


def _by_width(widths: Counter[int]) -> dict[str, int]:
    return {str(bits): widths[bits] for bits in sorted(widths, reverse=True)}


# -------------------------------------------------------------------------------------------------------- NVIDIA

# An instruction with its operands, after a label, a predicate or the brace of inline assembly.
_PTX_INSTRUCTION = re.compile(r"(?:^|[;{}\t ])(?:@!?[%\w$]+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)+)([^;\n]*);", re.MULTILINE)
_PTX_TYPE = re.compile(r"[busf](\d+)")
_PTX_MATRIX_TYPE = re.compile(r"[busf]\d+|bf16|tf32|e\dm\d")


def count_ptx(ptx: str) -> Counts:
    """Instructions of a PTX module; `red` and `atom` are neither loads nor stores."""
    counts = Counts()
    for name, operands in _ptx_instructions(ptx):
        parts = name.split(".")
        match parts[0]:
            case "ld" | "ldu" if "global" in parts:
                counts.loads[_ptx_width(parts)] += 1
            case "st" if "global" in parts:
                counts.stores[_ptx_width(parts)] += 1
            case "ld" | "st" if any(part.startswith("shared") for part in parts):
                counts.shared_accesses += 1
            case "ldmatrix" | "stmatrix":
                counts.shared_accesses += 1
            case "cp":
                _count_ptx_copy(counts, parts, operands)
            case "bar" | "barrier" if "warp" not in parts and ("sync" in parts or "red" in parts):
                counts.barriers += 1
            case "mma" | "wmma" | "wgmma" | "tcgen05":
                short = _ptx_matrix_name(parts)
                if short is not None:
                    counts.mma[short] += 1
    return counts


def _ptx_instructions(ptx: str) -> Iterator[tuple[str, str]]:
    for match in _PTX_INSTRUCTION.finditer(re.sub(r"//[^\n]*", "", ptx)):
        yield match[1], match[2]


def _ptx_width(parts: list[str]) -> int:
    count = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    kind = _PTX_TYPE.fullmatch(parts[-1])
    return count * (int(kind[1]) if kind else 32)


def _count_ptx_copy(counts: Counts, parts: list[str], operands: str) -> None:
    if "bulk" in parts:
        spaces = [part for part in parts if part.partition("::")[0] in ("shared", "global")]
        if "prefetch" in parts or len(spaces) < 2:
            return
        if spaces[0].startswith("shared"):
            counts.copy_in(_BULK_BITS)
        else:
            counts.copy_out(_BULK_BITS)
    elif "global" in parts:
        size = re.search(r"\]\s*,\s*\[[^\]]*\]\s*,\s*(0x[0-9a-fA-F]+|\d+)", operands)
        counts.copy_in(8 * int(size[1], 0) if size else _BULK_BITS)


def _ptx_matrix_name(parts: list[str]) -> str | None:
    """`wgmma.m64n128k16.f32.f16.f16` for the whole mnemonic; None for fences, waits and tensor memory traffic."""
    if parts[0] == "tcgen05":
        kind = next((part.partition("::")[2] for part in parts if part.startswith("kind::")), None)
        return f"tcgen05.mma.{kind}" if parts[1] == "mma" and kind else "tcgen05.mma" if parts[1] == "mma" else None
    shape = next((index for index, part in enumerate(parts) if re.fullmatch(r"m\d+n\d+k\d+", part)), None)
    if shape is None or (parts[0] == "wmma" and parts[1] != "mma"):
        return None
    types = [part for part in parts[shape + 1 :] if _PTX_MATRIX_TYPE.fullmatch(part)]
    return ".".join([parts[0], parts[shape], *types])


def cubin_resources(cubin: bytes) -> tuple[int | None, int | None]:
    """Registers a thread, and 4-byte words of local memory a thread (Triton's `n_spills`), of a cubin.

    ptxas puts spilled registers on the stack, and a Triton kernel has nothing else there but the arguments of
    `device_print` and asserts.
    """
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return parse_resource_usage(done.stdout)


def parse_resource_usage(text: str) -> tuple[int | None, int | None]:
    """What `cuobjdump -res-usage` says of the largest function: registers, and local words."""
    usages = [dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", line)) for line in text.splitlines() if "REG:" in line]
    if not usages:
        return None, None
    registers = max(int(usage["REG"]) for usage in usages)
    local = max(int(usage.get("STACK", 0)) + int(usage.get("LOCAL", 0)) for usage in usages)
    return registers, local // 4


# ----------------------------------------------------------------------------------------------------------- AMD

_AMD_INSTRUCTION = re.compile(r"^\s+([a-z]\w*)([^\n;]*)", re.MULTILINE)
_AMD_WIDTHS = {
    "ubyte": 8, "sbyte": 8, "byte": 8, "u8": 8, "i8": 8, "b8": 8,
    "ushort": 16, "sshort": 16, "short": 16, "u16": 16, "i16": 16, "b16": 16,
    "dword": 32, "b32": 32, "dwordx2": 64, "b64": 64, "dwordx3": 96, "b96": 96, "dwordx4": 128, "b128": 128,
}  # fmt: skip
_AMD_WIDTH = re.compile(rf"_({'|'.join(sorted(_AMD_WIDTHS, key=len, reverse=True))})(?=_|$)")


def count_amdgcn(text: str) -> Counts:
    """Instructions of AMD assembly; scalar loads (kernel arguments) and scratch (spills) are not global accesses."""
    counts = Counts()
    for match in _AMD_INSTRUCTION.finditer(text):
        name, operands = match[1], match[2]
        family = name.partition("_")[0]
        if family in ("global", "buffer", "flat", "cluster"):
            _count_amd_access(counts, name, operands)
        elif name.startswith("tensor_load_to_lds"):
            counts.copy_in(_BULK_BITS)
        elif name.startswith("tensor_store_from_lds"):
            counts.copy_out(_BULK_BITS)
        elif name.startswith(("ds_read", "ds_write", "ds_load", "ds_store")):
            counts.shared_accesses += 1
        elif name in ("s_barrier", "s_barrier_signal"):
            counts.barriers += 1
        elif name.startswith(("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")):
            counts.mma[name] += 1
    return counts


def _count_amd_access(counts: Counts, name: str, operands: str) -> None:
    width = _AMD_WIDTH.search(name)
    if width is None:
        return
    bits = _AMD_WIDTHS[width[1]]
    if "_load_" in name:
        if "_lds" in name or re.search(r"\blds\b", operands):
            counts.copy_in(bits)
        else:
            counts.loads[bits] += 1
    elif "_store_" in name:
        if "_lds" in name:
            counts.copy_out(bits)
        else:
            counts.stores[bits] += 1


def amd_resources(text: str) -> tuple[int | None, int | None]:
    """Vector registers a lane and vector registers spilled, from the metadata at the end of AMD assembly.

    `.vgpr_count` includes the accumulation registers where the two share one file (CDNA2 and later).
    """
    numbers: dict[str, int | None] = {}
    for key in ("vgpr_count", "vgpr_spill_count"):
        found = [int(number) for number in re.findall(rf"^\s+\.{key}:\s+(\d+)", text, re.MULTILINE)]
        numbers[key] = max(found, default=None)
    return numbers["vgpr_count"], numbers["vgpr_spill_count"]


# ---------------------------------------------------------------------------------------------------------- both


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


def compare(triton: Metrics, gluon: Metrics, *, file: str = "", line: int = 0) -> tuple[Diagnostic, ...]:
    """What the port lowers worse than Triton's own compiler did: TTG501 to TTG504, warnings at `file`:`line`."""
    return tuple(
        Diagnostic(code, Severity.WARNING, file, line, 0, message, hint)
        for code, find, hint in _RULES
        for message in find(triton, gluon)
    )


def widest(accesses: Mapping[str, int]) -> int:
    """The widest access of a table by width, in bits; 0 where there is none."""
    return max((int(bits) for bits, count in accesses.items() if count), default=0)


def _narrower(triton: Metrics, gluon: Metrics) -> Iterator[str]:
    pairs = (
        ("load", triton.global_loads, gluon.global_loads),
        ("store", triton.global_stores, gluon.global_stores),
    )
    for kind, before, after in pairs:
        if after and widest(after) < widest(before):
            yield (
                f"The widest global {kind} is {widest(after)} bits where Triton's is {widest(before)} bits "
                f"({_table(after)} against {_table(before)})."
            )


def _table(accesses: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {bits}" for bits, count in accesses.items())


def _spills(triton: Metrics, gluon: Metrics) -> Iterator[str]:
    if triton.spills is not None and gluon.spills is not None and gluon.spills > triton.spills:
        yield f"{gluon.spills} registers a thread spill to memory where Triton's kernel spills {triton.spills}."


def _conversions(triton: Metrics, gluon: Metrics) -> Iterator[str]:
    if gluon.convert_layouts > triton.convert_layouts:
        yield f"{gluon.convert_layouts} layout conversions remain where Triton's kernel has {triton.convert_layouts}."


def _registers(triton: Metrics, gluon: Metrics) -> Iterator[str]:
    if triton.registers and gluon.registers and gluon.registers > REGISTER_TOLERANCE * triton.registers:
        yield f"{gluon.registers} registers a thread where Triton's kernel takes {triton.registers}."


_RULES: tuple[tuple[str, Callable[[Metrics, Metrics], Iterator[str]], str], ...] = (
    (
        "TTG501",
        _narrower,
        "Give the access a layout with more contiguous elements a thread, and check the pointer's divisibility hints.",
    ),
    ("TTG502", _spills, "Use more warps, smaller blocks, or fewer values alive across the loop."),
    ("TTG503", _conversions, "Let values that meet share one layout, or compute index arithmetic once in each layout."),
    ("TTG504", _registers, "Fewer registers let more blocks run at once: compare the layouts and what stays alive."),
)
