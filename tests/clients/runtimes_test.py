#!/usr/bin/env python3
"""Shared CUDA runtimes of the package index, each under a client. usage: runtimes_test.py GRIDLOOM FOLDER

Some by default; all that the index has with GRIDLOOM_TEST_RUNTIMES=all, those of a list with GRIDLOOM_TEST_RUNTIMES=13.1.80,13.5.37.
"""
import glob
import os
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime_client.py")
# The ends of what changed in how a runtime starts: the first two of a private table for modules, of 12.x, 13.0, 13.1 and the newest.
DEFAULT = ["11.7.99", "12.9.79", "13.0.96", "13.1.80", "newest"]


def package_of(version):
    major = int(version.split(".")[0])
    return "nvidia-cuda-runtime" if major >= 13 else f"nvidia-cuda-runtime-cu{major}"


def wanted():
    text = os.environ.get("GRIDLOOM_TEST_RUNTIMES", ",".join(DEFAULT))
    if text == "all":
        return [version for name in ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")
                for version in packages.versions(name)]
    newest = (packages.versions("nvidia-cuda-runtime") or [None])[0] if "newest" in text else None
    named = [newest if version == "newest" else version for version in text.split(",")]
    return list(dict.fromkeys(version for version in named if version is not None))


def main():
    tried, failed = 0, []
    for version in wanted():
        place = packages.wheel(FOLDER, package_of(version), version)
        library = glob.glob(f"{place}/nvidia/**/libcudart.so.*", recursive=True) if place else []
        if not library:
            print(f"{version}: not at hand")
            continue
        tried += 1
        done = subprocess.run([GRIDLOOM, "run", "--", sys.executable, CLIENT, library[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        major, minor = version.split(".")[:2]
        good = done.returncode == 0 and done.stdout.split() == [f"{major}0{minor}0"]
        print(f"{version}: {'runs' if good else f'exit code {done.returncode}'}")
        if not good:
            print(done.stdout[-3000:])
            failed.append(version)
    if tried == 0:
        packages.skip("no CUDA runtime could be had from the package index")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
