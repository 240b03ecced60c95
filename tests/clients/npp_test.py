#!/usr/bin/env python3
"""NVIDIA's NPP from the package index, signals and images, each call against NumPy. usage: npp_test.py GRIDLOOM FOLDER"""
import os
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "npp_client.py")
REQUIREMENTS = ["numpy==2.3.5", "nvidia-npp==13.2.0.93"]


def main():
    python = packages.environment(os.path.join(FOLDER, "npp"), *REQUIREMENTS)
    done = subprocess.run([GRIDLOOM, "run", "--", python, CLIENT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
                          check=False)
    print(done.stdout[-6000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
