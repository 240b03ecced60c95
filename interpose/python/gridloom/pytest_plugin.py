"""pytest --gridloom: tests run under Gridloom, on a machine without a GPU.

    pytest --gridloom                 on the default device
    pytest --gridloom=a100            on another virtual GPU
    pytest --gridloom --gridloom-options="--memcheck"

Tests marked `real_gpu` are skipped then. The fixture `gridloom_timer` measures simulated time (`--gridloom-options=--timing`).
"""

import os
import shlex
import sys

import pytest

from . import _launch


def pytest_addoption(parser):
    group = parser.getgroup("gridloom", "CUDA without a GPU")
    group.addoption("--gridloom", metavar="DEVICE", nargs="?", const="", default=None, help="run the tests under Gridloom, on this virtual GPU")
    group.addoption("--gridloom-options", metavar="OPTIONS", default="", help="further options of `gridloom run`, such as --memcheck")


def pytest_configure(config):
    config.addinivalue_line("markers", "real_gpu: needs a GPU; skipped under Gridloom")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Starts pytest anew under Gridloom; workers of pytest-xdist have inherited it."""
    device = config.getoption("--gridloom")
    if device is None or _launch.is_active() or "PYTEST_XDIST_WORKER" in os.environ:
        return
    try:
        loaded = _launch.libraries_loaded()
        if loaded:
            raise _launch.EnableError(f"{loaded} is loaded already, by a plug-in of pytest: start it with `gridloom run -- pytest`")
        command = _launch.command_line()
        arguments = [_launch.tool(), "run", *(["--device", device] if device else []), *shlex.split(config.getoption("--gridloom-options")), "--", *command]
    except _launch.EnableError as error:
        raise pytest.UsageError(f"--gridloom: {error}") from error
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(arguments[0], arguments)


def pytest_collection_modifyitems(config, items):
    if not _launch.is_active():
        return
    skip = pytest.mark.skip(reason="needs a real GPU")
    for item in items:
        if "real_gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def gridloom_timer():
    """A function that runs another one and gives the milliseconds that its work on the default stream took: simulated ones under
    `--timing`. Skips the test where there is no driver."""
    from . import timer

    try:
        return timer.Timer().milliseconds
    except timer.TimerError as error:
        pytest.skip(str(error))
