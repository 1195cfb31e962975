"""PTX counted: what ptxas receives, which neither widens nor narrows memory accesses; and a cubin's resources."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tt2gl.verify.assembly import AssemblyLine, read_assembly
from tt2gl.verify.counts import BULK_BITS, Counts

# An instruction with its operands, after a label, a predicate or the brace of inline assembly.
_INSTRUCTION = re.compile(r"(?:^|[;{}\t ])(?:@!?[%\w$]+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)+)([^;\n]*);", re.MULTILINE)
_TYPE = re.compile(r"[busf](\d+)")
_MATRIX_TYPE = re.compile(r"[busf]\d+|bf16|tf32|e\dm\d")
# Labels of LLVM's for debuggers (`$L__tmp3`) are no place that is jumped to.
_LABEL = re.compile(r"\s*(?!\$L__tmp)\$?\w+:(?!:)")
# What an asynchronous copy reads, and how much: the last address in brackets, and the bytes after it.
_COPIED = re.compile(r"\]\s*,\s*\[([^\]]*)\]\s*,\s*(0x[0-9a-fA-F]+|\d+)")


def count_ptx(ptx: str, files: Mapping[str, str] | None = None) -> Counts:
    """Instructions of a PTX module; `red` and `atom` are neither loads nor stores.

    `files` has the sources that places may be in, by stem.
    """
    assembly = read_assembly(ptx, "//", files or {})
    counts = Counts()
    # What threads have copied since the last label: until then, a register keeps its value.
    copied: set[tuple[str, str]] = set()
    for line in assembly.lines:
        if _LABEL.match(line.text):
            copied.clear()
        for name, operands in _INSTRUCTION.findall(line.text):
            _count(counts, name.split("."), operands, line, copied)
    return counts.end(assembly)


def _count(counts: Counts, parts: list[str], operands: str, line: AssemblyLine, copied: set[tuple[str, str]]) -> None:
    match parts[0]:
        case "ld" | "ldu" if "global" in parts:
            counts.load(_width(parts), line)
        case "st" if "global" in parts:
            counts.store(_width(parts), line)
        case "ld" | "st" if any(part.startswith("shared") for part in parts):
            counts.shared_accesses += 1
        case "ldmatrix" | "stmatrix":
            counts.shared_accesses += 1
        case "cp":
            _count_copy(counts, parts, operands, line, copied)
        case "bar" | "barrier" if "warp" not in parts and ("sync" in parts or "red" in parts):
            counts.barriers += 1
        case "mma" | "wmma" | "wgmma" | "tcgen05":
            short = _matrix_name(parts)
            if short is not None:
                counts.product(short, line)


def _width(parts: list[str]) -> int:
    count = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    kind = _TYPE.fullmatch(parts[-1])
    return count * (int(kind[1]) if kind else 32)


def _count_copy(
    counts: Counts, parts: list[str], operands: str, line: AssemblyLine, copied: set[tuple[str, str]]
) -> None:
    if "bulk" in parts:
        spaces = [part for part in parts if part.partition("::")[0] in ("shared", "global")]
        if "prefetch" in parts or len(spaces) < 2:
            return
        if spaces[0].startswith("shared"):
            counts.bulk_in(line)
        else:
            counts.copy_out(BULK_BITS, line)
    elif "global" in parts:
        found = _COPIED.search(operands)
        bits = 8 * int(found[2], 0) if found else BULK_BITS
        counts.copy_in("cp.async", bits, line, again=found is not None and found.groups() in copied)
        if found is not None:
            copied.add((found[1], found[2]))


def _matrix_name(parts: list[str]) -> str | None:
    """`wgmma.m64n128k16.f32.f16.f16` for the whole mnemonic; None for fences, waits and tensor memory traffic."""
    if parts[0] == "tcgen05":
        kind = next((part.partition("::")[2] for part in parts if part.startswith("kind::")), None)
        return f"tcgen05.mma.{kind}" if parts[1] == "mma" and kind else "tcgen05.mma" if parts[1] == "mma" else None
    shape = next((index for index, part in enumerate(parts) if re.fullmatch(r"m\d+n\d+k\d+", part)), None)
    if shape is None or (parts[0] == "wmma" and parts[1] != "mma"):
        return None
    types = [part for part in parts[shape + 1 :] if _MATRIX_TYPE.fullmatch(part)]
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
