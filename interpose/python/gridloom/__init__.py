"""Gridloom from Python: CUDA programs without a GPU.

    import gridloom
    gridloom.enable()        # before the first import of a CUDA library
    import cupy

A process that runs under Gridloom has been started so: the library that takes the driver's place is loaded before all others.
`enable` starts the process anew in that way, once. `gridloom run -- python script.py` does without.
"""

import os
import sys

from ._launch import EnableError, command_line, is_active, libraries_loaded, tool

__all__ = ["EnableError", "__version__", "enable", "is_active", "tool"]

try:
    from ._version import version as __version__
except ImportError:  # not installed from a package
    __version__ = "0"


def enable(device=None, options=()):
    """Makes this process one that runs under Gridloom.

    device: the virtual GPU, as `gridloom run --device` takes it: "h200", "a100", a YAML file, ...
    options: further options of `gridloom run`, such as ["--memcheck"].

    In a process that runs under Gridloom already nothing happens. Otherwise the process begins anew, with the same arguments, and
    this call does not return. EnableError says why it cannot: a CUDA library is loaded already, or nobody knows how this process was
    started (notebooks, interactive sessions, a program on standard input).
    """
    if is_active():
        return
    loaded = libraries_loaded()
    if loaded:
        raise EnableError(f"{loaded} is loaded already: call gridloom.enable() before the first import of a CUDA library")
    command = command_line()
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [tool(), "run"]
    if device is not None:
        arguments += ["--device", str(device)]
    os.execv(arguments[0], [*arguments, *map(str, options), "--", *command])
