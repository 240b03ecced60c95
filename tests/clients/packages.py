"""Packages of the Python package index for tests of clients as their authors ship them; what cannot be had is skipped aloud.

A package is kept in the build folder, so that only the first run needs the network.
"""
import glob
import os
import re
import subprocess
import sys
import zipfile

SKIPPED = 77


def skip(reason):
    """Ends the test as skipped; scripts/test shows the line."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def pip(*words, timeout=900):
    """What pip wrote to its standard output; None when it failed."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    if words[0] in ("download", "install", "index"):
        command += ["--timeout", "15", "--retries", "0"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def versions(package):
    """All versions of a package, the newest first; none when the index cannot be asked."""
    answer = pip("index", "versions", package) or ""
    listed = re.search(r"Available versions: (.*)", answer)
    return listed.group(1).split(", ") if listed else []


def wheel(folder, package, version):
    """The folder that has the unpacked wheel of that version, without what it depends on; None when it cannot be had."""
    place = os.path.join(folder, f"{package}-{version}")
    if not os.path.isdir(place):
        part = place + ".part"
        if pip("download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", part, f"{package}=={version}") is None:
            return None
        for archive in glob.glob(os.path.join(part, "*.whl")):
            with zipfile.ZipFile(archive) as file:
                file.extractall(part)
            os.remove(archive)
        os.rename(part, place)
    return place


def environment(folder, *requirements):
    """The Python interpreter of a virtual environment with these packages; skips the test when they cannot be had."""
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, "installed")
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            if file.read().split() == list(requirements):
                return python
    if subprocess.run([sys.executable, "-m", "venv", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip("this Python makes no virtual environments")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "15", "--retries", "0", *requirements]
    if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        skip(f"{' '.join(requirements)} cannot be installed from the package index")
    with open(done, "w", encoding="utf-8") as file:
        file.write("\n".join(requirements))
    return python
