"""`torch.cuda` of a GPU that is not there: questions are answered, streams and events do nothing."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from .gpu import Gpu


def install(torch: Any, gpu: Gpu) -> None:
    """Make `torch.cuda` answer as if `gpu` were there, once."""
    answers = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": gpu.name,
        "get_device_capability": gpu.capability,
        "get_device_properties": _properties(gpu),
        "get_arch_list": [f"sm_{gpu.arch}" if isinstance(gpu.arch, int) else gpu.arch],
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "mem_get_info": (gpu.memory_bytes, gpu.memory_bytes),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "current_stream": _Stream(),
        "default_stream": _Stream(),
    }
    silent = (
        "init", "_lazy_init", "set_device", "synchronize", "empty_cache", "ipc_collect", "set_stream",
        "reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed", "manual_seed_all", "seed", "seed_all",
        "set_per_process_memory_fraction",
    )  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, _answering(answer))
    for name in silent:
        setattr(torch.cuda, name, _answering(None))
    torch.cuda.memory_stats = lambda *_args, **_kwargs: {}
    torch.cuda.Stream, torch.cuda.Event = _Stream, _Event
    torch.cuda.ExternalStream = _Stream
    torch.cuda.device = torch.cuda.device_of = torch.cuda.stream = torch.cuda.StreamContext = _Context
    torch.cuda.CUDAGraph, torch.cuda.graph = _Graph, _Context
    torch.cuda.get_rng_state = lambda *_args: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda state, *_args: torch.set_rng_state(state)
    torch.cuda.nvtx = types.SimpleNamespace(
        range=_range, range_push=_answering(0), range_pop=_answering(0), mark=_answering(None)
    )
    torch._C._cuda_getCurrentRawStream = _answering(0)
    if gpu.backend == "hip":
        torch.version.hip = torch.version.hip or "7.0"
    else:
        torch.version.cuda = torch.version.cuda or "12.8"
    if hasattr(torch, "accelerator"):
        _accelerator(torch)


def _accelerator(torch: Any) -> None:
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_accelerator": torch.device("cuda"),
        "current_device_index": 0,
        "current_device_idx": 0,
        "synchronize": None,
        "set_device_index": None,
        "set_device_idx": None,
        "current_stream": _Stream(),
        "set_stream": None,
        "empty_cache": None,
    }
    for name, answer in answers.items():
        setattr(torch.accelerator, name, _answering(answer))


def _answering(answer: Any) -> Any:
    return lambda *_args, **_kwargs: answer


def _properties(gpu: Gpu) -> types.SimpleNamespace:
    major, minor = gpu.capability
    return types.SimpleNamespace(
        name=gpu.name,
        major=major,
        minor=minor,
        total_memory=gpu.memory_bytes,
        multi_processor_count=gpu.multiprocessors,
        warp_size=gpu.warp_size,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=gpu.shared_memory_bytes,
        shared_memory_per_multiprocessor=gpu.shared_memory_bytes + 1024,
        L2_cache_size=50 * 1024 * 1024,
        gcnArchName=str(gpu.arch),
        is_integrated=0,
        is_multi_gpu_board=0,
    )


@contextlib.contextmanager
def _range(*_args: Any, **_kwargs: Any) -> Iterator[None]:
    yield


class _Context:
    """A device, a stream or a graph made current: `with` and nothing more."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.idx = 0

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_args: Any) -> None:
        return None


class _Stream(_Context):
    """A stream whose work is always done."""

    device_index = 0
    cuda_stream = 0

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def wait_event(self, _event: Any) -> None:
        return None

    def wait_stream(self, _stream: Any) -> None:
        return None

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()


class _Event(_Context):
    """An event that has happened; a millisecond lies between any two."""

    def record(self, _stream: Any = None) -> None:
        return None

    def wait(self, _stream: Any = None) -> None:
        return None

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    def elapsed_time(self, _other: Any) -> float:
        return 1.0


class _Graph(_Context):
    """What is captured has been seen already."""

    def capture_begin(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def capture_end(self) -> None:
        return None

    def replay(self) -> None:
        return None

    def reset(self) -> None:
        return None
