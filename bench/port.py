"""Ports kernels of the corpus on a machine with a GPU, and writes the report with their speeds.

    python bench/port.py --only rotary --only softmax [--out FOLDER]

Each kernel is ported and run under its largest launch alone: `tt2gl port --run gpu --report FOLDER` over the files
that have them. Kernels of these files that are not asked for are ported too, and not run. Its exit code is the port's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.selection import all_launches, selected, selecting_parser, size  # noqa: E402
from tt2gl.launch_file import write_launches  # noqa: E402
from tt2gl.launches import Launch  # noqa: E402


def main(given: Sequence[str] | None = None) -> int:
    """Put the files together, port them."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder for the report (default: report)")
    parser.add_argument("--run", choices=("gpu", "simulate"), default="gpu", help="run on the GPU, or in numpy")
    arguments = parser.parse_args(given)
    launches, root = all_launches(arguments)
    chosen = largest([launch for launch in launches if selected(launch.kernel, launch.file, arguments.only)])
    with TemporaryDirectory() as folder:
        for file in {launch.file for launch in chosen}:
            place = Path(folder, "kernels", file)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / file, place)
        write_launches(Path(folder, "launches.json"), chosen)
        command = [sys.executable, "-m", "tt2gl", "port", "kernels", "--out", "gluon", "--run", arguments.run]
        command += ["--launches", "launches.json", "--root", "kernels", "--report", str(arguments.out.absolute())]
        return subprocess.run(command, cwd=folder, env=_environment(), check=False).returncode


def largest(launches: Sequence[Launch]) -> list[Launch]:
    """Of each kernel's launches the one with the largest tensors."""
    found: dict[tuple[str, str], Launch] = {}
    for launch in launches:
        known = found.get((launch.file, launch.kernel))
        if known is None or size(launch) > size(known):
            found[launch.file, launch.kernel] = launch
    return list(found.values())


def _environment() -> dict[str, str]:
    """This process's, in which tt2gl is found from any folder."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": paths}


if __name__ == "__main__":
    raise SystemExit(main())
