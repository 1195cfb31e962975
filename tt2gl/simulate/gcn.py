"""AMD's assembly in terms of PTX, instruction by instruction, for the few that kernels write inline."""

from __future__ import annotations

import re

_INSTRUCTIONS = {
    "s_memrealtime": "mov.u64",
    "s_sendmsg_rtn_b64": "mov.u64",
    "s_getreg_b32": "mov.u32",
    "v_add_f32": "add.f32",
    "v_add_u32": "add.u32",
    "v_and_b32": "and.b32",
    "v_bfrev_b32": "brev.b32",
    "v_exp_f32": "ex2.approx.f32",
    "v_fma_f32": "fma.rn.f32",
    "v_log_f32": "lg2.approx.f32",
    "v_max_f32": "max.f32",
    "v_min_f32": "min.f32",
    "v_mov_b32": "mov.b32",
    "v_mul_f32": "mul.f32",
    "v_mul_lo_u32": "mul.lo.u32",
    "v_not_b32": "not.b32",
    "v_or_b32": "or.b32",
    "v_rcp_f32": "rcp.approx.f32",
    "v_rsq_f32": "rsqrt.approx.f32",
    "v_sqrt_f32": "sqrt.approx.f32",
    "v_sub_f32": "sub.f32",
    "v_sub_u32": "sub.u32",
    "v_xor_b32": "xor.b32",
}

# Where the time, and the number of the processor, come from.
_SOURCES = {
    "s_memrealtime": "%globaltimer",
    "s_sendmsg_rtn_b64": "%globaltimer",
    "s_getreg_b32": "%smid",
}

_WAIT = re.compile(r"s_(?:waitcnt|wait_\w+|nop)\b.*")
_LINE = re.compile(r"(?P<name>[sv]_\w+?)(?:_e32|_e64)?\s+(?P<operands>.+)")


def as_ptx(text: str) -> str | None:
    """The same as PTX; None where the text is not AMD's. A line that is not known is left for PTX to reject."""
    lines = [line.strip() for line in re.split(r"[\n;]", text) if line.strip()]
    if not lines or not all(re.match(r"[sv]_", line) for line in lines):
        return None
    return "\n".join(_translated(line) for line in lines if not _WAIT.fullmatch(line))


def _translated(line: str) -> str:
    match = _LINE.fullmatch(line)
    if match is None or match["name"] not in _INSTRUCTIONS:
        return f"{line};"
    operands = match["operands"]
    if match["name"] in _SOURCES:
        operands = f"{operands.split(',')[0]}, {_SOURCES[match['name']]}"
    return f"{_INSTRUCTIONS[match['name']]} {operands};"
