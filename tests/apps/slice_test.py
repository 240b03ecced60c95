#!/usr/bin/env python3
"""slice_test.py GRIDLOOM PROGRAM N...: a program's output and exit code are the same when its grids run in slices of N CTAs.

A program that fails by design (an illegal address, a failed assertion) has to fail in the same way; what Gridloom says on
standard error, the CTA of a fault included, is compared too, as far as it is a fault's message.
"""
import os
import re
import subprocess
import sys


def run(gridloom, program, options):
    """Exit code, standard output, and the faults named on standard error: which CTA is first to fault is the scheduler's choice,
    so only their kernels are compared."""
    command = [gridloom, "run", "--log", "error", *options, "--", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    faults = re.findall(rb"kernel [^\s,:]+", done.stderr)
    return done.returncode, done.stdout, sorted(set(faults))


def main():
    gridloom, program, sizes = sys.argv[1], sys.argv[2], sys.argv[3:]
    whole = run(gridloom, program, [])
    different = 0
    for size in sizes:
        sliced = run(gridloom, program, ["--slice", size])
        for what, a, b in zip(("exit code", "output", "faults"), whole, sliced):
            if a == b:
                continue
            different += 1
            print(f"{os.path.basename(program)}, slices of {size}: {what} differs\n  whole:  {a!r:.2000}\n  sliced: {b!r:.2000}")
    print(f"{'DIFFERENT' if different else 'same'}: {os.path.basename(program)} in slices of {', '.join(sizes)}")
    return 1 if different else 0


sys.exit(main())
