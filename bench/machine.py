"""What a benchmark ran on: the GPU and the versions of what drives it."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

from tt2gl.isolate import run_isolated

ROOT = Path(__file__).resolve().parents[1]


def gpu_present(commit: str | None) -> dict[str, str] | None:
    """The environment of a run on this machine's GPU; None, and told on stderr why, where it cannot be used."""
    # In a process of its own: a parent that has started CUDA cannot fork children that compile.
    found = run_isolated(environment, commit, timeout=120.0)
    if found.value is None:
        print(f"The GPU cannot be used: {found.error}", file=sys.stderr)
    return found.value


def environment(commit: str | None) -> dict[str, str]:
    """GPU, driver, torch, Triton, date and commit; raises where torch has no GPU."""
    import torch
    import triton

    if not torch.cuda.is_available():
        raise RuntimeError("torch finds no GPU; see `tt2gl doctor`")
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": ask("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "unknown",
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit or ask("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD") or "unknown",
    }


def ask(*command: str) -> str:
    """The first line of what a command prints; empty where it fails."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.strip().partition("\n")[0]
