"""Options and paths that every test may use."""

from __future__ import annotations

import gc
import os
import signal
import time
from pathlib import Path

import hypothesis
import pytest

from tt2gl.children import COLLECTED_AFTER

REPOSITORY = Path(__file__).resolve().parent.parent
STARTED = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`, to write the expected Gluon files instead of comparing with them, and `--begin-within`."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden, to be reviewed as a diff")
    parser.addoption("--begin-within", type=float, metavar="SECONDS", help="skip the tests that are to begin later")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what there is no time for, and say so."""
    seconds = item.config.getoption("--begin-within")
    if seconds is not None and time.monotonic() - STARTED > seconds:
        pytest.skip(f"not begun within {seconds:.0f} seconds")


def pytest_configure() -> None:
    """Hear Ctrl-C, and let what tests start hear it, also where the shell runs this in the background; be patient."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # How long an example takes says how busy the machine is, and nothing of what is tested.
    hypothesis.settings.register_profile("patient", parent=hypothesis.settings.default, deadline=None)
    hypothesis.settings.load_profile("patient")
    # As commands do: looking for cycles in syntax trees took a sixth of a conversion's time.
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no need to look through it for garbage again and again."""
    gc.freeze()


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written rather than compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of a run, where one of them leaves what the others need not make again."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The directory with our own kernels."""
    return REPOSITORY / "corpus"
