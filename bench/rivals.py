"""What libraries offer for the work of corpus kernels: calls that are timed beside Triton's kernel and its port.

A kernel's maker looks at the arguments of a launch and returns the calls that do the same work: none where a library
has no such product. Where a library needs several calls for what the kernel does in one, all of them count, and the
name says so; where it has no smaller unit than several kernels of ours (the backward pass of attention), too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tt2gl.launches import Launch
from tt2gl.verify.tensors import DeviceInputs

# A launch's arguments by parameter: torch's tensors, scalars, constexprs.
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Rival:
    """A library's call, which returns what the kernel would write to the parameters `outputs`, in their order."""

    library: str
    outputs: tuple[str, ...]
    run: Callable[[], tuple[Any, ...]]


Maker = Callable[[Arguments], list[Rival]]


def calls_of(launch: Launch, inputs: DeviceInputs) -> dict[str, Callable[[], object]]:
    """The calls to time for a launch on these inputs, by library."""
    return {rival.library: rival.run for rival in rivals_of(launch, inputs)}


def rivals_of(launch: Launch, inputs: DeviceInputs) -> list[Rival]:
    """What libraries offer for a launch, on these inputs."""
    make = MAKERS.get(launch.kernel)
    views = {name: buffer.view for name, buffer in inputs.buffers.items()}
    return make({**launch.constexprs, **inputs.scalars, **views}) if make else []


# ------------------------------------------------------------------------------------------------------- products


def product(left: str, right: str, out: str, *, transposed: bool = False, alpha: str | None = None) -> Maker:
    """The product `alpha` * `left` @ `right` (or its transpose) of two matrices, or of as many pairs as there are."""

    def make(arguments: Arguments) -> list[Rival]:
        import torch

        a, b, c = arguments[left], arguments[right], arguments[out]
        b = b.mT if transposed else b
        scale = arguments[alpha] if alpha else 1
        if a.dtype != c.dtype:
            # A wider result is asked of cuBLAS by name; torch has that for the GPU alone.
            if not (c.is_cuda and c.dtype == torch.float32 and scale == 1 and a.ndim == 2):
                return []
            return [Rival("cuBLAS", (out,), lambda: (torch.mm(a, b, out_dtype=c.dtype),))]
        if scale != 1:
            return [Rival("cuBLAS", (out,), lambda: (torch.addmm(c, a, b, beta=0, alpha=scale, out=c),))]
        multiply = torch.mm if a.ndim == 2 else torch.bmm
        return [Rival("cuBLAS", (out,), lambda: (multiply(a, b, out=c),))]

    return make


def float32_product(arguments: Arguments) -> list[Rival]:
    """As precise as the kernel: tf32 for tf32, whole floats for whole floats."""
    import torch

    precision = arguments["PRECISION"]
    if precision not in ("tf32", "ieee"):
        return []
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    return product("a_ptr", "b_ptr", "c_ptr")(arguments)


def float8_product(arguments: Arguments) -> list[Rival]:
    """One scale a tensor. There is no product of two float8_e5m2 in cuBLAS, which wants extents of whole 16 bytes."""
    import torch

    a, b, c = (arguments[name] for name in ("a_ptr", "b_ptr", "c_ptr"))
    a_scale, b_scale = arguments["a_scale_ptr"], arguments["b_scale_ptr"]
    if torch.float8_e5m2 in (a.dtype, b.dtype) or any(extent % 16 for extent in (*a.shape[1:], *b.shape)):
        return []
    # Where the kernel does not ask for precise sums, cuBLAS need not either.
    fast = arguments["MAX_IMPRECISE"] is None

    def run() -> tuple[Any, ...]:
        return (torch._scaled_mm(a, b.T, a_scale, b_scale, out_dtype=c.dtype, use_fast_accum=fast),)

    return [Rival("cuBLAS", ("c_ptr",), run)]


def linear(arguments: Arguments) -> list[Rival]:
    """A linear layer with what follows: its bias is added by cuBLAS, activation and residual are kernels of torch."""
    import torch

    x, w, y = (arguments[name] for name in ("x_ptr", "w_ptr", "y_ptr"))
    bias = arguments["bias_ptr"] if arguments["HAS_BIAS"] else None
    residual = arguments["residual_ptr"] if arguments["HAS_RESIDUAL"] else None
    activate = activation(arguments["ACTIVATION"])
    if x.dtype != y.dtype:
        return []

    def run() -> tuple[Any, ...]:
        result = torch.nn.functional.linear(x, w, bias)
        result = activate(result) if activate else result
        return (result if residual is None else result + residual,)

    return [Rival("cuBLAS and torch" if activate or residual is not None else "cuBLAS", ("y_ptr",), run)]


