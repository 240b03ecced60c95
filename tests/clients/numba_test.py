#!/usr/bin/env python3
"""Numba's kernels as they come from the package index. usage: numba_test.py GRIDLOOM FOLDER

A grid's barrier in kernels whose last block has threads that leave before it, and the names that --summary shows.
"""
import os
import re
import subprocess
import sys

import packages

GRIDLOOM, FOLDER = (os.path.abspath(argument) for argument in sys.argv[1:3])
# NumPy 2.4 has not what this numba-cuda looks for; NVVM and nvJitLink come with its extra.
REQUIREMENTS = ["numba-cuda[cu13]==0.30.4", "numpy<2.4"]

PROGRAM = r'''
import numpy as np
from numba import cuda

@cuda.jit
def ring(a, b):
    i = cuda.grid(1)
    if i >= a.size:
        return
    grid = cuda.cg.this_grid()
    a[i] = i
    grid.sync()
    b[i] = a[(i + 1) % a.size]
    grid.sync()
    a[i] = b[(i + 1) % a.size]

for n in (3, 128, 300, 1000):
    a, b = cuda.to_device(np.zeros(n, np.int32)), cuda.to_device(np.zeros(n, np.int32))
    ring[(n + 127) // 128, 128](a, b)
    assert (b.copy_to_host() == (np.arange(n) + 1) % n).all(), n
    assert (a.copy_to_host() == (np.arange(n) + 2) % n).all(), n
'''


def main():
    python = packages.environment(os.path.join(FOLDER, "numba"), *REQUIREMENTS)
    done = subprocess.run([GRIDLOOM, "run", "--summary", "--", python, "-W", "ignore", "-c", PROGRAM], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    print(done.stdout)
    assert done.returncode == 0
    assert re.search(r"^__main__::ring +4 ", done.stdout, re.MULTILINE), "the summary names the kernel as the program does"


if __name__ == "__main__":
    main()
