"""How long `tt2gl check` takes on a repository of 100 kernels: nothing changed, and one file changed.

    python bench/check.py [--kernels 100] [--target sm90]

Makes the repository in a temporary folder, and its lock, which takes a minute or two: every kernel is compiled. Needs
no GPU. "Importing Triton" is what the parent process of any compilation pays first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

KERNEL = '''\
"""Row kernel {number}."""

import triton
import triton.language as tl


@triton.jit
def row_{number}_kernel(out_ptr, in_ptr, row_stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    x = tl.load(in_ptr + row * row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    # scaled by the root of its mean square
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_columns + {number}e-6)
    tl.store(out_ptr + row * row_stride + columns, x * scale, mask=mask)


def row_{number}(x, out):
    row_{number}_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=1024, num_warps=4)
'''


def main() -> None:
    """Make the repository, run the commands, print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100, metavar="N", help="how many, one a file (default: 100)")
    parser.add_argument("--target", default="sm90", metavar="T")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(folder, "kernels")
        kernels.mkdir()
        for number in range(arguments.kernels):
            (kernels / f"row_{number}.py").write_text(KERNEL.format(number=number), "utf-8")
        check = [sys.executable, "-m", "tt2gl", "check", "--target", arguments.target]
        print(f"lock made             {_seconds([*check, '--update'], folder):6.2f} s")
        print(f"nothing changed       {min(_seconds(check, folder) for _ in range(3)):6.2f} s")
        edited = kernels / "row_7.py"
        edited.write_text(edited.read_text("utf-8").replace("x * scale", "x * scale + 1.0"), "utf-8")
        print(f"one file changed      {_seconds(check, folder):6.2f} s")
        imported = "from tt2gl.isolate import preload; preload()"
        print(f"  importing Triton    {_seconds([sys.executable, '-c', imported], folder):6.2f} s")
        edited.write_text(edited.read_text("utf-8").replace("# scaled", "# divided"), "utf-8")
        print(f"one comment changed   {_seconds(check, folder):6.2f} s")


def _seconds(command: list[str], folder: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
