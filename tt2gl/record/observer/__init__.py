"""Runs inside the user's command: every Triton launch becomes a line of a journal.

Loaded by path into whatever Python the command runs on, so nothing here imports tt2gl, or more than the standard
library before the command imports Triton or torch itself.
"""

from __future__ import annotations

from collections.abc import Mapping

JOURNAL = "TT2GL_RECORD_JOURNAL"
"""Environment variable: the file that lines are appended to. Without it nothing is observed."""

STAND_IN = "TT2GL_RECORD_STAND_IN"
"""Environment variable: the GPU to be played where there is none, as JSON of a `gpu.Gpu`; empty with one."""


def start(environment: Mapping[str, str]) -> None:
    """Have Triton observed, and torch given a stand-in for the GPU that is missing, once the command imports them."""
    path = environment.get(JOURNAL)
    if not path:
        return
    from . import imports
    from .gpu import Gpu
    from .journal import Journal

    journal = Journal(path)
    stand_in = environment.get(STAND_IN)
    gpu = Gpu.from_json(stand_in) if stand_in else None

    def triton_is_there() -> None:
        from .kernels import observe

        observe(journal, gpu)

    def torch_is_there() -> None:
        if gpu is not None:
            from .torch_stand_in import install

            install(gpu)

    imports.when_imported({"triton": triton_is_there, "torch": torch_is_there})
