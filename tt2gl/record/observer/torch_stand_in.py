"""torch on a machine without a GPU, as if there were one: tensors asked for on the GPU are made in host memory.

Those tensors say that they are on `cuda:0`; so do all others in host memory, as what is computed from them cannot be
told apart. Kernels are skipped, so memory that only they would have written holds zeros, and comparisons of results
say yes: a test is to go on to its next launch.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from . import cuda_stand_in
from .gpu import Gpu

# Functions of torch that make a tensor where `device` says.
_FACTORIES = (
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "complex", "empty", "empty_like",
    "empty_permuted", "empty_strided", "eye", "from_file", "full", "full_like", "hamming_window", "hann_window",
    "kaiser_window", "linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor", "sparse_coo_tensor",
    "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
)  # fmt: skip
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
_UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


def install(gpu: Gpu) -> None:
    """Change torch in this process."""
    import torch

    for name in _FACTORIES:
        if hasattr(torch, name):
            setattr(torch, name, _in_host_memory(getattr(torch, name), zeroed=name in _UNWRITTEN))
    for name in _METHODS:
        setattr(torch.Tensor, name, _in_host_memory(getattr(torch.Tensor, name), zeroed=name in _UNWRITTEN))
    for name in _PRODUCTS:
        setattr(torch, name, _in_wider_type(getattr(torch, name)))
    _tensors(torch)
    _defaults(torch)
    _comparisons(torch)
    cuda_stand_in.install(torch, gpu)


def _tensors(torch: Any) -> None:
    """Where tensors say they are, and how they get there."""
    tensor = torch.Tensor
    placed, on_host = tensor.device, torch.device("cuda", 0)

    def device(self: Any) -> Any:
        real = placed.__get__(self)
        return on_host if real.type == "cpu" else real

    tensor.device = property(device)
    tensor.is_cuda = property(lambda self: device(self).type == "cuda")
    tensor.get_device = lambda self: 0 if device(self).type == "cuda" else -1
    tensor.to = _in_host_memory(tensor.to, positions=range(1, 3))
    tensor.cuda = lambda self, *_args, **_kwargs: self
    tensor.pin_memory = lambda self, *_args, **_kwargs: self
    tensor.is_pinned = lambda _self, *_args, **_kwargs: False
    tensor.record_stream = lambda _self, _stream: None
    module = torch.nn.Module
    module.cuda = lambda self, *_args, **_kwargs: self
    module.to_empty = _in_host_memory(module.to_empty)


def _defaults(torch: Any) -> None:
    """Other places where a device is named: the default one, generators, and automatic casts."""
    importlib.import_module("torch.utils._device")
    context = torch.utils._device.DeviceContext
    context.__init__ = _in_host_memory(context.__init__, positions=(1,))
    torch.set_default_device = _in_host_memory(torch.set_default_device, positions=(0,))

    class Generator(torch.Generator):
        """Random numbers are the host's."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, _host(device))

    torch.Generator = Generator
    autocast = torch.amp.autocast_mode.autocast
    plain = autocast.__init__

    @functools.wraps(plain)
    def on_host(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        plain(self, device_type, dtype, *args, **kwargs)

    autocast.__init__ = on_host


def _comparisons(torch: Any) -> None:
    """What was never computed is not compared."""
    importlib.import_module("torch.testing")
    torch.testing.assert_close = lambda *_args, **_kwargs: None
    torch.allclose = lambda *_args, **_kwargs: True


def _in_host_memory(function: Callable[..., Any], *, positions: Any = (), zeroed: bool = False) -> Callable[..., Any]:
    """A function whose `device`, by keyword or at one of the `positions`, is the host where it would be the GPU."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["device"] = _host(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if positions:
            args = tuple(_host(arg) if index in positions else arg for index, arg in enumerate(args))
        made = function(*args, **kwargs)
        return (
            made.detach().zero_().requires_grad_(made.requires_grad) if zeroed and made.device.type != "meta" else made
        )

    return wrapper


def _in_wider_type(product: Callable[..., Any]) -> Callable[..., Any]:
    """A matrix product that takes `out_dtype`, as those of GPUs do."""

    @functools.wraps(product)
    def wrapper(*args: Any, out_dtype: Any = None, **kwargs: Any) -> Any:
        wider = args if out_dtype is None else [arg.to(out_dtype) if hasattr(arg, "to") else arg for arg in args]
        return product(*wider, **kwargs)

    return wrapper


def _host(device: Any) -> Any:
    """`device`, or the host where that is a GPU; what is no device comes back as it is."""
    import torch

    if isinstance(device, torch.device):
        return torch.device("cpu") if device.type == "cuda" else device
    if isinstance(device, str):
        return "cpu" if device.partition(":")[0] == "cuda" else device
    return "cpu" if type(device) is int else device
