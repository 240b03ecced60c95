"""How this process was started, and whether it runs under Gridloom."""

import os
import shutil
import sys

SHIM = "libgridloom.so"
STARTED = "GRIDLOOM_PYTHON_STARTED"  # this process began anew: it does not do so twice


class EnableError(RuntimeError):
    """Why this process cannot begin anew under Gridloom."""


def tool():
    """The path of the `gridloom` tool: the package's own, else the one in PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree", "bin", "gridloom")
    if os.access(own, os.X_OK):
        return own
    found = shutil.which("gridloom")
    if found is None:
        raise EnableError("there is no gridloom: neither in this package nor in PATH")
    return found


def _mapped():
    """Names of the files that are mapped into this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return {os.path.basename(fields[5].strip()) for fields in (line.split(None, 5) for line in maps) if len(fields) == 6}


def is_active():
    """Whether this process runs under Gridloom."""
    return SHIM in _mapped()


def libraries_loaded():
    """The name of a library of CUDA that is loaded; empty: none."""
    for name in sorted(_mapped()):
        if name.startswith(("libcuda.so", "libcudart.so", "libnvrtc.so", "libcublas", "libcufft.so")):
            return name
    return ""


def command_line():
    """The command that started this process, to be started again. EnableError where there is none."""
    if os.environ.get(STARTED) == str(os.getpid()):
        raise EnableError(f"this process has begun anew, and {SHIM} is still not loaded: does something clear LD_PRELOAD?")
    if "ipykernel" in sys.modules or "google.colab" in sys.modules:
        raise EnableError("a notebook's process cannot begin anew: start it with `gridloom run -- jupyter lab`")
    if hasattr(sys, "ps1") or sys.flags.interactive:
        raise EnableError("an interactive session cannot begin anew: start it with `gridloom run -- python`")
    arguments = getattr(sys, "orig_argv", None) or _arguments_of_3_9()
    script = sys.argv[0] if sys.argv else ""
    if script in ("", "-"):
        raise EnableError("a program that is read from standard input cannot begin anew: start it with `gridloom run -- python -`")
    os.environ[STARTED] = str(os.getpid())
    return [sys.executable, *arguments[1:]]


def _arguments_of_3_9():
    """Python 3.9 does not keep its command line: the system does."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(argument) for argument in file.read().split(b"\0")[:-1]]
