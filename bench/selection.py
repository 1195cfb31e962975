"""Which launches a benchmark runs: the options that say so, and how large launches are."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tt2gl.launch_file import read_launches
from tt2gl.launches import DescriptorArg, Launch, TensorArg
from tt2gl.verify.compile import tensor_bytes

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def selecting_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that say which kernels."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="kernels or files whose name has it"
    )
    parser.add_argument("--launches", type=Path, help="launches of other kernels than the corpus")
    parser.add_argument("--root", type=Path, help="where the files of --launches are")
    parser.add_argument("--first", type=int, metavar="N", help="only so many launches of each kernel")
    return parser


def all_launches(arguments: argparse.Namespace) -> tuple[list[Launch], Path]:
    """The launches asked for, else all of the corpus, and the folder their files are relative to."""
    paths = [arguments.launches] if arguments.launches else sorted(CORPUS.glob("*.launches.json"))
    known = Counter[tuple[str, str]]()
    chosen: list[Launch] = []
    for launch in (launch for path in paths for launch in read_launches(path)):
        known[launch.file, launch.kernel] += 1
        if arguments.first is None or known[launch.file, launch.kernel] <= arguments.first:
            chosen.append(launch)
    return chosen, (arguments.root or Path.cwd()) if arguments.launches else CORPUS


def selected(kernel: str, file: str, only: Sequence[str]) -> bool:
    """Whether `--only` names the kernel or its file."""
    return not only or any(name in kernel or name in file for name in only)


def size(launch: Launch) -> int:
    """Bytes of all tensors of a launch."""
    return sum(tensor_bytes(tensor) for tensor in tensors_of(launch))


def tensors_of(launch: Launch) -> list[TensorArg]:
    """The tensors of a launch, those that descriptors made by the host cover too."""
    return [
        TensorArg(value.dtype, value.shape, value.stride) if isinstance(value, DescriptorArg) else value
        for value in (launch.args or {}).values()
        if isinstance(value, TensorArg | DescriptorArg)
    ]