def gated_linear(arguments: Arguments) -> list[Rival]:
    """Two products, and torch's kernels for what joins them."""
    import torch

    x, gate, up, out = (arguments[name] for name in ("x_ptr", "gate_ptr", "up_ptr", "out_ptr"))
    activate = activation(arguments["ACTIVATION"])
    if activate is None or x.dtype != out.dtype:
        return []
    return [Rival("cuBLAS and torch", ("out_ptr",), lambda: (activate(torch.mm(x, gate)) * torch.mm(x, up),))]


def activation(name: str | None) -> Callable[[Any], Any] | None:
    """The function of this name in torch."""
    import torch

    return getattr(torch.nn.functional, name) if name in ("relu", "gelu", "silu") else None


def ragged_product(arguments: Arguments) -> list[Rival]:
    """Groups of rows, each with a matrix of its own; rows after the last group are nobody's."""
    import torch

    a, b, c = (arguments[name] for name in ("a_ptr", "b_ptr", "c_ptr"))
    if a.dtype != torch.bfloat16 or c.dtype != a.dtype:
        return []
    ends = arguments["sizes_ptr"].cumsum(0, dtype=torch.int32)
    rows = a[: int(ends[-1])]
    if any(extent % 8 for extent in b.shape[1:]):
        return []
    return [Rival("grouped_mm", ("c_ptr",), lambda: (torch.nn.functional.grouped_mm(rows, b, offs=ends),))]


# ------------------------------------------------------------------------------------------------------ attention


def attention(
    names: tuple[str, str, str, str], scale: str, *, heads_second: bool = True, causal: bool | None = None
) -> Maker:
    """Attention forward of (q, k, v, out), [batch, heads, length, head size] or with lengths before heads.

    `causal` is what the kernel always does; None: the launch says so. torch picks a kernel for "SDPA"; cuDNN's is timed
    as well, as it is the fastest on some GPUs and not picked there.
    """

    def make(arguments: Arguments) -> list[Rival]:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = (arguments[name] if heads_second else arguments[name].transpose(1, 2) for name in names[:3])
        masked = arguments["CAUSAL"] if causal is None else causal
        # Kernel and library agree on the first query's place, not on what a query without keys gives.
        if masked and q.shape[2] != k.shape[2]:
            return []

        def run() -> tuple[Any, ...]:
            grouped = q.shape[1] != k.shape[1]
            out = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=masked, scale=arguments[scale], enable_gqa=grouped
            )
            return (out if heads_second else out.transpose(1, 2),)

        def by_cudnn() -> tuple[Any, ...]:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return run()

        found = [Rival("SDPA", names[3:], run)]
        return [*found, Rival("SDPA by cuDNN", names[3:], by_cudnn)] if q.is_cuda and not torch.version.hip else found

    return make


MAKERS: Mapping[str, Maker] = {
    "matmul_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    "grouped_order_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    "any_strides_matmul_kernel": product("A", "B", "C", alpha="alpha"),
    "linear_kernel": product("x_ptr", "w_ptr", "y_ptr", transposed=True),
    "float32_matmul_kernel": float32_product,
    "float8_matmul_kernel": float8_product,
    "block_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    "descriptor_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr", transposed=True),
    "persistent_descriptor_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr", transposed=True),
    "host_descriptor_matmul_kernel": product("a_desc", "b_desc", "c_desc", transposed=True),
    "persistent_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    # Adds to zeros, so the product is all of its work.
    "split_k_matmul_kernel": product("A", "B", "C"),
    "batched_matmul_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    "small_matrices_kernel": product("a_ptr", "b_ptr", "c_ptr"),
    "linear_activation_kernel": linear,
    "glu_kernel": gated_linear,
    "ragged_matmul_kernel": ragged_product,
    "attention_kernel": attention(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), "sm_scale"),
    "two_phase_attention_kernel": attention(("Q", "K", "V", "Out"), "sm_scale", heads_second=False),
    "descriptor_attention_kernel": attention(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "sm_scale"),
    "block_attention_kernel": attention(("q", "k", "v", "o"), "scale", heads_second=False, causal=True),
}
