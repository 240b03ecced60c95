#!/usr/bin/env python3
"""NCCL of the package index with one rank. usage: nccl_test.py GRIDLOOM FOLDER

One rank is what a program has that was written for many and runs alone. NCCL looks at each of its kernels when it starts: reading their
PTX takes minutes and 5 GB, so that this runs only with GRIDLOOM_TEST_NCCL=1.
"""
import glob
import os
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nccl_client.py")


def main():
    if os.environ.get("GRIDLOOM_TEST_NCCL") != "1":
        packages.skip("NCCL takes minutes to start; GRIDLOOM_TEST_NCCL=1 runs it")
    runtime = packages.wheel(FOLDER, "nvidia-cuda-runtime", "13.1.80")
    nccl = packages.wheel(FOLDER, "nvidia-nccl-cu12", "2.32.3")
    if runtime is None or nccl is None:
        packages.skip("NCCL cannot be had from the package index")
    libraries = [glob.glob(f"{runtime}/nvidia/**/libcudart.so.*", recursive=True)[0], glob.glob(f"{nccl}/nvidia/nccl/lib/libnccl.so.*")[0]]
    done = subprocess.run([GRIDLOOM, "run", "--", sys.executable, CLIENT, *libraries], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=1700, check=False)
    print(done.stdout[-3000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
