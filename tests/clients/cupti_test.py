#!/usr/bin/env python3
"""CUPTI of the package index tells its version. usage: cupti_test.py GRIDLOOM FOLDER

JAX asks it when it starts, and does without a GPU where CUPTI does not answer. CUPTI 13.x asks the driver for a private table first.
"""
import glob
import os
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
VERSIONS = {"13.0.85": "1300", "13.5.25": "1305"}  # and how the number begins that CUPTI gives
CLIENT = """
import ctypes, sys
version = ctypes.c_uint32(0)
print(ctypes.CDLL(sys.argv[1]).cuptiGetVersion(ctypes.byref(version)), version.value)
"""


def main():
    tried, failed = 0, []
    for version, number in VERSIONS.items():
        place = packages.wheel(FOLDER, "nvidia-cuda-cupti", version)
        library = glob.glob(f"{place}/nvidia/**/libcupti.so.*", recursive=True) if place else []
        if not library:
            print(f"{version}: not at hand")
            continue
        tried += 1
        done = subprocess.run([GRIDLOOM, "run", "--", sys.executable, "-c", CLIENT, library[0]], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        good = done.returncode == 0 and done.stdout.split()[0] == "0" and done.stdout.split()[1].startswith(number) and not done.stderr
        print(f"{version}: {'tells its version' if good else 'does not tell its version'}")
        if not good:
            print(done.stdout[-1000:], done.stderr[-1000:])
            failed.append(version)
    if tried == 0:
        packages.skip("CUPTI cannot be had from the package index")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
