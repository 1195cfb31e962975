"""Triton's driver for a GPU that is not there: it answers questions, and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gpu import Gpu

# What a kernel is told to take where its machine code would say: host code sizes persistent grids by it.
_REGISTERS = 64
_MAX_THREADS = 1024


def install(gpu: Gpu) -> None:
    """Make the stand-in Triton's driver, and have benchmarks call what they measure once."""
    import triton.testing
    from triton.runtime import driver

    stand_in = _Driver(gpu)
    driver.set_active(stand_in)
    # What `reset_active` goes back to; finding the real one would fail.
    driver._default = stand_in
    triton.testing.do_bench = _once
    triton.testing.do_bench_cudagraph = _once


def _once(
    call: Callable[[], Any], *_args: Any, quantiles: Any = None, return_mode: str = "mean", **_kwargs: Any
) -> Any:
    """A benchmark where every kernel takes a millisecond, so that the first of an autotuner's configs is the best."""
    call()
    if quantiles is None:
        return [1.0] if return_mode == "all" else 1.0
    return [1.0] * len(quantiles) if len(quantiles) > 1 else 1.0


class _Driver:
    """What `triton.runtime.driver.active` is asked for, of every Triton from 3.6 on."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.utils = _Utilities(gpu)
        self.launcher_cls = _Launcher

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self._gpu.backend, self._gpu.arch, self._gpu.warp_size)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: Any) -> None:
        return None

    def get_current_stream(self, _device: Any = None) -> int:
        return 0

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        return self._gpu.capability

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return _once

    def get_empty_cache_for_benchmark(self) -> Any:
        return None

    def clear_cache(self, _cache: Any) -> None:
        return None

    def assemble_tensormap_to_arg(self, _tensormaps: Any, args: Any) -> Any:
        return args


class _Utilities:
    """What host code asks of a device, and a compiled kernel of its machine code."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def get_device_properties(self, _device: Any = 0) -> dict[str, Any]:
        return {
            "max_shared_mem": self._gpu.shared_memory_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": self._gpu.multiprocessors,
            "warpSize": self._gpu.warp_size,
            "max_threads_per_sm": 2048,
            "sm_clock_rate": 1_800_000,
            "mem_clock_rate": 2_600_000,
            "mem_bus_width": 5120,
            "arch": str(self._gpu.arch),
        }

    def load_binary(self, *_args: Any) -> tuple[int, int, int, int, int]:
        """Handles of the module and of the function, registers, spills, and threads at most."""
        return 0, 0, _REGISTERS, 0, _MAX_THREADS

    def unload_module(self, *_args: Any) -> None:
        return None

    def set_printf_fifo_size(self, _size: int) -> None:
        return None

    def cuOccupancyMaxActiveClusters(self, *_args: Any) -> int:
        return self._gpu.multiprocessors


class _Launcher:
    """Launches nothing."""

    def __init__(self, *_args: Any) -> None:
        return None

    def __call__(self, *_args: Any) -> None:
        return None
